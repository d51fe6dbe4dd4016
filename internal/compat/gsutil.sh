# gsutil, which supports only https.
. internal/compat/common.sh
need gsutil

start_emulator --tls
address=${host#https://}
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
export BOTO_CONFIG="$work/boto.cfg" CLOUDSDK_CONFIG="$work/gcloud" CLOUDSDK_CORE_PASS_CREDENTIALS_TO_GSUTIL=False
run() { limited gsutil -o "Boto:ca_certificates_file=$ca" "$@" >"$work/gsutil.log" 2>&1 || fail "gsutil $*: $(cat "$work/gsutil.log")"; }

run cp "$small" gs://bkt/small
same small "$small"
run cp "$large" gs://bkt/large
same large "$large"
run ls gs://bkt
printf 'gs://bkt/large\ngs://bkt/small\n' | cmp -s - "$work/gsutil.log" || fail "gsutil ls prints something else: $(cat "$work/gsutil.log")"
run mv gs://bkt/large gs://bkt/moved
absent large
run cp gs://bkt/moved "$work/back"
cmp -s "$work/back" "$large" || fail "gsutil read something else"
run rm gs://bkt/small
absent small
ok "gsutil cp, small and large, ls, mv, cp back, and rm"
