# PostgreSQL archives its write-ahead log through an outbox while both are killed, and is restored from the
# objects alone. The commands are those of docs/how-to/outbox.md and its unit.
. internal/compat/common.sh
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -z "$bin" ] || PATH="$bin:$PATH"
need initdb

# The server refuses to run as root, and its user cannot read the directory of the script.
pg=$(mktemp -d)
server= # its process ID
finish() {
	if [ -n "$server" ]; then kill -s QUIT "$server" 2>/dev/null || true; await_end "$server"; fi
	for group in $victim; do kill -s KILL -- "-$group" 2>/dev/null || true; done
	stop_emulator
	rm -rf "$pg"
}
cp "$gcsup" "$pg/gcsup"
mkdir "$pg/wal"
user=$(id -un)
as= # what runs a command as the user of the server. runuser would make a session, which takes part in signals
if [ "$(id -u)" = 0 ]; then
	need setpriv
	user=postgres
	chown -R $user "$pg"
	as="setpriv --reuid=$user --regid=$user --init-groups"
fi

# page FILE EXPRESSION: prints lines of a file, with the paths and the bucket of this script.
page() { sed -n "$2" "$1" | sed "s|/usr/\(local/\)\?bin/gcsup|$pg/gcsup|g; s|/var/spool/wal|$pg/wal|g; s|gs://\${BUCKET}/|gs://bkt/|g"; }
settings=$(page docs/how-to/outbox.md '/^archive_/p')
run=$(page internal/dist/package/gcsup-wal.service 's/^ExecStart=\(.* outbox run .*\)/\1/p')
case $settings in *"archive_command = '$pg/gcsup outbox put %p $pg/wal'"*) ;; *) fail "docs/how-to/outbox.md has no archive_command that this script can run: $settings" ;; esac
case $run in "$pg/gcsup outbox run "*" $pg/wal gs://bkt/wal/ --ordered") ;; *) fail "gcsup-wal.service has no outbox run that this script can run: $run" ;; esac

