package session

import (
	"crypto/md5"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Retention prevents the deletion and the replacement of an object before
// RetainUntil. The bucket must allow it:
// https://cloud.google.com/storage/docs/object-lock.
type Retention struct {
	Mode        string    `json:"mode"` // RetentionUnlocked or RetentionLocked
	RetainUntil time.Time `json:"retain_until"`
}

// Modes of a [Retention]. A locked one can only be extended.
const (
	RetentionUnlocked = "Unlocked"
	RetentionLocked   = "Locked"
)

// RetentionModes returns the modes of a Retention.
func RetentionModes() []string { return []string{RetentionLocked, RetentionUnlocked} }

// PredefinedACLs returns the values of Spec.PredefinedACL.
// https://cloud.google.com/storage/docs/access-control/lists#predefined-acl
func PredefinedACLs() []string {
	return []string{"authenticatedRead", "bucketOwnerFullControl", "bucketOwnerRead", "private", "projectPrivate", "publicRead"}
}

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

// validAttributes returns an error that wraps [ErrInvalid] if the service would
// refuse an attribute.
func (s Spec) validAttributes() error {
	for _, text := range []struct{ name, value string }{
		{"content type", s.contentType()},
		{"content encoding", s.ContentEncoding},
		{"content disposition", s.ContentDisposition},
		{"content language", s.ContentLanguage},
		{"cache control", s.CacheControl},
		{"storage class", s.StorageClass},
		{"KMS key", s.KMSKeyName},
		{"user project", s.UserProject},
	} {
		if unprintable(text.value) {
			return invalid("the %s %q has a control character or is not valid UTF-8", text.name, text.value)
		}
	}
	size := 0
	for key, value := range s.Metadata {
		size += len(key) + len(value)
		switch {
		case key == "":
			return invalid("a key of the custom metadata is empty")
		case unprintable(key + value):
			return invalid("the custom metadata %q: %q has a control character or is not valid UTF-8", key, value)
		}
	}
	switch {
	case size > metadataLimit:
		return invalid("the custom metadata has %d bytes, the limit is %d", size, metadataLimit)
	case s.MD5 != nil && len(s.MD5) != md5.Size:
		return invalid("an MD5 of %d bytes, want %d", len(s.MD5), md5.Size)
	case s.Retention != nil && !slices.Contains(RetentionModes(), s.Retention.Mode):
		return invalid("retention mode %q: want %s", s.Retention.Mode, strings.Join(RetentionModes(), " or "))
	case s.Retention != nil && s.Retention.RetainUntil.IsZero():
		return invalid("a retention without the time until which the object is retained")
	case s.Gzip && s.ContentEncoding != "":
		return invalid("the content encoding %q of an object that is compressed: it is gzip", s.ContentEncoding)
	case s.KMSKeyName != "" && !s.EncryptionKey.IsZero():
		return invalid("an object is encrypted with a KMS key or with an EncryptionKey, not with both")
	}
	if err := s.validACL(); err != nil {
		return err
	}
	return s.Contexts.valid()
}

// unprintable reports whether text has a control character or is not valid UTF-8. The service
// refuses it.
func unprintable(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
}

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

// timeText returns t in the format of RFC 3339, or "" if t is zero.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// text returns r in a form that is equal for equal values, or "" if r is nil.
func (r *Retention) text() string {
	if r == nil {
		return ""
	}
	return r.Mode + " until " + timeText(r.RetainUntil)
}

// boolText returns "on", or "" if b is false.
func boolText(b bool) string {
	if b {
		return "on"
	}
	return ""
}
