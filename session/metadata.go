package session

import (
	"fmt"
	"maps"
	"slices"
)

// FileModTimeKey is the metadata key of a source's modification time, in seconds
// since 1970. gcloud, gsutil and rclone use it.
const FileModTimeKey = "goog-reserved-file-mtime"

// Metadata keys of the attributes of a source. gcloud storage cp -P and gsutil cp -P
// write these keys and [FileModTimeKey].
const (
	FileAccessTimeKey = "goog-reserved-file-atime" // seconds since 1970
	FileUIDKey        = "goog-reserved-posix-uid"
	FileGIDKey        = "goog-reserved-posix-gid"
	FileModeKey       = "goog-reserved-posix-mode" // permission bits: three octal digits
)

// UncompressedSizeKey is the metadata key of the size of a compressed source before
// compression, see Spec.Gzip.
const UncompressedSizeKey = "gcsup-uncompressed-size"

const gzipEncoding = "gzip" // as a content encoding

// fileKeys are the metadata keys that describe a source.
var fileKeys = []string{FileModTimeKey, FileAccessTimeKey, FileUIDKey, FileGIDKey, FileModeKey}

// metadataLimit bounds the custom metadata of an object: the sum of the lengths
// of keys and values. https://cloud.google.com/storage/quotas#objects
const metadataLimit = 8 << 10

// metadataConflict compares the custom metadata of a saved upload with want, as
// Conflict does. [fileKeys] are an option of their own, which a caller may give
// without other metadata. Their values describe the source, and a resume checks the
// source itself: reading a file changes its access time. UncompressedSizeKey belongs
// to Spec.Gzip.
func metadataConflict(was, want map[string]string) string {
	custom := func(key string) bool { return key != UncompressedSizeKey && !slices.Contains(fileKeys, key) }
	given := want != nil && len(want) == 0
	for _, key := range slices.Sorted(maps.Keys(want)) {
		given = given || custom(key)
		switch before, had := was[key]; {
		case !had && key != UncompressedSizeKey:
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
