package main

import (
	"gcsup/internal/cli/exit"
	"gcsup/session"
)

const stdinName = "-"

// parseDestination splits gs://BUCKET/OBJECT.
func parseDestination(text string) (bucket, object string, err error) {
	bucket, object, ok := session.SplitURL(text)
	if !ok {
		return "", "", exit.Usagef("destination %q: want gs://BUCKET/OBJECT", text)
	}
	return bucket, object, nil
}
