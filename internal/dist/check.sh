#!/bin/sh
# Builds a release of the last commit in two clones, the second one with an empty build cache, and
# compares the files.
#
#   sh internal/dist/check.sh [-version VERSION] [-targets OS/ARCH,...]
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
first="$top/first" second="$top/another/directory"
git clone -q . "$first"
git clone -q . "$second"
(cd "$first" && go run ./internal/dist -o "$top/1" "$@")
(cd "$second" && GOCACHE="$top/cache" go run ./internal/dist -o "$top/2" "$@")
diff "$top/1/SHA256SUMS" "$top/2/SHA256SUMS"
echo "two builds in two directories are identical:"
cat "$top/1/SHA256SUMS"
