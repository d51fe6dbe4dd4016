# The targets are for developers; users need only the go command.

.PHONY: all test check bench compat live

all:
	go build -o bin/gcsup ./cmd/gcsup

test:
	go test -race ./...

# check is what CI runs.
check:
	bash .ci/run

# bench uploads 1 GiB over loopback with gcsup, with one bare PUT that computes
# the CRC32C, and with the official library's Writer, and prints the ratios.
bench:
	go test -run '^$$' -bench . -benchtime 3x ./upload/gcs

# compat uploads to the emulator with the clients that are installed here:
# gcloud, gsutil, rclone and ours. COMPAT_ALL=1 fails where one is missing.
compat:
	sh internal/compat/compat.sh

# live holds what we assume against the real service, with your credentials:
# make live BUCKET=gs://BUCKET. It is never part of CI.
live:
	go run ./internal/compat/live $(BUCKET)
