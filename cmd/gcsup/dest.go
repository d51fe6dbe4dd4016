package main

import (
	"gcsup/internal/cli/failure"
	"gcsup/session"
)

const stdinName = "-"

// parseDestination splits gs://BUCKET/OBJECT.
func parseDestination(text string) (bucket, object string, err error) {
	bucket, object, ok := session.SplitURL(text)
	if !ok {
		return "", "", failure.Usagef("destination %q: want gs://BUCKET/OBJECT", text)
	}
	return bucket, object, nil
}
