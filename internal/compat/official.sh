# The official Go library, as a separate program.
. internal/compat/common.sh

start_emulator
export STORAGE_EMULATOR_HOST="$host"
limited "$compat" official # it prints what fails
