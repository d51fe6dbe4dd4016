#!/usr/bin/env bash
# Runs every fuzz target of the module for a time, 60s or what is given:
#
#	bash internal/fire/fuzz.sh 5s
#
# What one finds is kept below testdata/fuzz of its package, and every later
# run of the tests tries it again.
set -euo pipefail
cd "$(dirname "$0")/../.."

time=${1:-60s}
grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file target; do
	printf '%s %s\n' "$(dirname "$file")" "${target#func }"
	go test "$(dirname "$file")" -run '^$' -fuzz "^${target#func }\$" -fuzztime "$time" </dev/null
done
