# Google's tests of the official Go library: the retry conformance tests, and those that its authors run
# on their test bench, of the version in go.mod. The module has tests of a gRPC service, too: the retry
# conformance tests skip them as the emulator answers 501, and the others have a name of their own,
# which -run does not match.
. internal/compat/gotest.sh

version=$(go list -m -f '{{.Version}}' cloud.google.com/go/storage)
build_tests cloud.google.com/go/storage "$version" .

# These tests use only gRPC, and would wait for a server.
create=
grpc='NewRangeReaderUnfinalized|ReadObjectWrong.*|MRD.*|MultiRange.*|GRPC.*|ReadCodecLeaks'
start_emulator
export STORAGE_EMULATOR_HOST="$host" STORAGE_EMULATOR_HOST_GRPC=127.0.0.1:1
run_tests -test.short -test.run '^TestRetryConformance$'
run_tests -test.short -test.run '^Test.*Emulated$/^http$' -test.skip "^Test($grpc)Emulated\$"
compare suite-go "Google's tests of the Go library" "$version"
