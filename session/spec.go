package session

import (
	"cmp"
	"time"
)

// Spec describes the object to create. None of it can change after the session starts
// (https://cloud.google.com/storage/docs/json_api/v1/objects/insert). Bucket and
// Object are required. If another field is zero, the default of the service or the
// bucket applies.
//
// The fields that an upload can set have the names of storage.ObjectAttrs in
// cloud.google.com/go/storage. Some types differ, because this package does not
// import that one. [ACLRule], [ObjectContexts] and [Retention] have the fields of its
// ACLRule, ObjectContexts and ObjectRetention, with plain strings for entities and
// roles. CRC32C is a pointer, because 0 is the checksum of an empty object. It
// replaces Writer.SendCRC32C. The four preconditions are the fields of
// storage.Conditions with the prefix If. They are pointers, so that an
// IfGenerationMatch of 0 replaces DoesNotExist.
type Spec struct {
	Bucket string `json:"bucket"`
	Object string `json:"object"`

	ContentType        string            `json:"content_type,omitempty"`     // "" means DefaultContentType
	ContentEncoding    string            `json:"content_encoding,omitempty"` // "" if Gzip is set
	ContentDisposition string            `json:"content_disposition,omitempty"`
	ContentLanguage    string            `json:"content_language,omitempty"`
	CacheControl       string            `json:"cache_control,omitempty"`
	StorageClass       string            `json:"storage_class,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"` // custom metadata
	CustomTime         time.Time         `json:"custom_time,omitzero"`
	TemporaryHold      bool              `json:"temporary_hold,omitempty"`
	EventBasedHold     bool              `json:"event_based_hold,omitempty"`
	Retention          *Retention        `json:"retention,omitempty"`
	Contexts           *ObjectContexts   `json:"contexts,omitempty"`
	ACL                []ACLRule         `json:"acl,omitempty"`            // not with PredefinedACL
	PredefinedACL      string            `json:"predefined_acl,omitempty"` // such as publicRead or bucketOwnerRead
	KMSKeyName         string            `json:"kms_key_name,omitempty"`   // customer-managed key (CMEK): projects/P/locations/L/keyRings/R/cryptoKeys/K
	EncryptionKey      EncryptionKey     `json:"encryption_key,omitzero"`  // a saved upload has only its SHA-256
	UserProject        string            `json:"user_project,omitempty"`   // project that is billed, for requester-pays buckets

	// MD5 and CRC32C are the checksums that the object must have; with Gzip, those of the
	// compressed bytes. If the bytes differ, the error is [ErrChecksum], and no object is created. The driver
	// compares CRC32C before the last request, and the service compares both. nil means
	// that no checksum is expected. https://cloud.google.com/storage/docs/data-validation
	MD5    []byte  `json:"md5,omitempty"`
	CRC32C *uint32 `json:"crc32c,omitempty"`
	// Gzip means that the object is the source compressed with gzip. Its content encoding
	// is gzip. If the source is a file, the metadata has its uncompressed size. A Client
	// does not compress: package upload does.
	Gzip bool `json:"gzip,omitempty"`

	// Preconditions. The service checks them only when the last byte has
	// arrived. A driver should check them first, see Unmet. At most one of each
	// pair may be set.
	// https://cloud.google.com/storage/docs/request-preconditions
	IfGenerationMatch        *int64 `json:"if_generation_match,omitempty"`     // 0: only if there is no object
	IfGenerationNotMatch     *int64 `json:"if_generation_not_match,omitempty"` // 0: only if there is an object
	IfMetagenerationMatch    *int64 `json:"if_metageneration_match,omitempty"`
	IfMetagenerationNotMatch *int64 `json:"if_metageneration_not_match,omitempty"`

	// NoClobber means that IfGenerationMatch is 0 in order to keep an existing object. If
	// there is one, the error is [ErrPrecondition], and the saved upload is deleted.
	// NoClobber is saved, so that a process that resumes the upload treats the error in
	// the same way.
	NoClobber bool `json:"no_clobber,omitempty"`

	// DefaultContentType is the content type if ContentType is "" and a saved
	// upload does not have another one. "" means application/octet-stream.
	DefaultContentType string `json:"-"`
}

// URL returns the destination as gs://bucket/object.
func (s Spec) URL() string { return "gs://" + s.Bucket + "/" + s.Object }

func (s Spec) contentType() string {
	return cmp.Or(s.ContentType, s.DefaultContentType, "application/octet-stream")
}
