package session

import "encoding/json"

// Resource returns the Object resource of the JSON API that describes the object in a request.
func (s Spec) Resource() ([]byte, error) { return json.Marshal(s.resource()) }

// resource returns the Object resource for the body of a request.
func (s Spec) resource() objectResource {
	r := objectResource{
		Object: Object{
			Name:               s.Object,
			ContentType:        s.contentType(),
			ContentEncoding:    s.ContentEncoding,
			ContentDisposition: s.ContentDisposition,
			ContentLanguage:    s.ContentLanguage,
			CacheControl:       s.CacheControl,
			StorageClass:       s.StorageClass,
			Metadata:           s.Metadata,
			CustomTime:         s.CustomTime,
			TemporaryHold:      s.TemporaryHold,
			EventBasedHold:     s.EventBasedHold,
			Contexts:           s.Contexts.sent(),
			ACL:                sentACL(s.ACL),
			MD5:                s.MD5,
		},
		CRC32C: crcText(s.CRC32C),
	}
	if s.Gzip {
		r.ContentEncoding = "gzip"
	}
	if s.Retention != nil {
		r.Retention = &retention{s.Retention.Mode, s.Retention.RetainUntil.UTC()}
	}
	return r
}
