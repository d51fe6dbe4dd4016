package session

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gcsup/internal/checksum"
	"gcsup/internal/objectmeta"
)

// Object is the metadata of a finalized object: all that the service returned. A
// field that the reply does not have is zero. The reply to an upload has all fields,
// but the ACL and the owner only if the bucket has no uniform bucket-level access.
// After a lost reply, the metadata is read with a GET. It has no ACL and no owner,
// because they would need another permission.
//
// The fields have the names of the corresponding fields of storage.ObjectAttrs in
// cloud.google.com/go/storage. In JSON they have the names of the JSON API, if it has them.
// https://cloud.google.com/storage/docs/json_api/v1/objects#resource
type Object struct {
	Bucket         string `json:"bucket,omitempty"`
	Name           string `json:"name,omitempty"`
	Generation     int64  `json:"generation,omitempty"`
	Metageneration int64  `json:"metageneration,omitempty"`
	Size           int64  `json:"size"`
	CRC32C         uint32 `json:"crc32c"`
	HasCRC32C      bool   `json:"hasCRC32C,omitempty"` // the reply had a CRC32C; the service has one for every object
	MD5            []byte `json:"md5Hash,omitempty"`   // nil for a composed object
	Etag           string `json:"etag,omitempty"`
	MediaLink      string `json:"mediaLink,omitempty"`
	SelfLink       string `json:"selfLink,omitempty"`

	ContentType        string            `json:"contentType,omitempty"`
	ContentEncoding    string            `json:"contentEncoding,omitempty"`
	ContentDisposition string            `json:"contentDisposition,omitempty"`
	ContentLanguage    string            `json:"contentLanguage,omitempty"`
	CacheControl       string            `json:"cacheControl,omitempty"`
	StorageClass       string            `json:"storageClass,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
	CustomTime         time.Time         `json:"customTime,omitzero"`
	Contexts           *ObjectContexts   `json:"contexts,omitempty"`
	ComponentCount     int64             `json:"componentCount,omitempty"` // of a composed object

	ACL               []ACLRule `json:"acl,omitempty"`
	Owner             string    `json:"owner,omitempty"`             // of the form user-ID
	KMSKeyName        string    `json:"kmsKeyName,omitempty"`        // with the version of the key
	CustomerKeySHA256 string    `json:"customerKeySHA256,omitempty"` // base64; "" without a customer-supplied key

	TemporaryHold           bool       `json:"temporaryHold,omitempty"`
	EventBasedHold          bool       `json:"eventBasedHold,omitempty"`
	Retention               *Retention `json:"retention,omitempty"`
	RetentionExpirationTime time.Time  `json:"retentionExpirationTime,omitzero"` // from the retention policy of the bucket

	Created             time.Time `json:"timeCreated,omitzero"` // when this generation was created; zero if the reply does not have it
	Finalized           time.Time `json:"timeFinalized,omitzero"`
	Updated             time.Time `json:"updated,omitzero"` // of the metadata
	StorageClassUpdated time.Time `json:"timeStorageClassUpdated,omitzero"`
	Deleted             time.Time `json:"timeDeleted,omitzero"` // when it became noncurrent
	SoftDeleteTime      time.Time `json:"softDeleteTime,omitzero"`
	HardDeleteTime      time.Time `json:"hardDeleteTime,omitzero"`
	RestoreToken        string    `json:"restoreToken,omitempty"` // of a soft-deleted object in a bucket with a hierarchical namespace

	// FileModTime is the modification time of the source in whole seconds, from its custom metadata. It is
	// zero if the object or the reply does not have it.
	FileModTime time.Time `json:"fileModTime,omitzero"`

	// Gzip reports that the object is a file that was uploaded with Spec.Gzip:
	// its content encoding is gzip, and its custom metadata has the size of the file.
	Gzip             bool  `json:"gzip,omitempty"`
	UncompressedSize int64 `json:"uncompressedSize,omitempty"` // of that file; 0 without Gzip
}

// objectResource is the Object resource of the JSON API, in a request and in a reply. It has
// the fields of Object, except those that have another form there.
type objectResource struct {
	Object
	Generation     json.Number `json:"generation,omitempty"`
	Metageneration json.Number `json:"metageneration,omitempty"`
	Size           json.Number `json:"size,omitempty"`
	ComponentCount json.Number `json:"componentCount,omitempty"`
	CRC32C         string      `json:"crc32c,omitempty"`
	Retention      *retention  `json:"retention,omitempty"`
	Owner          struct {
		Entity string `json:"entity"`
	} `json:"owner,omitzero"`
	Encryption struct {
		KeySHA256 string `json:"keySha256"`
	} `json:"customerEncryption,omitzero"`
}

type retention struct {
	Mode            string    `json:"mode"`
	RetainUntilTime time.Time `json:"retainUntilTime"`
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
	for _, field := range reflect.VisibleFields(v.Type()) {
		name, _, tagged := strings.Cut(field.Tag.Get("json"), ",")
		if to := v.FieldByIndex(field.Index); tagged && json.Unmarshal(fields[name], to.Addr().Interface()) != nil {
			to.SetZero()
		}
	}
	return r, true
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
	o := &r.Object
	o.Owner, o.CustomerKeySHA256 = r.Owner.Entity, r.Encryption.KeySHA256
	o.FileModTime = objectmeta.ParseFileModTime(r.Metadata[objectmeta.FileModTime])
	o.UncompressedSize, o.Gzip = objectmeta.ParseGzip(r.ContentEncoding, r.Metadata[objectmeta.UncompressedSize])
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
	if r.ComponentCount != "" { // only a composed object has one
		o.ComponentCount, _ = r.ComponentCount.Int64()
	}
	o.CRC32C, err = checksum.Decode(r.CRC32C)
	o.HasCRC32C = err == nil
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
	o.CRC32C, o.HasCRC32C = objectmeta.CRC32C(h, "X-Goog-Hash")
	return o
}
