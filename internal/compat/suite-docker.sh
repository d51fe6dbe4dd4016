# The tests of the storage driver of Docker's registry for Cloud Storage. The driver sends uploads to
# storage.googleapis.com, and so goes through a proxy. The driver of 3.1 compares errors of its client
# library with ==, although that wraps them: five tests of it would fail on the service, too.
. internal/compat/gotest.sh

version=v3.0.0
build_tests github.com/distribution/distribution/v3 "$version" registry/storage/driver/gcs

start_emulator
start_front
export REGISTRY_STORAGE_GCS_BUCKET=bkt GOOGLE_APPLICATION_CREDENTIALS="$work/account.json"
run_tests
compare suite-docker "Docker's tests of its driver for Cloud Storage" "$version"
