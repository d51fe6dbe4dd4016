package session

import (
	"encoding/base64"
	"fmt"
)

// Conflict compares s, the Spec of a saved upload, with want. It compares only the
// fields that are set in want. It returns the first field that differs, with both
// values, or "". Of metadata keys that describe the source, such as
// goog-reserved-file-mtime, it compares the presence and not the values.
func (s Spec) Conflict(want Spec) string {
	for _, field := range []struct{ name, was, want string }{
		{"content type", s.ContentType, want.ContentType},
		{"content encoding", s.ContentEncoding, want.ContentEncoding},
		{"gzip compression", boolText(s.Gzip), boolText(want.Gzip)},
		{"content disposition", s.ContentDisposition, want.ContentDisposition},
		{"content language", s.ContentLanguage, want.ContentLanguage},
		{"cache control", s.CacheControl, want.CacheControl},
		{"storage class", s.StorageClass, want.StorageClass},
		{"custom time", timeText(s.CustomTime), timeText(want.CustomTime)},
		{"temporary hold", boolText(s.TemporaryHold), boolText(want.TemporaryHold)},
		{"event-based hold", boolText(s.EventBasedHold), boolText(want.EventBasedHold)},
		{"retention", s.Retention.text(), want.Retention.text()},
		{"contexts", s.Contexts.text(), want.Contexts.text()},
		{"ACL", aclText(s.ACL), aclText(want.ACL)},
		{"predefined ACL", s.PredefinedACL, want.PredefinedACL},
		{"KMS key", s.KMSKeyName, want.KMSKeyName},
		{"SHA-256 of the encryption key", s.EncryptionKey.sum, want.EncryptionKey.sum},
		{"user project", s.UserProject, want.UserProject},
		{"MD5", base64.StdEncoding.EncodeToString(s.MD5), base64.StdEncoding.EncodeToString(want.MD5)},
		{"CRC32C", crcText(s.CRC32C), crcText(want.CRC32C)},
	} {
		if field.want != "" && field.want != field.was {
			return fmt.Sprintf("%s %q, not %q", field.name, field.was, field.want)
		}
	}
	wanted := want.conditions()
	for i, c := range s.conditions() {
		if was, want := number(c.value), number(wanted[i].value); want != "" && want != was {
			return fmt.Sprintf("%s %q, not %q", c.name, was, want)
		}
	}
	return metadataConflict(s.Metadata, want.Metadata)
}

// Resolved returns s with the content type that the object will have.
func (s Spec) Resolved() Spec {
	s.ContentType, s.DefaultContentType = s.contentType(), ""
	return s
}
