package fakegcs

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/internal/strictjson"
)

// CRC32C is a Castagnoli checksum. Its text form is that of the service: the
// four bytes in big-endian order, in base64 ("AAAAAA==" for the empty object).
type CRC32C uint32

// MarshalText implements [encoding.TextMarshaler].
func (c CRC32C) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *CRC32C) UnmarshalText(text []byte) error {
	var b [6]byte // the length of 8 characters
	n, err := 0, error(nil)
	if len(text) == 8 {
		n, err = base64.StdEncoding.Decode(b[:], text)
	}
	if err != nil || n != 4 {
		return fmt.Errorf("crc32c %q is not the base64 of 4 bytes", text)
	}
	*c = CRC32C(binary.BigEndian.Uint32(b[:]))
	return nil
}

func (c CRC32C) String() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(c)))
}

// Object is the metadata of one generation of an object. Its JSON form is the
// API's object resource,
// https://cloud.google.com/storage/docs/json_api/v1/objects#resource.
type Object struct {
	Bucket                  string            `json:"bucket"`
	Name                    string            `json:"name"`
	Generation              int64             `json:"generation,string,omitempty"`
	Metageneration          int64             `json:"metageneration,string,omitempty"`
	Size                    int64             `json:"size,string"`
	CRC32C                  CRC32C            `json:"crc32c"`
	MD5                     []byte            `json:"md5Hash,omitempty"` // none on composed objects, multipart uploads and with Options.NoMD5
	ContentType             string            `json:"contentType,omitempty"`
	ContentEncoding         string            `json:"contentEncoding,omitempty"`
	ContentDisposition      string            `json:"contentDisposition,omitempty"`
	ContentLanguage         string            `json:"contentLanguage,omitempty"`
	CacheControl            string            `json:"cacheControl,omitempty"`
	StorageClass            string            `json:"storageClass,omitempty"`
	Metadata                map[string]string `json:"metadata,omitempty"`
	Contexts                *Contexts         `json:"contexts,omitempty"`
	ACL                     []ACLRule         `json:"acl,omitempty"`   // nil for the default of a new bucket, projectPrivate
	Owner                   *Owner            `json:"owner,omitempty"` // nil in a bucket with uniform bucket-level access
	ComponentCount          int               `json:"componentCount,omitempty"`
	TemporaryHold           bool              `json:"temporaryHold,omitempty"`
	EventBasedHold          bool              `json:"eventBasedHold,omitempty"`
	RetentionExpirationTime time.Time         `json:"retentionExpirationTime,omitzero"`
	Retention               *Retention        `json:"retention,omitempty"`
	CustomTime              time.Time         `json:"customTime,omitzero"`
	CustomerEncryption      *Encryption       `json:"customerEncryption,omitempty"`
	KMSKeyName              string            `json:"kmsKeyName,omitempty"` // recorded, nothing is encrypted
	Etag                    string            `json:"etag,omitempty"`
	TimeCreated             time.Time         `json:"timeCreated,omitzero"`
	Updated                 time.Time         `json:"updated,omitzero"`
	TimeFinalized           time.Time         `json:"timeFinalized,omitzero"`
	TimeStorageClassUpdated time.Time         `json:"timeStorageClassUpdated,omitzero"`
	TimeDeleted             time.Time         `json:"timeDeleted,omitzero"`    // when it became noncurrent
	SoftDeleteTime          time.Time         `json:"softDeleteTime,omitzero"` // when it was soft-deleted
	HardDeleteTime          time.Time         `json:"hardDeleteTime,omitzero"` // when a soft-deleted object is deleted permanently
}

// Retention is the retention configuration of one object.
type Retention struct {
	Mode            string    `json:"mode,omitempty"` // "Unlocked" or "Locked"
	RetainUntilTime time.Time `json:"retainUntilTime,omitzero"`
}

// MarshalJSON implements [json.Marshaler]. The time has three decimals, as in a reply.
func (r Retention) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Mode            string    `json:"mode,omitempty"`
		RetainUntilTime timestamp `json:"retainUntilTime,omitzero"`
	}{r.Mode, timestamp{r.RetainUntilTime}})
}

// UnmarshalJSON ignores retentionExpirationTime, which Google's Python client sends with the other fields.
func (r *Retention) UnmarshalJSON(data []byte) error {
	var given struct {
		Mode                    string
		RetainUntilTime         time.Time
		RetentionExpirationTime any
	}
	err := strictjson.Decode(data, &given)
	*r = Retention{given.Mode, given.RetainUntilTime}
	return err
}

// Encryption names the customer-supplied key of an object.
// The key itself is never kept, and the bytes are stored as they are.
type Encryption struct {
	EncryptionAlgorithm string `json:"encryptionAlgorithm"`
	KeySHA256           string `json:"keySha256"` // base64
}

