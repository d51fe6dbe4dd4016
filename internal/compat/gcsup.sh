# gcsup itself: upload, read back, and resume after SIGKILL in mid-upload.
. internal/compat/common.sh

export GCSUP_STATE_DIR="$work/state"
# Without this, gcsup can send the first 8 MiB again in parts on a busy machine.
export GCSUP_PARALLEL=off
cp_to() { # SOURCE OBJECT
	limited "$gcsup" cp --endpoint "$host" --json "$1" "gs://bkt/$2" >"$work/cp.log" 2>&1 || fail "gcsup cp $1: $(cat "$work/cp.log")"
}
# list_saved: sets $saved to the IDs of the uploads that can be resumed.
list_saved() {
	"$gcsup" uploads list --json >"$work/saved" || fail "gcsup uploads list"
	saved=$(sed -n 's/.*"id":"\([^"]*\)".*/\1/p' "$work/saved")
}
none_saved() {
	list_saved
	[ -z "$saved" ] || fail "still saved is $saved"
}

start_emulator
for size in small large; do
	eval "file=\$$size"
	cp_to "$file" "$size"
	same "$size" "$file"
	ok "gcsup cp, the $size file"
done
limited "$gcsup" cp -q --endpoint "$host" - gs://bkt/stream <"$large" || fail "gcsup cp -"
same stream "$large"
ok "gcsup cp of a stream"

start_held 60000000
background "$gcsup" cp --endpoint "$host" "$large" gs://bkt/killed
kill_at 60000000
release
list_saved
[ "$(grep -c . "$work/saved")" = 1 ] || fail "gcsup uploads list after a kill: $(cat "$work/saved")"
cp_to "$large" killed
resumed "$large_size" 1
same killed "$large"
grep -q '"type":"result","status":"ok".*"resumed_from":[1-9]' "$work/cp.log" || fail "the result does not say from where it resumed: $(cat "$work/cp.log")"
none_saved
ok "gcsup cp, killed and run again: $total bytes received for $large_size"

start_held 60000000
background "$gcsup" cp --endpoint "$host" "$large" gs://bkt/killed
kill_at 60000000
release
limited "$gcsup" resume --endpoint "$host" >"$work/resume.log" 2>&1 || fail "gcsup resume: $(cat "$work/resume.log")"
resumed "$large_size" 1
same killed "$large"
none_saved
ok "gcsup cp, killed, then gcsup resume: $total bytes received for $large_size"

start_held 60000000
background "$gcsup" cp --endpoint "$host" "$large" gs://bkt/canceled
kill_at 60000000
release
list_saved
limited "$gcsup" uploads cancel --endpoint "$host" "$saved" >"$work/cancel.log" 2>&1 || fail "gcsup uploads cancel: $(cat "$work/cancel.log")"
none_saved
[ "$(count cancel)" = 1 ] || fail "the service was not asked to cancel"
absent canceled
ok "gcsup cp, killed, then gcsup uploads cancel"
