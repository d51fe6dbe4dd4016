# Google's retry conformance tests of the client of Python, unmodified, from the checkout of
# googleapis/python-storage in SUITE_DIR. The tests call docker to start the test bench, and get a
# program of that name that does nothing.
. internal/compat/pytest.sh
[ -d "${SUITE_DIR:-}/tests/conformance" ] || fail "SUITE_DIR is not a checkout of googleapis/python-storage: make compat-python DIR=PATH"
mkdir "$work/bin"
printf '#!/bin/sh\n' >"$work/bin/docker"
chmod +x "$work/bin/docker"

start_emulator
export STORAGE_EMULATOR_HOST="$host" PATH="$work/bin:$PATH"
run_suite suite-python "Google's conformance tests of Python's client" "$(version_of)" tests/conformance/test_conformance.py
