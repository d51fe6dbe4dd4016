# rclone, from PATH or as install-rclone.sh built it.
. internal/compat/common.sh
PATH="$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/gcsup-compat"
need rclone
# Versions before 1.58 have no option for the endpoint.
if ! rclone help flags | grep -q -e --gcs-endpoint; then
	[ -z "${COMPAT_ALL:-}" ] || fail "this rclone is too old: $(rclone version | head -n 1)"
	echo "---- this rclone is too old: $(rclone version | head -n 1)"
	exit 0
fi

start_emulator
export RCLONE_CONFIG=/dev/null RCLONE_RETRIES=1 RCLONE_GCS_NO_CHECK_BUCKET=true
gcs=":gcs,anonymous=true,endpoint='$host/storage/v1/',bucket_policy_only=true:bkt"
run() { limited rclone "$@" >"$work/rclone.out" 2>"$work/rclone.log" || fail "rclone $*: $(cat "$work/rclone.log")"; }

mkdir "$work/source"
ln "$small" "$work/source/small" 2>/dev/null || cp "$small" "$work/source/small"
ln "$large" "$work/source/large" 2>/dev/null || cp "$large" "$work/source/large" # above its cutoff: in chunks
: >"$work/source/empty"
run copy "$work/source" "$gcs/dir"
for file in small large empty; do same "dir%2F$file" "$work/source/$file"; done
[ "$(count put)" -gt 1 ] || fail "rclone uploaded the large file without chunks"
run check "$work/source" "$gcs/dir" # by size and MD5
run lsf "$gcs/dir"
[ "$(sort "$work/rclone.out")" = "empty
large
small" ] || fail "rclone lsf: $(cat "$work/rclone.out")"
ok "rclone copy, check, lsf: $(count put) chunks"

run cat "$gcs/dir/small"
cmp -s "$work/rclone.out" "$small" || fail "rclone cat read something else"
run cat --offset 1000000 --count 5 "$gcs/dir/small"
[ "$(od -An -tx1 "$work/rclone.out")" = "$(tail -c +1000001 "$small" | head -c 5 | od -An -tx1)" ] || fail "rclone cat --offset read something else"
run copyto "$gcs/dir/large" "$work/back"
cmp -s "$work/back" "$large" || fail "rclone copyto read something else"
run moveto "$gcs/dir/small" "$gcs/moved"
same moved "$small"
absent dir%2Fsmall
run delete "$gcs/dir"
absent dir%2Flarge
absent dir%2Fempty
ok "rclone cat, copyto back, moveto, delete"

# A chunk that is sent again after a 503, a broken connection and a lost reply.
faults '[{"match": {"op": "put"}, "skip": 1, "do": {"effect": "status", "status": 503}},
	{"match": {"op": "put"}, "skip": 2, "do": {"effect": "reset"}},
	{"match": {"op": "finalize"}, "do": {"effect": "lose-reply"}}]'
run copyto "$large" "$gcs/faults"
all_fired
same faults "$large"
ok "rclone copyto through a 503, a reset and a lost reply"

# The filters need no server.
limited "$compat" filters # it prints what differs
