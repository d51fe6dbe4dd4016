# Google's retry conformance tests of the client of Python, unmodified, from the checkout of
# googleapis/python-storage in SUITE_DIR. PYTHON (default python3) is an interpreter that can import
# pytest and the packages that the client needs. The tests call docker to start the test bench, and
# get a program of that name that does nothing.
. internal/compat/common.sh
python=${PYTHON:-python3}
need "$python"
[ -d "${SUITE_DIR:-}/tests/conformance" ] || fail "SUITE_DIR is not a checkout of googleapis/python-storage: make compat-python DIR=PATH"
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$SUITE_DIR/google/cloud/storage/version.py")
go build -o "$work/suites" ./internal/compat/suites
mkdir "$work/bin"
printf '#!/bin/sh\n' >"$work/bin/docker"
chmod +x "$work/bin/docker"

create=
start_emulator
export STORAGE_EMULATOR_HOST="$host"
(cd "$SUITE_DIR" && PATH="$work/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 timeout --foreground -k 1 900 "$python" -m pytest -p no:cacheprovider -q --junitxml "$work/suite.xml" tests/conformance/test_conformance.py) >"$work/suite.log" 2>&1 || true
[ -s "$work/suite.xml" ] || fail "the tests did not run: $(tail "$work/suite.log")"
"$work/suites" -format junit -list internal/compat/suite-python.txt ${COMPAT_RECORD:+-record suite-python -version "$version"} "$work/suite.xml" >"$work/differences" 2>&1 ||
	fail "$(cat "$work/differences"; tail -40 "$work/suite.log")"
ok "Google's tests of Python's client $version: $(tail -1 "$work/differences")"
