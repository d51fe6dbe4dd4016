#!/usr/bin/env bash
# Runs every fuzz target of all modules, or only those that are named, for the given
# time each (default 60s):
#
#	bash internal/e2e/fuzz.sh 5s
#	bash internal/e2e/fuzz.sh 60s FuzzRequest
#
# As many workers run as GOMAXPROCS says. An input that fails is kept below testdata/fuzz of its
# package, and later runs of the tests try it again.
set -euo pipefail
cd "$(dirname "$0")/../.."

time=${1:-60s}
only=${2:-Fuzz[A-Za-z0-9_]+}
bin=$(mktemp -d)
trap 'rm -r "$bin"' EXIT
corpus=$(go env GOCACHE)/fuzz

# build PACKAGE: go test -fuzz would link the program again for each target.
build() {
	local program=$bin/${1//\//-}
	cd "$1" && go test -c -fuzz . -o "$program.test" . && go list . >"$program.path"
}

# fuzz PACKAGE TARGET: runs one target. Go 1.26 sometimes reports the end of the time as
# a failure, without an input that failed:
# https://github.com/golang/go/issues/75804.
fuzz() {
	local out status=0 program=$bin/${1//\//-}
	out=$(cd "$1" && "$program.test" -test.paniconexit0 -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$time" \
		-test.fuzzcachedir "$corpus/$(cat "$program.path")" </dev/null 2>&1) || status=$?
	printf '%s %s\n' "$1" "$2"
	if [ $status = 0 ] || grep -q '^ *context deadline exceeded$' <<<"$out" && ! grep -q 'Failing input' <<<"$out"; then
		tail -n 4 <<<"$out"
		return 0
	fi
	printf '%s\n' "$out"
	return $status
}

targets=$(grep -rHoE --include='*_test.go' "^func $only\\b" . | sort)
export -f build
export bin
cut -d : -f 1 <<<"$targets" | xargs -n 1 dirname | uniq | xargs -P 2 -I {} bash -c 'build "$1"' - {}
while IFS=: read -r file target; do
	fuzz "$(dirname "$file")" "${target#func }"
done <<<"$targets"
