# Google's system tests of the client of Node.js, which run on the service, unmodified, from the checkout of
# googleapis/nodejs-storage in SUITE_DIR, which is compiled. The tests of
# its installation are left out, because they install packages. A test that fails is repeated three
# times, and waits for 20 seconds at most.
. internal/compat/common.sh
need node
[ -d "${SUITE_DIR:-}/build/cjs/system-test" ] || fail "SUITE_DIR is not a compiled checkout of googleapis/nodejs-storage: make compat-node DIR=PATH"
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$SUITE_DIR/package.json")
here=$PWD

create=
start_emulator
api '/storage/v1/b?project=project-main' -d '{"name":"gcs-resumable-upload-test"}' -o "$work/bucket.json" || fail "the bucket of the tests cannot be made"
start_front
export NODE_EXTRA_CA_CERTS="$work/front.pem" GOOGLE_APPLICATION_CREDENTIALS="$work/account.json" GOOGLE_CLOUD_PROJECT=project-main PROJECT_ID=project-main
export NO_PROXY="$NO_PROXY,localhost" no_proxy="$no_proxy,localhost" # servers of the tests
(
	cd "$SUITE_DIR"
	timeout --foreground -k 1 900 node node_modules/.bin/mocha --require "$here/internal/compat/suite-node.cjs" --reporter json --reporter-option output="$work/suite.json" \
		--timeout 20000 --exit build/cjs/system-test/common.js build/cjs/system-test/kitchen.js build/cjs/system-test/storage.js
) >"$work/suite.log" 2>&1 || true
[ -s "$work/suite.json" ] || fail "the tests did not end: $(tail "$work/suite.log")"
"$compat" suites -format mocha -list internal/compat/suite-node-system.txt ${COMPAT_RECORD:+-record suite-node-system -version "$version"} "$work/suite.json" >"$work/differences" 2>&1 ||
	fail "$(cat "$work/differences")"
ok "Google's system tests of Node's client $version: $(tail -1 "$work/differences")"
