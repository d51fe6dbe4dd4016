package main

import (
	"strings"

	"gcsup/internal/cli/failure"
)

const stdinName = "-"

// parseDestination splits gs://BUCKET/OBJECT. '#', '?' and '%' are ordinary
// characters of an object name.
func parseDestination(raw string) (bucket, object string, err error) {
	rest, ok := strings.CutPrefix(raw, "gs://")
	if !ok {
		return "", "", failure.Usagef("destination %q: want gs://BUCKET/OBJECT", raw)
	}
	bucket, object, _ = strings.Cut(rest, "/")
	if bucket == "" {
		return "", "", failure.Usagef("destination %q has no bucket: want gs://BUCKET/OBJECT", raw)
	}
	return bucket, object, checkBucketName(bucket)
}
