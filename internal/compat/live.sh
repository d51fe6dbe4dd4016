# The program of "make live", with the emulator in place of the service: all
# facts hold there, and one that is made not to hold is told.
. internal/compat/common.sh
create= # a bucket that isn't there is one of the facts

go build -o "$work/live" ./internal/compat/live
# live CODE FLAG...: runs it, and wants that exit code.
live() {
	want=$1
	shift
	status=0
	limited "$work/live" -gcsup "$gcsup" -size 37748736 "$@" gs://live >"$work/live.log" 2>&1 || status=$?
	[ $status = "$want" ] || fail "live $*: exit code $status, want $want: $(grep -v '^ok' "$work/live.log")"
}
# tells TEXT: what the last one printed has this line.
tells() { grep -q "$1" "$work/live.log" || fail "live does not tell \"$1\": $(grep -v '^ok' "$work/live.log")"; }
# bucket FLAG...: an emulator with gs://live.
bucket() {
	start_emulator "$@"
	export STORAGE_EMULATOR_HOST="$host"
	api "/storage/v1/b?project=p" -o /dev/null -H "Content-Type: application/json" -d '{"name": "live", "versioning": {"enabled": true}}' || fail "the bucket can't be made"
}
empty() {
	api "/storage/v1/b/live/o?versions=true" -o "$work/left" || fail "the bucket can't be listed"
	if grep -q '"name"' "$work/left"; then fail "live left objects: $(cat "$work/left")"; fi
}

# A file takes 3.6 seconds, and gcsup tells each second how far it is: at 83 %
# at the latest it is killed.
bucket --rate 10MiB
live 0
tells '^0 differences, [1-9][0-9]* held, 0 not checked, 0 not deleted$'
empty
ok "live: $(tail -1 "$work/live.log")"

# A file that has arrived before the kill, or that was killed and of which the
# service says that it holds nothing.
bucket
faults '[{"match": {"op": "query"}, "times": -1, "do": {"effect": "no-range"}}]'
live 2 -run '^(media|killed-upload-1)$' -max-size 37748736
tells '^NOT CHECKED killed-upload-1: '
tells '^0 differences, 1 held, 1 not checked, 0 not deleted$'
ok "live tells what it could not check"

faults '[{"match": {"op": "cancel"}, "times": -1, "do": {"effect": "status", "status": 204}},
	{"match": {"op": "query"}, "times": -1, "do": {"effect": "not-found"}}]'
live 1 -run '^(media|cancel)$'
tells '^DIFFERS     cancel$'
tells '^    seen:     .* 204 .*want 499'
tells '^1 differences, 1 held, 0 not checked, 0 not deleted$'
live 1 -json -run '^(media|cancel)$'
tells '^{"type":"differs","name":"cancel",'
tells '^{"type":"summary","counts":{"differs":1,"held":1,'
ok "live tells a difference"

bucket --rate 10MiB
faults '[{"match": {"op": "query"}, "times": -1, "do": {"effect": "not-found"}}]'
live 1 -run '^killed-upload-1$'
tells '^DIFFERS     killed-upload-1$'
ok "live tells of an upload that can't be resumed"

bucket
faults '[{"match": {"op": "delete"}, "times": -1, "do": {"effect": "status", "status": 403}}]'
live 1 -run '^media$'
tells '^NOT DELETED gs://live/gcsup-live-'
ok "live tells what it could not delete"

# Interrupted between uploads, with an object made and a session open.
bucket --rate 10MiB
timeout --foreground -k 1 300 "$work/live" -gcsup "$gcsup" -size 37748736 -run '^(media|killed-.*)$' gs://live >"$work/live.log" 2>&1 &
runs=$!
until grep -q 'ok  *killed-upload-1' "$work/live.log"; do
	kill -0 $runs 2>/dev/null || fail "live does not come to its first upload: $(cat "$work/live.log")"
	sleep 0.1
done
kill -s TERM $runs # timeout passes it on
wait $runs || true
tells '^live: interrupted'
empty
ok "live, interrupted, cleans up"
