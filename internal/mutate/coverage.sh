#!/bin/sh
# Prints the statement coverage of each package of upload and session by all their tests together.
set -eu
cd "$(dirname "$0")/../.."
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT
go test -vet=off -count=1 -coverpkg=./upload/...,./session/... -coverprofile="$profile" ./upload/... ./session/... >&2
# Each program has a line for each block: file:from,to STATEMENTS RUNS.
awk '
	NR > 1 { statements[$1] = $2; if ($3 > 0) run[$1] = $2 }
	END {
		for (block in statements) {
			package = block
			sub("/[^/]*$", "", package)
			all[package] += statements[block]
			some[package] += run[block]
		}
		for (package in all) printf "%5.1f %% of %5d statements  %s\n", 100 * some[package] / all[package], all[package], package
	}' "$profile" | sort -k 6
