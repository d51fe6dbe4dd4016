#!/bin/sh
# Prints how many mutants the own tests of each package kill. A mutant is the program with one token changed, such as
# < to <=. The tests kill it if they fail, or do not end in time. The mutants that survive are printed first.
#
#	sh internal/mutate/own.sh DIRECTORY...
#
# gremlins changes a copy of the tree. It counts mutants that do not compile as killed. MUTATE has further flags of it.
set -eu
cd "$(dirname "$0")/../.."
export GOFLAGS="-count=1${GOFLAGS:+ $GOFLAGS}"
gremlins=github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 # pinned, and outside go.mod
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR="$dir"

# count STATUS prints the number of mutants with this status. The totals of gremlins leave out some.
count() { grep -o "\"status\":\"$1\"" "$dir/out.json" | wc -l; }

for package; do
	rm -f "$dir/out.json"
	# -E / leaves out the files of directories below.
	# shellcheck disable=SC2086 # MUTATE has several flags
	go run "$gremlins" unleash --timeout-coefficient 10 -E / ${MUTATE:-} -o "$dir/out.json" "./$package" >"$dir/log" 2>&1 ||
		{ cat "$dir/log" && exit 1; }
	[ -e "$dir/out.json" ] || { cat "$dir/log" && exit 1; }
	grep -E 'LIVED|NOT COVERED' "$dir/log" | sed "s,at ,at $package/," || true
	killed=$(count KILLED) late=$(count 'TIMED OUT') all=$(count '[A-Z ]*')
	echo "$package $killed $late $all" |
		awk '{ printf "%-26s %4d of %4d mutants, %.2f: %d killed, %d timed out\n", $1, $2 + $3, $4, ($2 + $3) / $4, $2, $3 }' |
		tee -a "$dir/scores"
done
echo
cat "$dir/scores"
