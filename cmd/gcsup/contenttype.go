package main

import "gcsup/internal/cli/contenttype"

// contentType returns the content type for the extension of the source, or "" if it
// is unknown. For standard input it uses the extension of the object.
func contentType(source, object string) string {
	if source == stdinName {
		return contenttype.Of(object)
	}
	return contenttype.Of(source)
}
