# Google's system tests of the client of Python, unmodified, from the checkout of
# googleapis/python-storage in SUITE_DIR. Google runs them on the service. The packages mock and
# google-cloud-testutils must be installed, too. The requests for storage.googleapis.com go to the
# emulator through a proxy. test_zonal.py is left out, because it uses gRPC. Cloud KMS, Pub/Sub and the
# credentials of IAM are other services. Their clients are replaced, so that no test reaches them.
. internal/compat/pytest.sh
[ -d "${SUITE_DIR:-}/tests/system" ] || fail "SUITE_DIR is not a checkout of googleapis/python-storage: make compat-python DIR=PATH"
stand_ins="$work/stand-ins/google/cloud"
mkdir -p "$stand_ins"
echo 'raise ImportError("Pub/Sub is another service")' >"$stand_ins/pubsub_v1.py"
: >"$stand_ins/kms.py"
: >"$stand_ins/iam_credentials_v1.py"

start_emulator
start_front
export REQUESTS_CA_BUNDLE="$work/front.pem" GOOGLE_APPLICATION_CREDENTIALS="$work/account.json"
export GOOGLE_CLOUD_TESTS_USER_PROJECT=my-project PYTHONPATH="$work/stand-ins${PYTHONPATH:+:$PYTHONPATH}"
run_suite suite-python-system "Google's system tests of Python's client" "$(version_of)" --ignore tests/system/test_zonal.py tests/system
