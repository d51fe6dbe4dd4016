# Functions for the test suites that pytest runs, from the checkout in SUITE_DIR. PYTHON (default
# python3) is an interpreter that can import pytest and the packages that the client needs.
# PYTHONPATH can name directories of packages that are not installed.
. internal/compat/common.sh
python=${PYTHON:-python3}
need "$python"
create=
unset STORAGE_EMULATOR_HOST API_ENDPOINT_OVERRIDE GOOGLE_CLOUD_PROJECT GCLOUD_PROJECT
export PYTHONDONTWRITEBYTECODE=1 NO_GCE_CHECK=true # no request to a metadata server

# version_of: prints the version of Google's client in SUITE_DIR.
version_of() { sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$SUITE_DIR/google/cloud/storage/version.py"; }

# service_account FILE: writes the key of a service account that does not exist. Its tokens come
# from the running emulator.
service_account() {
	need openssl
	openssl genrsa -out "$work/key.pem" 2048 2>"$work/openssl.log" || fail "no key can be made: $(cat "$work/openssl.log")"
	cat >"$1" <<JSON
{"type": "service_account", "project_id": "my-project", "client_email": "tests@my-project.iam.gserviceaccount.com",
"client_id": "1", "private_key_id": "1", "private_key": "$(awk '{ printf "%s\\n", $0 }' "$work/key.pem")",
"token_uri": "$host/_fakegcs/token"}
JSON
}

# run_suite NAME TITLE VERSION ARGUMENT...: runs pytest with the arguments, and compares the
# failures with the list NAME.txt.
run_suite() {
	name=$1 title=$2 version=$3
	shift 3
	(cd "$SUITE_DIR" && timeout --foreground -k 1 900 "$python" -m pytest -p no:cacheprovider -q --color=no --junitxml "$work/suite.xml" "$@") >"$work/suite.log" 2>&1 || true
	[ -s "$work/suite.xml" ] || fail "the tests did not run: $(tail "$work/suite.log")"
	"$compat" suites -format junit -list "internal/compat/$name.txt" ${COMPAT_RECORD:+-record "$name" -version "$version"} "$work/suite.xml" >"$work/differences" 2>&1 ||
		fail "$(cat "$work/differences"; tail -40 "$work/suite.log")"
	ok "$title $version: $(tail -1 "$work/differences")"
}
