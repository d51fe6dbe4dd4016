package main

import "gcsup/internal/cli/contenttype"

// contentType returns the type for a name's extension, or "": that of the source, or of
// the object if the source is standard input.
func contentType(source, object string) string {
	if source == stdinName {
		return contenttype.Of(object)
	}
	return contenttype.Of(source)
}
