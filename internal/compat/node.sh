# @google-cloud/storage, the client of Node.js, with the line that the emulator prints.
# It is installed into a cache for later runs.
. internal/compat/common.sh
need node
need npm
version=7.22.0

cache="${XDG_CACHE_HOME:-$HOME/.cache}/gcsup-compat/node-$version"
if [ ! -d "$cache/node_modules/@google-cloud/storage" ]; then
	mkdir -p "$work/npm"
	if ! (cd "$work/npm" && limited npm install --fetch-retries 1 --fetch-timeout 30000 --no-save --no-audit --no-fund --ignore-scripts --prefix . "@google-cloud/storage@$version") >"$work/npm.log" 2>&1; then
		[ -z "${COMPAT_ALL:-}" ] || fail "@google-cloud/storage can't be installed: $(cat "$work/npm.log")"
		echo "---- @google-cloud/storage can't be installed: $(tail -1 "$work/npm.log")"
		exit 0
	fi
	mkdir -p "${cache%/*}"
	rm -rf "$cache"
	mv "$work/npm" "$cache"
fi
export NODE_PATH="$cache/node_modules"
run() { limited node internal/compat/node.cjs "$@" >"$work/node.log" 2>&1 || fail "node $*: $(cat "$work/node.log")"; }

create= # the client makes its bucket
start_emulator
. "$work/ready" # as a user does with the line
run create bkt

for mode in simple resumable; do
	for size in small large; do
		eval "file=\$$size"
		run upload bkt "$file" "dir/$mode $size" $mode
		same "dir%2F$mode%20$size" "$file"
	done
done
[ "$(count start)" = 2 ] || fail "Node's client began $(count start) resumable uploads, want 2"
run chunks bkt "$large" chunks # a MiB each
same chunks "$large"
[ "$(count put)" -ge 100 ] || fail "Node's client sent $(count put) chunks, want one for each MiB"
ok "Node, upload of small and large, simple and resumable and in chunks"

run metadata bkt "dir/simple small"
run download bkt "dir/simple small" "$work/back"
cmp -s "$work/back" "$small" || fail "Node's client read something else"
run list bkt "chunks
dir/resumable large
dir/resumable small
dir/simple large
dir/simple small"
run copy bkt chunks copied
same copied "$large"
run lifecycle bkt
run delete bkt
absent chunks
[ -z "$(sed -n '/level=WARN/p' "$work/emulator.log")" ] || fail "the emulator lacks what Node's client asks for: $(cat "$work/emulator.log")"
ok "Node, metadata, download, list, copy, lifecycle, delete"

# A 503, and a chunk that is committed in part. This client cannot handle a lost reply
# at the end: it treats the finished session as an empty one.
start_emulator
. "$work/ready"
run create bkt
faults '[{"match": {"op": "put"}, "skip": 1, "do": {"effect": "status", "status": 503}},
	{"match": {"op": "put"}, "skip": 4, "do": {"effect": "short-commit", "bytes": 262144}}]'
run retried bkt "$large" faults
all_fired
same faults "$large"
ok "Node, in chunks through a 503 and a short commit: $(count received) bytes received for $large_size"
