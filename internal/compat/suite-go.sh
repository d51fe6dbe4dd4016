# Google's tests of the official Go library: the retry conformance tests, and those that its
# authors run on their test bench. They are run unmodified, from the source of the module in
# go.mod. The module has tests of a gRPC service, too: the retry conformance tests skip them
# as the emulator answers 501, and the others have a name of their own, which -run does not match.
. internal/compat/common.sh

version=$(go list -m -f '{{.Version}}' cloud.google.com/go/storage)
source=$(go mod download -json cloud.google.com/go/storage@"$version" | sed -n 's/^	"Dir": "\(.*\)",$/\1/p')
[ -n "$source" ] || fail "the source of cloud.google.com/go/storage $version cannot be downloaded"
cp -r "$source" "$work/storage"
chmod -R u+w "$work/storage"
# -trimpath, because otherwise the path of this directory is part of the key of the build cache.
(cd "$work/storage" && GOWORK=off GOFLAGS=-mod=mod go test -c -trimpath -o ../storage.test .) >"$work/build.log" 2>&1 || fail "Google's tests cannot be built: $(tail "$work/build.log")"
go build -o "$work/suites" ./internal/compat/suites

# These tests use only gRPC, and would wait for a server.
create=
grpc='NewRangeReaderUnfinalized|ReadObjectWrong.*|MRD.*|MultiRange.*|GRPC.*|ReadCodecLeaks'
start_emulator
export STORAGE_EMULATOR_HOST="$host" STORAGE_EMULATOR_HOST_GRPC=127.0.0.1:1
# suite PATTERN SKIPPED: runs these tests, and appends their results to suite.json.
suite() {
	(cd "$work/storage" && limited go tool test2json "$work/storage.test" -test.v=test2json -test.short -test.timeout 4m -test.run "$1" -test.skip "$2") >>"$work/suite.json" 2>"$work/suite.log" || true
}
suite '^TestRetryConformance$' '^$'
suite '^Test.*Emulated$/^http$' "^Test($grpc)Emulated\$"
"$work/suites" -list internal/compat/suite-go.txt ${COMPAT_RECORD:+-record suite-go -version "$version"} "$work/suite.json" >"$work/differences" ||
	fail "$(cat "$work/differences" "$work/suite.log")"
ok "Google's tests of the Go library $version: $(tail -1 "$work/differences")"
