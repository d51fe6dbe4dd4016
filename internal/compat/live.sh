# The program of "make live" on the emulator. All facts are true, and a fact that a
# fault makes untrue is reported.
. internal/compat/common.sh
create= # a bucket that isn't there is one of the facts

# live CODE FLAG...: runs it and checks the exit code.
live() {
	want=$1
	shift
	status=0
	limited "$compat" live -gcsup "$gcsup" -size 37748736 "$@" gs://live >"$work/live.log" 2>&1 || status=$?
	[ $status = "$want" ] || fail "live $*: exit code $status, want $want: $(grep -v '^ok' "$work/live.log")"
}
# prints REGEXP: checks that the last run printed a matching line.
prints() { grep -q "$1" "$work/live.log" || fail "live does not print \"$1\": $(grep -v '^ok' "$work/live.log")"; }
# bucket FLAG...: starts an emulator with gs://live.
bucket() {
	start_emulator "$@"
	export STORAGE_EMULATOR_HOST="$host"
	api "/storage/v1/b?project=p" -o /dev/null -H "Content-Type: application/json" -d '{"name": "live", "versioning": {"enabled": true}}' || fail "the bucket can't be made"
}
empty() {
	api "/storage/v1/b/live/o?versions=true" -o "$work/left" || fail "the bucket can't be listed"
	if grep -q '"name"' "$work/left"; then fail "live left objects: $(cat "$work/left")"; fi
}

# An upload takes 3.6 seconds, and gcsup reports progress every second. It is
# killed at 83 % at the latest.
bucket --rate 10MiB
live 0
prints '^0 differences, [1-9][0-9]* held, 0 not checked, 0 not deleted$'
empty
ok "live: $(tail -1 "$work/live.log")"

# The upload is finished before the kill, or the service has committed nothing of it
# after the kill.
bucket
faults '[{"match": {"op": "query"}, "times": -1, "do": {"effect": "no-range"}}]'
live 2 -run '^(media|killed-upload-1)$' -max-size 37748736
prints '^NOT CHECKED killed-upload-1: '
prints '^0 differences, 1 held, 1 not checked, 0 not deleted$'
ok "live reports what it could not check"

faults '[{"match": {"op": "cancel"}, "times": -1, "do": {"effect": "status", "status": 204}},
	{"match": {"op": "query"}, "times": -1, "do": {"effect": "not-found"}}]'
live 1 -run '^(media|cancel)$'
prints '^DIFFERS     cancel$'
prints '^    seen:     .* 204 .*want 499'
prints '^1 differences, 1 held, 0 not checked, 0 not deleted$'
live 1 -json -run '^(media|cancel)$'
prints '^{"type":"differs","name":"cancel",'
prints '^{"type":"summary","counts":{"differs":1,"held":1,'
ok "live reports a difference"

bucket --rate 10MiB
faults '[{"match": {"op": "query"}, "times": -1, "do": {"effect": "not-found"}}]'
live 1 -run '^killed-upload-1$'
prints '^DIFFERS     killed-upload-1$'
ok "live reports an upload that cannot be resumed"

bucket
faults '[{"match": {"op": "delete"}, "times": -1, "do": {"effect": "status", "status": 403}}]'
live 1 -run '^media$'
prints '^NOT DELETED gs://live/gcsup-live-'
ok "live reports what it could not delete"

# SIGTERM between two uploads, when an object exists and a session is open.
bucket --rate 10MiB
timeout --foreground -k 1 300 "$compat" live -gcsup "$gcsup" -size 37748736 -run '^(media|killed-.*)$' gs://live >"$work/live.log" 2>&1 &
runs=$!
until grep -q 'ok  *killed-upload-1' "$work/live.log"; do
	kill -0 $runs 2>/dev/null || fail "live does not come to its first upload: $(cat "$work/live.log")"
	sleep 0.1
done
kill -s TERM $runs # timeout passes it on
wait $runs || true
prints '^live: interrupted'
empty
ok "live, interrupted, cleans up"
