package session

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gcsup/chunk"
)

// Object is the metadata of a finalized object: all that the service returned. A
// field that the reply does not have is zero. The reply to an upload has all fields.
// It has the ACL and the owner only if the bucket has no uniform bucket-level access.
// After a lost reply, the metadata is read with a GET. It has no ACL and no owner,
// because they would need another permission. Page of package bucket lists the fields of a
// listing.
//
// The fields have the names of the corresponding fields of storage.ObjectAttrs in
// cloud.google.com/go/storage.
// https://cloud.google.com/storage/docs/json_api/v1/objects#resource
type Object struct {
	Bucket         string
	Name           string
	Generation     int64
	Metageneration int64
	Size           int64
	CRC32C         uint32
	HasCRC32C      bool   // the reply had a CRC32C; the service has one for every object
	MD5            []byte // nil for a composed object
	Etag           string
	MediaLink      string
	SelfLink       string

	ContentType        string
	ContentEncoding    string
	ContentDisposition string
	ContentLanguage    string
	CacheControl       string
	StorageClass       string
	Metadata           map[string]string
	CustomTime         time.Time
	Contexts           *ObjectContexts
	ComponentCount     int64 // of a composed object

	ACL               []ACLRule
	Owner             string // of the form user-ID
	KMSKeyName        string // with the version of the key
	CustomerKeySHA256 string // base64; "" without a customer-supplied key

	TemporaryHold           bool
	EventBasedHold          bool
	Retention               *Retention
	RetentionExpirationTime time.Time // from the retention policy of the bucket

	Created             time.Time // when this generation was created; zero if the reply does not have it
	Finalized           time.Time
	Updated             time.Time // of the metadata
	StorageClassUpdated time.Time
	Deleted             time.Time // when it became noncurrent
	SoftDeleteTime      time.Time
	HardDeleteTime      time.Time
	RestoreToken        string // of a soft-deleted object in a bucket with a hierarchical namespace

	FileModTime time.Time // modification time of the source in whole seconds, from FileModTimeKey; zero if the object or the reply does not have it

	// Gzip reports that the object is a file that was uploaded with Spec.Gzip:
	// its content encoding is gzip, and it has UncompressedSizeKey.
	Gzip             bool
	UncompressedSize int64 // of that file; 0 without Gzip
}

// objectResource is the Object resource in a reply.
type objectResource struct {
	Bucket         string      `json:"bucket"`
	Name           string      `json:"name"`
	Generation     json.Number `json:"generation"`
	Metageneration json.Number `json:"metageneration"`
	Size           json.Number `json:"size"`
	CRC32C         string      `json:"crc32c"`
	MD5            []byte      `json:"md5Hash"`
	Etag           string      `json:"etag"`
	MediaLink      string      `json:"mediaLink"`
	SelfLink       string      `json:"selfLink"`

	ContentType        string            `json:"contentType"`
	ContentEncoding    string            `json:"contentEncoding"`
	ContentDisposition string            `json:"contentDisposition"`
	ContentLanguage    string            `json:"contentLanguage"`
	CacheControl       string            `json:"cacheControl"`
	StorageClass       string            `json:"storageClass"`
	Metadata           map[string]string `json:"metadata"`
	CustomTime         time.Time         `json:"customTime"`
	Contexts           *ObjectContexts   `json:"contexts"`
	ComponentCount     json.Number       `json:"componentCount"`

	ACL        []ACLRule      `json:"acl"`
	Owner      owner          `json:"owner"`
	KMSKeyName string         `json:"kmsKeyName"`
	Encryption encryptionHash `json:"customerEncryption"`

	TemporaryHold  bool       `json:"temporaryHold"`
	EventBasedHold bool       `json:"eventBasedHold"`
	Retention      *retention `json:"retention"`
	Expiration     time.Time  `json:"retentionExpirationTime"`

	Created             time.Time `json:"timeCreated"`
	Finalized           time.Time `json:"timeFinalized"`
	Updated             time.Time `json:"updated"`
	StorageClassUpdated time.Time `json:"timeStorageClassUpdated"`
	Deleted             time.Time `json:"timeDeleted"`
	SoftDeleteTime      time.Time `json:"softDeleteTime"`
	HardDeleteTime      time.Time `json:"hardDeleteTime"`
	RestoreToken        string    `json:"restoreToken"`
}

type owner struct {
	Entity string `json:"entity"`
}

type encryptionHash struct {
	KeySHA256 string `json:"keySha256"`
}