# await_end PID: waits for the end of a process that is no child.
await_end() { while kill -0 "$1" 2>/dev/null; do sleep 0.05; done; }
# await WHAT COMMAND...: waits until the command succeeds.
await() {
	tries=600 what=$1
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$what did not happen: $(tail -n 5 "$work/background.log" "$pg"/*.log)"
		sleep 0.1
	done
}
# sql DIRECTORY QUERY: prints the result of the server of the directory.
sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$pg/$1" -U "$user" -d postgres -c "$2"; }
# start DIRECTORY: starts a server. The processes of one that was killed may have its memory for a moment.
start() {
	tries=0
	until (cd "$pg" && $as pg_ctl -D "$pg/$1" -l "$pg/$1.log" -w -t 30 start) >"$work/start.log" 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 20 ] || fail "PostgreSQL does not start: $(tail -n 20 "$pg/$1.log")"
		sleep 0.1
	done
	server=$(head -n 1 "$pg/$1/postmaster.pid")
}
# kill_server DIRECTORY [COMMAND]: kills a server when the command has ended, and the archive_command that it runs.
kill_server() {
	archiver=$(sql "$1" "select pid from pg_stat_activity where backend_type = 'archiver'")
	${2:-true}
	kill -s KILL "$server"
	kill -s KILL -- "-$archiver" 2>/dev/null || true
	await_end "$server"
	server=
}
# copies: sets copies to the number of copies by outbox put that are not complete.
copies() {
	set -- "$pg/wal/.gcsup-put-"*
	if [ -e "$1" ]; then copies=$#; else copies=0; fi
}
# copying: waits until PostgreSQL archives one of the segments that it makes now, at most for some seconds.
copying() {
	(sql data "$insert" || true) >/dev/null 2>&1 &
	copies
	before=$copies tries=100000
	until copies && [ $copies != $before ] || [ $((tries -= 1)) = 0 ]; do :; done
}
start_outbox() { background env STORAGE_EMULATOR_HOST="$host" GCSUP_STATE_DIR="$pg/state" $as $run --max-wait 1s; }
waited=0 # segments in the outbox when it was killed
kill_outbox() {
	kill -s KILL -- "-$victim" 2>/dev/null || fail "the outbox ended: $(cat "$work/background.log")"
	wait "$victim" 2>/dev/null || true
	victim=
	waited=$((waited + $(files ! -path '*/.*' | wc -l) + $(files -path '*/removing/*' | wc -l)))
}
# files TEST...: prints the files below the outbox that pass the tests of find.
files() { find "$pg/wal" -type f "$@"; }
# segments: prints the names of the segments in the bucket, in their order.
segments() { api "/storage/v1/b/bkt/o?prefix=wal/&maxResults=1000" | sed -n 's|.*"name": "wal/\([0-9A-F]\{24\}\)".*|\1|p' | sort; }
# gapless: checks that a restore from the bucket, as it is now, would find all segments up to the last.
gapless() {
	next=
	for segment in $(segments); do
		number=$((0x${segment#????????????????}))
		[ "$number" = "${next:-$number}" ] || fail "a segment is missing before $segment"
		next=$((number + 1))
	done
}

start_emulator
(cd "$pg" && $as initdb -D "$pg/data" -A trust -U "$user" --no-sync --wal-segsize=1) >"$work/initdb.log" 2>&1 || fail "initdb: $(cat "$work/initdb.log")"
# With wal_keep_size, the server keeps the archived segments, so that they can be compared with the objects.
cat >>"$pg/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$pg/data'
wal_keep_size = '1GB'
$settings
CONF
start data
start_outbox
sql data 'create table t (n serial primary key, text text)'
(cd "$pg" && $as pg_basebackup -h "$pg/data" -D "$pg/base" -X none -c fast --no-sync) >"$work/backup.log" 2>&1 || fail "pg_basebackup: $(cat "$work/backup.log")"

# Three megabytes of log for each round, in which one or both are killed.
insert="insert into t (text) select repeat(md5(random()::text), 10) from generate_series(1, 6000)"
for round in 1 2 3 4; do
	faults '[{"match": {"op": "insert"}, "skip": 1, "do": {"effect": "status", "status": 503}},
		{"match": {"op": "insert"}, "skip": 2, "do": {"effect": "lose-reply"}}]'
	case $round in
	1)
		sql data "$insert" &
		writer=$!
		sleep 0.1
		kill_outbox
		start_outbox
		wait "$writer" || fail "PostgreSQL refused rows"
		;;
	2) sql data "$insert"; kill_server data copying; start data ;;
	*) sql data "$insert"; kill_outbox; kill_server data copying; start data; start_outbox ;;
	esac
	gapless
done
sql data "insert into t (text) values ('the last one')"
last=$(sql data 'select pg_walfile_name(pg_current_wal_lsn())')
sql data 'select pg_switch_wal()' >/dev/null
await "the archival of $last" test -f "$pg/data/pg_wal/archive_status/$last.done"
await "the end of the backlog" sh -c "[ -z \"\$(find '$pg/wal' -type f ! -path '*/.*')\" ]"
want=$(sql data "select count(*), md5(string_agg(n || text, ',' order by n)) from t")
kill_server data
kill -s TERM -- "-$victim"
status=0
wait "$victim" || status=$?
victim=
[ $status = 0 ] || fail "the outbox ended with $status: $(cat "$work/background.log")"
all_fired
copies # those that were killed
rest=$(files ! -name '.gcsup-put-*' ! -path "$pg/wal/.outbox/*"; files -path '*/.outbox/removing/*')
[ -z "$rest" ] || fail "the outbox still has $rest"

# Each file that PostgreSQL has archived is an object with the same bytes, and there is no other object.
archived=0
for file in "$pg"/data/pg_wal/archive_status/*.done; do
	name=$(basename "$file" .done)
	same "wal%2F$name" "$pg/data/pg_wal/$name"
	archived=$((archived + 1))
done
[ "$(api "/storage/v1/b/bkt/o?maxResults=1000" | grep -c '"name"')" = $archived ] || fail "the bucket has other objects than the $archived archived files"
gapless

rm -rf "$pg/data"
cat >>"$pg/base/postgresql.conf" <<CONF
archive_mode = off
unix_socket_directories = '$pg/base'
restore_command = 'curl -sf $host/bkt/wal/%f -o %p'
CONF
: >"$pg/base/recovery.signal"
[ -z "$as" ] || chown $user "$pg/base/recovery.signal"
start base
await "the end of the recovery" sh -c "[ \"\$(psql -X -q -A -t -h '$pg/base' -U $user -d postgres -c 'select pg_is_in_recovery()')\" = f ]"
got=$(sql base "select count(*), md5(string_agg(n || text, ',' order by n)) from t")
[ "$got" = "$want" ] || fail "restored $got, want $want"
ok "PostgreSQL $(postgres --version | awk '{ print $3 }') restored ${got%|*} rows from $archived archived files, after 3 kills of the outbox with $waited segments in it, and 4 of the server with $copies copies under way"
