package session

import (
	"crypto/md5"
	"strings"
	"unicode/utf8"
)

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
	case s.Retention != nil && s.Retention.Mode != RetentionLocked && s.Retention.Mode != RetentionUnlocked:
		return invalid("retention mode %q: want %s or %s", s.Retention.Mode, RetentionLocked, RetentionUnlocked)
	case s.Retention != nil && s.Retention.RetainUntil.IsZero():
		return invalid("a retention without the time until which the object is retained")
	case s.Gzip && s.ContentEncoding != "":
		return invalid("the content encoding %q of an object that is compressed: it is gzip", s.ContentEncoding)
	case s.KMSKeyName != "" && !s.EncryptionKey.IsZero():
		return invalid("an object is encrypted with a KMS key or with an EncryptionKey, not with both")
	}
	if err := validACL(s.ACL, s.PredefinedACL); err != nil {
		return err
	}
	return s.Contexts.valid()
}

// Validate returns an error that wraps [ErrInvalid] if the service would refuse a
// name (https://cloud.google.com/storage/docs/objects#naming,
// https://cloud.google.com/storage/docs/buckets#naming), an attribute or the
// preconditions. NoClobber without an IfGenerationMatch of 0 is invalid, too, because
// an existing object would be replaced.
func (s Spec) Validate() error {
	switch {
	case s.Bucket == "":
		return invalid("no bucket")
	case bucketNameRule(s.Bucket) != "":
		return invalid("bucket name %q: %s", s.Bucket, bucketNameRule(s.Bucket))
	case s.Object == "":
		return invalid("no object name")
	case len(s.Object) > 1024:
		return invalid("the object name is %d bytes long, the limit is 1024", len(s.Object))
	case !utf8.ValidString(s.Object):
		return invalid("the object name %q is not valid UTF-8", s.Object)
	case strings.ContainsAny(s.Object, "\r\n"):
		return invalid("the object name %q has a line break", s.Object)
	case s.Object == "." || s.Object == ".." || strings.HasPrefix(s.Object, ".well-known/acme-challenge/"):
		return invalid("the service does not allow the object name %q", s.Object)
	}
	if err := s.validConditions(); err != nil {
		return err
	}
	return s.validAttributes()
}
