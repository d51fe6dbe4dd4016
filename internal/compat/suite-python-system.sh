# Google's system tests of the client of Python, unmodified, from the checkout of
# googleapis/python-storage in SUITE_DIR. Google runs them on the service. The packages mock and
# google-cloud-testutils must be installed, too. The requests for storage.googleapis.com go to the
# emulator through a proxy. test_zonal.py is left out, because it uses gRPC. Cloud KMS, Pub/Sub and the
# credentials of IAM are other services. Their clients are replaced, so that no test reaches them.
. internal/compat/pytest.sh
[ -d "${SUITE_DIR:-}/tests/system" ] || fail "SUITE_DIR is not a checkout of googleapis/python-storage: make compat-python DIR=PATH"
go build -o "$work/front" ./internal/compat/front
stand_ins="$work/stand-ins/google/cloud"
mkdir -p "$stand_ins"
echo 'raise ImportError("Pub/Sub is another service")' >"$stand_ins/pubsub_v1.py"
: >"$stand_ins/kms.py"
: >"$stand_ins/iam_credentials_v1.py"

start_emulator
service_account "$work/account.json"
STORAGE_EMULATOR_HOST="$host" "$work/front" "$work/front.pem" >"$work/front.address" &
front=$!
finish() { # as well as the emulator
	kill "$front" 2>/dev/null || true
	stop_emulator
}
until [ -s "$work/front.address" ]; do
	kill -0 "$front" 2>/dev/null || fail "the proxy did not start"
	sleep 0.1
done
export HTTPS_PROXY="$(cat "$work/front.address")" REQUESTS_CA_BUNDLE="$work/front.pem" GOOGLE_APPLICATION_CREDENTIALS="$work/account.json"
export GOOGLE_CLOUD_TESTS_USER_PROJECT=my-project PYTHONPATH="$work/stand-ins${PYTHONPATH:+:$PYTHONPATH}"
run_suite suite-python-system "Google's system tests of Python's client" "$(version_of)" --ignore tests/system/test_zonal.py tests/system
