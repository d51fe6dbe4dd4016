# The official Go library, as a program of its own.
. internal/compat/common.sh

go build -o "$work/official" ./internal/compat/official
start_emulator
STORAGE_EMULATOR_HOST=$host timeout -k 1 120 "$work/official" || fail "official"
