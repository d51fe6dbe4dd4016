# Functions for the scripts of the clients. compat.sh runs them and sets
#   work    a directory for this client, deleted afterwards
#   gcsup   the program under test
#   compat  the program of this directory, with one for each task
#   small, large, large_size    files of random bytes
set -eu

quantum=262144 # what the service commits in
host=          # the address of the running emulator, with the scheme
ca=            # the file of its certificate authority, with --tls
front=         # the process ID of the proxy
emulator=      # its process ID
create=--create-buckets
victim=        # the process group that "background" started

finish() {
	for group in $victim; do kill -s KILL -- "-$group" 2>/dev/null || true; done
	if [ -n "$front" ]; then kill "$front" 2>/dev/null || true; fi
	stop_emulator
}
trap finish EXIT
trap 'exit 143' INT TERM HUP

fail() { echo "FAIL $*" >&2; exit 1; }
ok() { echo "ok   $*"; }
# need COMMAND: ends the script if the client isn't installed. This is an error only
# if COMPAT_ALL is set.
need() {
	command -v "$1" >/dev/null && return
	if [ -n "${COMPAT_ALL:-}" ]; then fail "$1 is not installed"; fi
	echo "---- $1 is not installed"
	exit 0
}

# start_emulator FLAG...: stops the emulator and starts another.
start_emulator() {
	stop_emulator
	rm -f "$work/ready"
	"$gcsup" emulator --addr 127.0.0.1:0 $create "$@" >"$work/ready" 2>"$work/emulator.log" &
	emulator=$!
	until [ -s "$work/ready" ]; do
		kill -0 "$emulator" 2>/dev/null || break
		sleep 0.1
	done
	host=$(sed -n 's/^export STORAGE_EMULATOR_HOST=//p' "$work/ready")
	[ -n "$host" ] || fail "the emulator did not start: $(cat "$work/emulator.log")"
	ca=$(sed -n 's/.*SSL_CERT_FILE=//p' "$work/emulator.log")
}
# start_held BYTES: starts an empty emulator with a directory. Until release it
# reads at most BYTES of each request, so that its client can be killed.
start_held() {
	stop_emulator
	rm -rf "$work/bytes"
	start_emulator --dir "$work/bytes"
	do='"times": -1, "do": {"effect": "stall-body", "bytes": '$1'}'
	faults '[{"match": {"op": "put"}, '"$do"'}, {"match": {"op": "finalize"}, '"$do"'}]'
}
release() { api /_fakegcs/faults -X DELETE || fail "the emulator keeps its faults"; }
# start_front: starts a proxy that passes the requests for the service on to the emulator. Programs use it
# with HTTPS_PROXY, front.pem as a certificate authority, and account.json as the key of a service account.
start_front() {
	STORAGE_EMULATOR_HOST="$host" "$compat" front "$work/front.pem" "$work/account.json" >"$work/front.address" &
	front=$!
	until [ -s "$work/front.address" ]; do
		kill -0 "$front" 2>/dev/null || fail "the proxy did not start"
		sleep 0.1
	done
	export HTTPS_PROXY="$(cat "$work/front.address")" SSL_CERT_FILE="$work/front.pem"
}
stop_emulator() {
	if [ -z "$emulator" ]; then return; fi
	kill "$emulator" 2>/dev/null || true
	wait "$emulator" 2>/dev/null || true
	emulator=
}

# api PATH CURL-ARGUMENT...: makes a request to the emulator.
api() {
	path=$1
	shift
	curl -sf --max-time 60 ${ca:+--cacert "$ca"} "$@" "$host$path"
}
# same OBJECT FILE: checks that the object's bytes are those of the file.
same() {
	api "/storage/v1/b/bkt/o/$1?alt=media" -o "$work/object" || fail "$1 can't be read"
	cmp -s "$work/object" "$2" || fail "$1 has not the bytes of $2"
}
# absent OBJECT: checks that the object does not exist.
absent() {
	answer=$(api "/storage/v1/b/bkt/o/$1" -o "$work/object" -w '%{http_code}' || true)
	[ "$answer" = 404 ] || fail "$1 is not gone: status $answer"
}
# count NAME: prints a total since the emulator started: "received", or an operation.
count() {
	n=$(api /_fakegcs/stats | sed -n 's/.*"'"$1"'": \([0-9]*\).*/\1/p')
	echo "${n:-0}"
}
# faults JSON: appends to the fault plan.
faults() { api /_fakegcs/faults -d "$1" || fail "the emulator refuses the faults $1"; }
# all_fired: checks that every fault of the plan acted as often as planned.
all_fired() {
	plan=$(api /_fakegcs/faults) || fail "cannot read the fault plan of the emulator"
	case $plan in *'"done": false'*) fail "a fault did not act: $plan" ;; esac
}

# limited COMMAND...: runs it for at most five minutes.
limited() { timeout --foreground -k 1 300 "$@"; }
# background COMMAND...: runs it in its own process group, as a child of this shell.
# Its locks are released after the shell has waited for it.
background() {
	setsid "$@" >"$work/background.log" 2>&1 &
	victim=$!
}
# kill_at BYTES: sends SIGKILL to the background process group when the directory
# has all complete blocks of 256 KiB that start_held BYTES lets through.
kill_at() {
	tries=0
	until [ "$(ls -ln "$work/bytes/blobs" | awk '{ n += $5 } END { print n + 0 }')" -ge $(($1 / quantum * quantum)) ]; do
		kill -0 "$victim" 2>/dev/null || fail "ended before $1 bytes had arrived: $(cat "$work/background.log")"
		tries=$((tries + 1))
		[ $tries -lt 6000 ] || fail "$1 bytes have not arrived after 300 s"
		sleep 0.05
	done
	kill -s KILL -- "-$victim" 2>/dev/null || fail "ended before it could be killed"
	status=0
	wait "$victim" 2>/dev/null || status=$?
	[ $status = 137 ] || fail "ended by itself ($status) before it could be killed: $(cat "$work/background.log")"
	victim=
}
# resumed SIZE UPLOADS: checks that UPLOADS uploads, each killed once, sent no committed
# byte twice: each may send again less than 256 KiB, and metadata.
resumed() {
	total=$(count received)
	[ "$total" -ge "$1" ] || fail "the emulator received $total bytes of $1"
	[ "$total" -le $(($1 + $2 * (quantum + 16384))) ] || fail "it did not resume: the emulator received $total bytes for $1"
}
