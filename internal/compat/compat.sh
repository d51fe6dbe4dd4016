#!/bin/sh
# Unmodified clients upload to "gcsup emulator", resume after a kill, and read
# back. Clients that aren't installed are named and left out, unless COMPAT_ALL
# is set; what is there must work. The official Go library runs in the tests
# of package fakegcs.
#
#   internal/compat/compat.sh            from the repository's root
set -eu
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
emulator=
cleanup() {
	if [ -n "$emulator" ]; then kill "$emulator" 2>/dev/null || true; fi
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() { echo "FAIL $*" >&2; exit 1; }
ok() { echo "ok   $*"; }
missing() {
	if [ -n "${COMPAT_ALL:-}" ]; then fail "$1 is not installed"; fi
	echo "---- $1 is not installed"
}
# same OBJECT FILE: the object's bytes are those of the file.
same() { curl -sf "$host/storage/v1/b/bkt/o/$1?alt=media" | cmp -s - "$2" || fail "$1 is not $2"; }

start_emulator() { # FLAG...
	if [ -n "$emulator" ]; then kill "$emulator"; wait "$emulator" 2>/dev/null || true; fi
	rm -f "$work/ready"
	"$work/gcsup" emulator --addr 127.0.0.1:0 --create-buckets "$@" >"$work/ready" 2>"$work/emulator.log" &
	emulator=$!
	tries=0
	until [ -s "$work/ready" ] || [ $tries -ge 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	host=$(sed 's/^export STORAGE_EMULATOR_HOST=//' "$work/ready")
	[ -n "$host" ] || fail "the emulator did not start: $(cat "$work/emulator.log")"
}
# received: object bytes that the emulator got since it started.
received() { curl -sf "$host/_fakegcs/stats" | sed -n 's/.*"received": \([0-9]*\).*/\1/p'; }

go build -o "$work/gcsup" ./cmd/gcsup
head -c 3000001 /dev/urandom >"$work/small"
head -c 200000003 /dev/urandom >"$work/large"

start_emulator
export STORAGE_EMULATOR_HOST="$host"
"$work/gcsup" cp -q "$work/large" gs://bkt/gcsup || fail "gcsup cp"
same gcsup "$work/large"
ok "gcsup cp"
unset STORAGE_EMULATOR_HOST

gcloud_cp() { # SOURCE OBJECT COMPOSITE
	CLOUDSDK_CONFIG="$work/gcloud" CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=p CLOUDSDK_CORE_DISABLE_PROMPTS=1 \
		CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE="$host/" CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD_ENABLED="$3" \
		timeout 120 gcloud storage cp "$1" "gs://bkt/$2" >"$work/gcloud.log" 2>&1
}

if command -v gcloud >/dev/null; then
	for composite in False True; do
		for size in small large; do
			gcloud_cp "$work/$size" "gcloud-$size-$composite" "$composite" || fail "gcloud storage cp $size, composite $composite: $(cat "$work/gcloud.log")"
			same "gcloud-$size-$composite" "$work/$size"
			ok "gcloud storage cp $size, composite $composite"
		done
	done
	# Killed half way through a slow upload, and run again.
	start_emulator --rate 30MiB
	setsid sh -c "CLOUDSDK_CONFIG='$work/gcloud' CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=p CLOUDSDK_CORE_DISABLE_PROMPTS=1 \
		CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE='$host/' CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD_ENABLED=False \
		exec gcloud storage cp '$work/large' gs://bkt/gcloud-killed" >/dev/null 2>&1 &
	victim=$!
	sleep 5
	kill -9 "-$victim" 2>/dev/null || fail "gcloud was done before it could be killed"
	wait "$victim" 2>/dev/null || true
	gcloud_cp "$work/large" gcloud-killed False || fail "gcloud storage cp after a kill: $(cat "$work/gcloud.log")"
	same gcloud-killed "$work/large"
	total=$(received)
	[ "$total" -lt 300000000 ] || fail "gcloud did not resume: the emulator received $total bytes of 200000003"
	ok "gcloud storage cp, killed and run again: $total bytes received for 200000003"
else
	missing gcloud
fi

if command -v rclone >/dev/null; then
	start_emulator
	RCLONE_CONFIG=/dev/null timeout 120 rclone copyto "$work/large" ":gcs,anonymous=true,endpoint='$host/storage/v1/',bucket_policy_only=true:bkt/rclone" \
		--gcs-no-check-bucket --retries 1 || fail "rclone copyto"
	same rclone "$work/large"
	RCLONE_CONFIG=/dev/null timeout 120 rclone copyto ":gcs,anonymous=true,endpoint='$host/storage/v1/':bkt/rclone" "$work/back" --retries 1 || fail "rclone copyto back"
	cmp "$work/large" "$work/back" || fail "rclone read something else"
	ok "rclone copyto, there and back"
else
	missing rclone
fi

# gsutil speaks only https.
if command -v gsutil >/dev/null; then
	start_emulator --tls
	address=${host#https://}
	ca=$(sed -n 's/.*SSL_CERT_FILE=\(.*\)/\1/p' "$work/emulator.log")
	cat >"$work/boto.cfg" <<CFG
[Credentials]
gs_json_host = ${address%:*}
gs_json_port = ${address##*:}
gs_host = ${address%:*}
gs_port = ${address##*:}
[Boto]
num_retries = 1
[GSUtil]
state_dir = $work/gsutil
check_hashes = always
software_update_check_period = 0
CFG
	same() { curl -sf --cacert "$ca" "$host/storage/v1/b/bkt/o/$1?alt=media" | cmp -s - "$2" || fail "$1 is not $2"; }
	for size in small large; do
		BOTO_CONFIG="$work/boto.cfg" CLOUDSDK_CONFIG="$work/gcloud" CLOUDSDK_CORE_PASS_CREDENTIALS_TO_GSUTIL=False \
			timeout 120 gsutil -o "Boto:ca_certificates_file=$ca" cp "$work/$size" "gs://bkt/gsutil-$size" >"$work/gsutil.log" 2>&1 ||
			fail "gsutil cp $size: $(cat "$work/gsutil.log")"
		same "gsutil-$size" "$work/$size"
		ok "gsutil cp $size"
	done
else
	missing gsutil
fi
