#!/usr/bin/env bash
# apidiff.sh compares the public API with the baseline in this directory. It fails if
# docs/changelog.md does not quote an incompatible change as apidiff prints it, without
# the leading dash.
#
#	internal/apidiff/apidiff.sh            compare
#	internal/apidiff/apidiff.sh -update    write the baseline, with each release
set -euo pipefail
cd "$(dirname "$0")/../.."

apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e # pinned, and outside go.mod
baseline=internal/apidiff/baseline.gz

plain=$(mktemp)
trap 'rm -f "$plain"' EXIT
run() { go run "$apidiff" -m "$@" 2> >(grep -v '^Ignoring internal package' >&2); }
if [ "${1:-}" = -update ]; then
	run -w "$plain" gcsup
	gzip -9n <"$plain" >"$baseline"
	exit
fi

gunzip <"$baseline" >"$plain"
changes=$(run -incompatible "$plain" gcsup)
missing=0
while IFS= read -r change; do
	change=${change#- }
	[ -z "$change" ] || grep -qF -- "$change" docs/changelog.md || {
		[ "$missing" = 1 ] || echo "incompatible changes of the API that docs/changelog.md does not name:"
		missing=1
		printf '  %s\n' "$change"
	}
done <<<"$changes"
exit "$missing"