// decodeObject decodes an Object resource. ok is false if body is no JSON object. A
// field whose value is not of the documented type stays zero, because the object
// exists even if one of its fields cannot be read.
func decodeObject(body []byte) (r objectResource, ok bool) {
	if json.Unmarshal(body, &r) == nil {
		return r, true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return r, false
	}
	r = objectResource{}
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		if json.Unmarshal(fields[v.Type().Field(i).Tag.Get("json")], v.Field(i).Addr().Interface()) != nil {
			v.Field(i).SetZero()
		}
	}
	return r, true
}

// SetGzip sets Gzip and UncompressedSize. size is the value of
// UncompressedSizeKey.
func (o *Object) SetGzip(contentEncoding, size string) {
	o.Gzip = false
	if contentEncoding != gzipEncoding {
		return
	}
	if n, err := strconv.ParseInt(size, 10, 64); err == nil && n >= 0 {
		o.Gzip, o.UncompressedSize = true, n
	}
}

// parseObject parses an Object resource. It returns nil for anything else: an
// empty or truncated body, HTML, or JSON without a size. If JSON has a
// generation and a checksum, a missing size is 0, because Google's test bench
// omits zeros.
func parseObject(body []byte) *Object {
	r, ok := decodeObject(body)
	if !ok {
		return nil
	}
	o := &Object{
		Bucket: r.Bucket, Name: r.Name, MD5: r.MD5, Etag: r.Etag, MediaLink: r.MediaLink, SelfLink: r.SelfLink,
		ContentType: r.ContentType, ContentEncoding: r.ContentEncoding, ContentDisposition: r.ContentDisposition,
		ContentLanguage: r.ContentLanguage, CacheControl: r.CacheControl, StorageClass: r.StorageClass,
		Metadata: r.Metadata, CustomTime: r.CustomTime, Contexts: r.Contexts,
		ACL: r.ACL, Owner: r.Owner.Entity, KMSKeyName: r.KMSKeyName, CustomerKeySHA256: r.Encryption.KeySHA256,
		TemporaryHold: r.TemporaryHold, EventBasedHold: r.EventBasedHold, RetentionExpirationTime: r.Expiration,
		Created: r.Created, Finalized: r.Finalized, Updated: r.Updated, StorageClassUpdated: r.StorageClassUpdated,
		Deleted: r.Deleted, SoftDeleteTime: r.SoftDeleteTime, HardDeleteTime: r.HardDeleteTime, RestoreToken: r.RestoreToken,
		FileModTime: ParseFileModTime(r.Metadata[FileModTimeKey]),
	}
	o.SetGzip(r.ContentEncoding, r.Metadata[UncompressedSizeKey])
	if r.Retention != nil {
		o.Retention = &Retention{Mode: r.Retention.Mode, RetainUntil: r.Retention.RetainUntilTime}
	}
	var err error
	o.Generation, _ = r.Generation.Int64()
	if r.Size == "" && o.Generation > 0 && r.CRC32C != "" {
		r.Size = "0"
	}
	if o.Size, err = r.Size.Int64(); err != nil || o.Size < 0 {
		return nil
	}
	o.Metageneration, _ = r.Metageneration.Int64()
	if r.ComponentCount != "" {
		o.ComponentCount, _ = r.ComponentCount.Int64()
	}
	if crc, err := chunk.DecodeCRC32C(r.CRC32C); err == nil {
		o.CRC32C, o.HasCRC32C = crc, true
	}
	return o
}

// objectFromHeaders parses the x-goog headers of the last reply of a session of
// the XML API or a signed URL, which has an empty body.
// https://cloud.google.com/storage/docs/xml-api/reference-headers
func objectFromHeaders(h http.Header) *Object {
	generation, err := strconv.ParseInt(h.Get("X-Goog-Generation"), 10, 64)
	if err != nil {
		return nil
	}
	size, err := strconv.ParseInt(h.Get("X-Goog-Stored-Content-Length"), 10, 64)
	if err != nil || size < 0 {
		return nil
	}
	o := &Object{Generation: generation, Size: size}
	o.Metageneration, _ = strconv.ParseInt(h.Get("X-Goog-Metageneration"), 10, 64)
	o.CRC32C, o.HasCRC32C = hashHeader(h, "X-Goog-Hash")
	return o
}

// hashHeader returns the crc32c of a header such as X-Goog-Hash, which may have
// several hashes in one or more lines.
func hashHeader(h http.Header, key string) (uint32, bool) {
	for _, line := range h.Values(key) {
		for part := range strings.SplitSeq(line, ",") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c="); ok {
				crc, err := chunk.DecodeCRC32C(value)
				return crc, err == nil
			}
		}
	}
	return 0, false
}

// ParseFileModTime parses the value of FileModTimeKey. It returns the zero time
// for any other text.
func ParseFileModTime(text string) time.Time {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
