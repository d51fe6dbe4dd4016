# The targets are for developers; users need only the go command.

.PHONY: all test check bench

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