// clone returns a copy that can be changed independently of o.
func (o *Object) clone() *Object {
	c := *o
	c.MD5 = slices.Clone(o.MD5)
	c.Metadata = maps.Clone(o.Metadata)
	return &c
}

// sign gives o the entity tag of its generation and metageneration.
func (o *Object) sign() {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(o.Generation))
	binary.BigEndian.PutUint64(b[8:], uint64(o.Metageneration))
	var text [24]byte
	base64.StdEncoding.Encode(text[:], b[:])
	o.Etag = string(text[:])
}

// xmlTag returns the entity tag in the XML API: the MD5 if there is one and the bytes are not encrypted by a
// key of the client, otherwise an opaque value.
func (o *Object) xmlTag() string {
	if o.MD5 != nil && o.CustomerEncryption == nil {
		return `"` + hex.EncodeToString(o.MD5) + `"`
	}
	return `"-` + o.Etag + `"`
}

// hashes returns the value of the x-goog-hash header of o's bytes.
func (o *Object) hashes() []string {
	h := []string{"crc32c=" + o.CRC32C.String()}
	if o.MD5 != nil {
		h = append(h, "md5="+base64.StdEncoding.EncodeToString(o.MD5))
	}
	return h
}

// objectResource is an Object with the fields that depend on the request.
type objectResource struct {
	Kind      string `json:"kind"`
	ID        string `json:"id"`
	SelfLink  string `json:"selfLink"`
	MediaLink string `json:"mediaLink"`
	*Object
	// These fields replace those of Object, and can be omitted.
	Size                    *int64     `json:"size,string,omitempty"`
	CRC32C                  *CRC32C    `json:"crc32c,omitempty"`
	MD5                     []byte     `json:"md5Hash,omitempty"`
	ACL                     []aclEntry `json:"acl,omitempty"`   // see projected
	Owner                   *Owner     `json:"owner,omitempty"` // see projected
	TimeCreated             timestamp  `json:"timeCreated,omitzero"`
	Updated                 timestamp  `json:"updated,omitzero"`
	TimeFinalized           timestamp  `json:"timeFinalized,omitzero"`
	TimeStorageClassUpdated timestamp  `json:"timeStorageClassUpdated,omitzero"`
	TimeDeleted             timestamp  `json:"timeDeleted,omitzero"`
	SoftDeleteTime          timestamp  `json:"softDeleteTime,omitzero"`
	HardDeleteTime          timestamp  `json:"hardDeleteTime,omitzero"`
	RetentionExpirationTime timestamp  `json:"retentionExpirationTime,omitzero"`
}

// withoutChecksums returns r without checksums if the object has a customer-supplied key that
// the request does not have,
// https://cloud.google.com/storage/docs/encryption/customer-supplied-keys.
func (r objectResource) withoutChecksums(key *Encryption) objectResource {
	if r.CustomerEncryption != nil && key == nil {
		r.CRC32C, r.MD5 = nil, nil
	}
	return r
}

// linkEscape escapes an object's name for the links in a resource as the service does: all but some
// punctuation. internal/compat/recorded has the names.
func linkEscape(name string) string {
	s := url.PathEscape(name)
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	return linkPunctuation.Replace(s)
}

var linkPunctuation = strings.NewReplacer("+", "%2B", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*", "%2C", ",", "%3B", ";")

func (o *Object) resource(base string) objectResource {
	bucket, name := url.PathEscape(o.Bucket), linkEscape(o.Name)
	// The texts are parts of one, because each is an allocation.
	p := make([]byte, 0, len(o.Bucket)+len(o.Name)+2*(len(base)+len(bucket)+len(name))+2*20+100)
	p = append(append(append(append(p, o.Bucket...), '/'), o.Name...), '/')
	p = strconv.AppendInt(p, o.Generation, 10)
	id := len(p)
	p = append(append(append(append(append(p, base...), "/storage/v1/b/"...), bucket...), "/o/"...), name...)
	self := len(p)
	p = append(append(append(append(append(p, base...), "/download/storage/v1/b/"...), bucket...), "/o/"...), name...)
	p = append(strconv.AppendInt(append(p, "?generation="...), o.Generation, 10), "&alt=media"...)
	text := string(p)
	return objectResource{
		Kind:      "storage#object",
		ID:        text[:id],
		SelfLink:  text[id:self],
		MediaLink: text[self:],
		Object:    o,
		Size:      &o.Size,
		CRC32C:    &o.CRC32C,
		MD5:       o.MD5,

		TimeCreated: timestamp{o.TimeCreated}, Updated: timestamp{o.Updated}, TimeFinalized: timestamp{o.TimeFinalized},
		TimeStorageClassUpdated: timestamp{o.TimeStorageClassUpdated}, TimeDeleted: timestamp{o.TimeDeleted}, SoftDeleteTime: timestamp{o.SoftDeleteTime},
		HardDeleteTime: timestamp{o.HardDeleteTime}, RetentionExpirationTime: timestamp{o.RetentionExpirationTime},
	}
}
