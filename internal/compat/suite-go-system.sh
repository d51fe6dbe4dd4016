# Google's integration tests of the official Go library, which run on the service, of the version in
# go.mod. The subtests of gRPC are left out. The proxy passes requests for the service and for
# access tokens on to the emulator, and refuses those for other services of Google.
. internal/compat/gotest.sh

version=$(go list -m -f '{{.Version}}' cloud.google.com/go/storage)
build_tests cloud.google.com/go/storage "$version" .

create=
start_emulator
start_front
sed 's/main/other/g' "$work/account.json" >"$work/other.json"
export GCLOUD_TESTS_GOLANG_PROJECT_ID=project-main GCLOUD_TESTS_GOLANG_KEY="$work/account.json" \
	GCLOUD_TESTS_GOLANG_FIRESTORE_PROJECT_ID=project-other GCLOUD_TESTS_GOLANG_FIRESTORE_KEY="$work/other.json" \
	GCLOUD_TESTS_GOLANG_KEYRING=projects/project-main/locations/us/keyRings/ring
grpc='^(grpc|zonalBucket)(#[0-9]+)?$'
run_tests -test.run '^TestIntegration' -test.skip "^Test.*\$/$grpc|^Test.*\$/.*/$grpc"
compare suite-go-system "Google's integration tests of the Go library" "$version"
