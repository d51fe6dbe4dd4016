package main

import (
	"fmt"
	"strings"

	"gcsup/internal/cli/exit"
	"gcsup/internal/objectmeta"
)

const stdinName = "-"

// parseDestination splits gs://BUCKET/OBJECT.
func parseDestination(text string) (bucket, object string, err error) {
	bucket, object, ok := objectmeta.SplitURL(text)
	switch {
	case strings.HasPrefix(text, urlPrefix+"/"):
		return "", "", exit.Usagef("destination %q: the name of the bucket is empty; if it comes from a variable, set it (for the units of the packages: BUCKET in /etc/gcsup/gcsup.env)", text)
	case !ok:
		return "", "", exit.Usagef("destination %q: want gs://BUCKET/OBJECT", text)
	}
	return bucket, object, nil
}

// emptyPart returns a warning about a destination whose object has a name with an empty part, or "". Such
// a name is valid, and usually a mistake, as in gs://BUCKET/$DIR/NAME with an empty variable.
func emptyPart(destination string) string {
	bucket, object, err := parseDestination(destination)
	if err != nil || !strings.HasPrefix(object, "/") && !strings.Contains(object, "//") {
		return ""
	}
	var parts []string
	for part := range strings.SplitSeq(object, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if strings.HasSuffix(object, "/") {
		parts = append(parts, "")
	}
	return fmt.Sprintf("%s: two slashes in a row are a part of the name; for one, give gs://%s/%s", destination, bucket, strings.Join(parts, "/"))
}
