package session

import (
	"fmt"
	"maps"
	"slices"

	"gcsup/internal/objectmeta"
)

// fileKeys are the metadata keys that describe a source.
var fileKeys = []string{objectmeta.FileModTime, objectmeta.FileAccessTime, objectmeta.FileUID, objectmeta.FileGID, objectmeta.FileMode}

// metadataLimit bounds the custom metadata of an object: the sum of the lengths
// of keys and values. https://cloud.google.com/storage/quotas#objects
const metadataLimit = 8 << 10

// metadataConflict compares the custom metadata of a saved upload with want, as
// Conflict does. [fileKeys] are an option of their own, which a caller may give
// without other metadata. Their values describe the source, and a resume checks the
// source itself: reading a file changes its access time. objectmeta.UncompressedSize belongs
// to Spec.Gzip.
func metadataConflict(was, want map[string]string) string {
	custom := func(key string) bool { return key != objectmeta.UncompressedSize && !slices.Contains(fileKeys, key) }
	given := want != nil && len(want) == 0
	for _, key := range slices.Sorted(maps.Keys(want)) {
		given = given || custom(key)
		switch before, had := was[key]; {
		case !had && key != objectmeta.UncompressedSize:
			return fmt.Sprintf("no custom metadata %q", key)
		case custom(key) && before != want[key]:
			return fmt.Sprintf("custom metadata %q: %q, not %q", key, before, want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		_, has := want[key]
		if given && !has && custom(key) {
			return fmt.Sprintf("custom metadata %q: %q", key, was[key])
		}
	}
	return ""
}
