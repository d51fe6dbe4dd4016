# The official Go library, as a separate program.
. internal/compat/common.sh

go build -o "$work/official" ./internal/compat/official
start_emulator
export STORAGE_EMULATOR_HOST="$host"
limited "$work/official" # it prints what fails
