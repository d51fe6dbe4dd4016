# restic, whose address of the service is fixed: it goes through a proxy.
. internal/compat/common.sh
need restic

start_emulator
start_front
export GOOGLE_ACCESS_TOKEN=none GOOGLE_PROJECT_ID=p
export RESTIC_REPOSITORY=gs:bkt:/repo RESTIC_PASSWORD=none RESTIC_CACHE_DIR="$work/cache"
run() { limited restic "$@" >"$work/restic.log" 2>&1 || fail "restic $*: $(cat "$work/restic.log")"; }
# restored: checks that the latest snapshot has the files of the source.
restored() {
	rm -rf "$work/back"
	run restore latest --target "$work/back"
	for file in small large empty; do cmp -s "$work/back/$work/source/$file" "$work/source/$file" || fail "restic restored other bytes of $file"; done
}

mkdir "$work/source"
ln "$small" "$work/source/small" 2>/dev/null || cp "$small" "$work/source/small"
ln "$large" "$work/source/large" 2>/dev/null || cp "$large" "$work/source/large"
: >"$work/source/empty"
run init
run backup "$work/source"
run check --read-data
restored
ok "restic backup, check, restore: $(count insert) objects"

head -c 5000000 /dev/urandom >"$work/source/more"
faults '[{"match": {"op": "insert"}, "skip": 1, "do": {"effect": "status", "status": 503}},
	{"match": {"op": "insert"}, "skip": 2, "do": {"effect": "lose-reply"}},
	{"match": {"op": "read"}, "skip": 3, "do": {"effect": "cut-reply", "bytes": 1000}}]'
run backup "$work/source"
restored
all_fired
run forget --keep-last 1 --prune
run check --read-data
restored
ok "restic backup and restore through a 503, a lost reply and a cut reply; forget, prune"
