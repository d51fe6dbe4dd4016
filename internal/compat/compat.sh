#!/bin/sh
# Unmodified clients upload to "gcsup emulator", resume after a kill, and read
# back. A client that is not installed is reported and skipped, unless COMPAT_ALL
# is set.
#
#   sh internal/compat/compat.sh [CLIENT...]
#
# Each client has a script in this directory. COMPAT_SECONDS limits the time of each
# (default 400). With COMPAT_RECORD=1 the results are recorded in results.json, for the table in
# docs/emulator/emulator.md.
set -eu
cd "$(dirname "$0")/../.."

clients="gcsup official suite-go gcloud rclone restic gsutil node postgres live"
if [ $# = 0 ]; then set -- $clients; fi
for client; do
	case " $clients suite-go-system suite-docker suite-node suite-node-system suite-python suite-python-system suite-gcsfs " in # those of Node.js and Python need SUITE_DIR
	*" $client "*) ;;
	*)
		echo "compat: unknown client $client; want one of $clients" >&2
		exit 64
		;;
	esac
done
for tool in go curl timeout awk cmp; do
	command -v $tool >/dev/null || { echo "compat: needs $tool in PATH" >&2; exit 69; }
done

# Do not use the caller's settings or a proxy.
unset STORAGE_EMULATOR_HOST GOOGLE_APPLICATION_CREDENTIALS
export NO_PROXY="127.0.0.1${NO_PROXY:+,$NO_PROXY}" no_proxy="127.0.0.1${no_proxy:+,$no_proxy}"

top=$(mktemp -d)
running=
cleanup() {
	if [ -n "$running" ]; then
		kill "$running" 2>/dev/null || true # timeout passes it on to all
		wait "$running" 2>/dev/null || true
		kill -s KILL -- "-$running" 2>/dev/null || true
	fi
	rm -rf "$top"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

export gcsup="$top/gcsup" compat="$top/compat" small="$top/small" large="$top/large" large_size=200000003
go build -o "$top/" ./cmd/gcsup ./internal/compat
head -c 3000001 /dev/urandom >"$small"
head -c $large_size /dev/urandom >"$large"

# record CLIENT: records that its script has passed. Those of suites record their counts.
record() {
	case $1 in
	official) version=$(go list -m -f '{{.Version}}' cloud.google.com/go/storage) ;;
	node) version=$(sed -n 's/^version=//p' internal/compat/node.sh) ;;
	gcloud) version=$(gcloud version --format 'value("Google Cloud SDK")' 2>/dev/null) ;;
	gsutil) version=$(gsutil version 2>/dev/null | sed -n 's/^gsutil version: //p') ;;
	rclone) version=$(rclone version | sed -n 's/^rclone v*//p') ;;
	restic) version=$(restic version | awk '{ print $2 }') ;;
	*) return ;;
	esac
	[ -z "$version" ] || "$compat" suites -record "$1" -version "$version"
}

failed=
for client; do
	export work="$top/work"
	mkdir "$work"
	begun=$(date +%s)
	timeout -k 5 "${COMPAT_SECONDS:-400}" sh "internal/compat/$client.sh" &
	running=$!
	status=0
	wait $running || status=$?
	kill -s KILL -- "-$running" 2>/dev/null || true # what it has left
	running=
	if [ $status = 124 ] || [ $status = 137 ]; then echo "FAIL $client: not finished after ${COMPAT_SECONDS:-400} s" >&2; fi
	if [ $status != 0 ]; then
		failed="$failed $client"
	elif [ -n "${COMPAT_RECORD:-}" ]; then
		record "$client"
	fi
	echo "     $client: $(($(date +%s) - begun)) s"
	rm -rf "$work"
done
if [ -n "$failed" ]; then
	echo "FAIL$failed" >&2
	exit 1
fi
