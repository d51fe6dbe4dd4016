// Package objectmeta knows the metadata of an object that gcsup and other programs agree on: keys, allowed
// values, and the forms of values in requests and replies.
package objectmeta

import (
	"gcsup/internal/checksum"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Metadata keys of the attributes of a source. gcloud storage cp -P and gsutil cp -P write these keys. rclone
// writes FileModTime, too.
const (
	FileModTime    = "goog-reserved-file-mtime" // seconds since 1970
	FileAccessTime = "goog-reserved-file-atime" // seconds since 1970
	FileUID        = "goog-reserved-posix-uid"
	FileGID        = "goog-reserved-posix-gid"
	FileMode       = "goog-reserved-posix-mode" // permission bits: three octal digits
)

// UncompressedSize is the metadata key of the size of a compressed source before compression, see Spec.Gzip of
// package session.
const UncompressedSize = "gcsup-uncompressed-size"

// PredefinedACLs lists the values of Spec.PredefinedACL of package session.
// https://cloud.google.com/storage/docs/access-control/lists#predefined-acl
var PredefinedACLs = []string{"authenticatedRead", "bucketOwnerFullControl", "bucketOwnerRead", "private", "projectPrivate", "publicRead"}

// ParseFileModTime parses the value of FileModTime. It returns the zero time for any other text.
func ParseFileModTime(text string) time.Time {
	if text == "" { // the usual case, and an error would be allocated
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// ParseGzip reports whether an object is a file that was compressed with Spec.Gzip, and the size of that file.
// uncompressed is the value of UncompressedSize.
func ParseGzip(contentEncoding, uncompressed string) (size int64, ok bool) {
	if contentEncoding != "gzip" {
		return 0, false
	}
	n, err := strconv.ParseInt(uncompressed, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// CRC32C returns the crc32c of a header such as X-Goog-Hash, which may have several hashes in one or more lines.
func CRC32C(h http.Header, key string) (crc32c uint32, ok bool) {
	for _, line := range h.Values(key) {
		for part := range strings.SplitSeq(line, ",") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c="); ok {
				crc, err := checksum.Decode(value)
				return crc, err == nil
			}
		}
	}
	return 0, false
}

// NotToken reports whether the name of a header cannot have r, so that net/http refuses it.
// https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2
func NotToken(r rune) bool {
	letter := 'a' <= r|0x20 && r|0x20 <= 'z' && r < 0x80
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// SplitURL splits a destination gs://BUCKET/OBJECT, as the method URL of session.Spec returns it. The object may be
// missing. ok is false if text has another form. '#', '?' and '%' are ordinary characters of
// a name.
func SplitURL(text string) (bucket, object string, ok bool) {
	rest, ok := strings.CutPrefix(text, "gs://")
	bucket, object, _ = strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return "", "", false
	}
	return bucket, object, true
}
