#!/bin/sh
# Runs a release of another platform here: uploads, kills, resumes, and the tests
# of chunk, session, session/state and upload.
#
#   sh internal/dist/foreign.sh arm64      # Debian: qemu-user-static
#   sh internal/dist/foreign.sh windows    # Debian: wine64 gcc-mingw-w64-x86-64
#
# SECONDS_PER_PACKAGE limits the tests of each package (default 600), and LOGS is a
# directory for their output. A failed test fails the script. The tests that qemu or wine cannot
# run are listed in skip, each with its reason.
set -eu
cd "$(dirname "$0")/../.."
need() {
	for tool; do
		command -v "$tool" >/dev/null || { echo "foreign.sh: needs $tool in PATH" >&2; exit 69; }
	done
}
fail() { echo "FAIL $*" >&2; exit 1; }
need go curl timeout cmp
unset STORAGE_EMULATOR_HOST GOOGLE_APPLICATION_CREDENTIALS

top=$(mktemp -d)
emulator=
cleanup() {
	if [ -n "$emulator" ]; then kill "$emulator" 2>/dev/null || true; fi
	if [ "$platform" = windows ]; then WINEPREFIX=$top/wine wineserver -k 2>/dev/null || true; fi
	rm -rf "$top"
}
platform=${1:-}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

case $platform in
arm64)
	need qemu-aarch64-static
	goos=linux goarch=arm64 runner=qemu-aarch64-static exe=
	data=$top/data
	path() { echo "$data/$1"; }
	# It starts the test binary as a second program, which qemu cannot without
	# binfmt_misc.
	skip='TestLockOfAnotherProcess'
	overlay=
	;;
windows)
	wine64=/usr/lib/wine/wine64 # /usr/bin/wine is a script, which kill would kill instead
	need "$wine64" wineserver x86_64-w64-mingw32-gcc
	goos=windows goarch=amd64 runner=$wine64 exe=.exe
	export WINEPREFIX="$top/wine" WINEDEBUG=-all WINEARCH=win64 WINEDLLOVERRIDES='mscoree,mshtml='
	timeout 300 "$wine64" wineboot -i >/dev/null 2>&1
	# Go 1.26 gets its random numbers from this function, which wine 8 does not have.
	cat >"$top/prng.c" <<-'EOF'
		#include <windows.h>
		BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); // RtlGenRandom
		__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
			return SystemFunction036(data, (ULONG)size);
		}
	EOF
	x86_64-w64-mingw32-gcc -shared -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" "$top/prng.c" -ladvapi32
	# os.Root and os.RemoveAll delete by FileDispositionInformationEx, which wine 8 does
	# not have. The tests use Go's fallback for systems without it. The release does
	# not: it warns that it cannot delete the saved upload.
	at=$(go env GOROOT)/src/internal/syscall/windows/at_windows.go
	sed 's/^var TestDeleteatFallback bool$/var TestDeleteatFallback = true/' "$at" >"$top/at_windows.go"
	if cmp -s "$at" "$top/at_windows.go"; then fail "TestDeleteatFallback is not in $at"; fi
	echo "{\"Replace\":{\"$at\":\"$top/at_windows.go\"}}" >"$top/overlay"
	overlay="-overlay $top/overlay"
	skip=none
	data=$WINEPREFIX/drive_c/data
	path() { printf 'C:\\data\\%s\n' "$(echo "$1" | tr / '\\')"; }
	;;
*)
	echo "foreign.sh: want arm64 or windows" >&2
	exit 64
	;;
esac

go run ./internal/dist -binaries -o "$top/dist" -version v0 -targets "linux/amd64,$goos/$goarch"
gcsup="$runner $top/dist/gcsup_v0_${goos}_$goarch$exe"
$gcsup version

"$top/dist/gcsup_v0_linux_amd64" emulator --addr 127.0.0.1:0 --create-buckets --log text >"$top/address" 2>"$top/requests" &
emulator=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	if [ -s "$top/address" ]; then break; fi
	sleep 1
done
. "$top/address"
mkdir -p "$data/tree/below"
head -c 50000003 /dev/urandom >"$data/large"
echo a >"$data/tree/a"
echo b >"$data/tree/below/b c"
GCSUP_STATE_DIR=$(path state)
export GCSUP_STATE_DIR

# same OBJECT FILE compares an object with a file.
same() {
	curl -fsS "$STORAGE_EMULATOR_HOST/storage/v1/b/bucket/o/$1?alt=media" | cmp - "$data/$2" || fail "$1 differs from $2"
}

$gcsup cp --limit-rate 4MiB --chunk-size 4MiB "$(path large)" gs://bucket/large >"$top/first" 2>&1 &
client=$!
committed=0
for _ in $(seq 60); do
	committed=$(grep -c 'committed bytes=' "$top/requests" || true)
	if [ "$committed" -ge 3 ]; then break; fi
	sleep 0.5
done
[ "$committed" -ge 3 ] || { cat "$top/first" "$top/requests"; fail "nothing was committed"; }
code=0
$gcsup cp "$(path large)" gs://bucket/large >"$top/second" 2>&1 || code=$?
[ "$code" = 75 ] || { cat "$top/second"; fail "exit code $code of a second process, want 75"; }
echo "ok   lock: $(tail -n 1 "$top/second")"
kill -s KILL $client
wait $client 2>/dev/null || true
$gcsup uploads list
$gcsup resume --all --json >"$top/resumed"
grep '"type":"result"' "$top/resumed" | grep '"status":"ok"' | grep -v '"resumed_from":0,' >/dev/null || { cat "$top/resumed"; fail "not resumed"; }
same large large
echo "ok   kill and resume: $(grep -o '"resumed_from":[0-9]*' "$top/resumed" | tail -n 1)"
$gcsup cp -q -r "$(path tree)" gs://bucket/
same tree%2Fa tree/a
same tree%2Fbelow%2Fb%20c "tree/below/b c"
echo "ok   directory: tree/a, tree/below/b c"

failed=
for path in chunk session session/state upload; do
	package=${path##*/}
	GOOS=$goos GOARCH=$goarch CGO_ENABLED=0 go test $overlay -trimpath -buildvcs=false -c -o "$top/$package.test$exe" ./$path
	code=0
	(cd $path && timeout -k 5 "${SECONDS_PER_PACKAGE:-600}" $runner "$top/$package.test$exe" -test.short -test.v -test.skip "^($skip)\$") >"$top/$package.log" 2>&1 || code=$?
	tr -d '\r' <"$top/$package.log" >"$top/log"
	if [ -n "${LOGS:-}" ]; then cp "$top/log" "$LOGS/$platform-$package.log"; fi
	echo "$package: exit code $code, $(grep -c '^--- PASS' "$top/log") passed, $(grep -c '^--- FAIL' "$top/log") failed, $(grep -c '^--- SKIP' "$top/log") skipped by -short or themselves"
	if [ "$code" = 0 ]; then continue; fi
	failed="$failed $package"
	awk '
		/^=== (RUN|CONT|NAME) / { test = $3; sub(/\/.*/, "", test) }
		/^ +[a-z0-9_]+\.go:[0-9]+: / && !/: seed / { if (!(test in why)) why[test] = $0 }
		/^--- FAIL/ { print "  " $3 ":" why[$3]; found = 1 }
		END { exit !found }
	' "$top/log" || tail -n 20 "$top/log"
done
echo "not run: $skip"
if [ -n "$failed" ]; then fail "the tests of$failed"; fi
