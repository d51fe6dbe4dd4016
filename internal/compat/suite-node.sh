# Google's retry conformance tests of the client of Node.js, unmodified, from the checkout of
# googleapis/nodejs-storage in SUITE_DIR, which is compiled as its CONTRIBUTING.md says. The tests
# start the test bench in a global hook, which is left out.
# Google runs them with --parallel. The process of a scenario then sends its results as JSON, and
# all of them are lost if an error of a test refers to itself.
. internal/compat/common.sh
need node
[ -d "${SUITE_DIR:-}/build/cjs/conformance-test" ] || fail "SUITE_DIR is not a compiled checkout of googleapis/nodejs-storage: make compat-node DIR=PATH"
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$SUITE_DIR/package.json")

create=
start_emulator
export STORAGE_EMULATOR_HOST="$host/" # the tests append paths to it
here=$PWD
(cd "$SUITE_DIR" && timeout --foreground -k 1 900 node node_modules/.bin/mocha --require "$here/internal/compat/suite-node.cjs" --reporter json build/cjs/conformance-test/scenarios) >"$work/suite.json" 2>"$work/suite.log" || true
"$compat" suites -format mocha -list internal/compat/suite-node.txt ${COMPAT_RECORD:+-record suite-node -version "$version"} "$work/suite.json" >"$work/differences" 2>&1 ||
	fail "$(cat "$work/differences" "$work/suite.log")"
ok "Google's tests of Node's client $version: $(tail -1 "$work/differences")"
