package fakegcs

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gcsup/fakegcs/internal/strictjson"
)

// metadataLimit bounds a metadata body; the service's limits are far lower.
const metadataLimit = 1 << 20

// newObject returns the metadata and the declared checksums of an object from q, which
// starts its resumable upload.
func (q *request) newObject(now time.Time) (*Object, checksums, *apiError) {
	if q.xml {
		return q.newXMLObject(now)
	}
	data, err := readMetadata(q.in)
	if err != nil {
		return nil, checksums{}, err
	}
	if len(data) > 0 {
		if t, _, err := mime.ParseMediaType(q.Header.Get("Content-Type")); err != nil || t != "application/json" {
			return nil, checksums{}, &apiError{status: http.StatusBadRequest, text: true, message: "Unsupported content with type: " + q.Header.Get("Content-Type")}
		}
	}
	o, want, err := decodeObject(data)
	if err != nil {
		return nil, want, err
	}
	if err := o.setType(q.Header.Get("X-Upload-Content-Type")); err != nil {
		return nil, want, err
	}
	return o, want, q.address(o, now)
}

// newXMLObject is newObject for the headers of an XML API request.
func (q *request) newXMLObject(now time.Time) (*Object, checksums, *apiError) {
	h := q.Header
	o := &Object{
		ContentType: h.Get("Content-Type"), ContentEncoding: h.Get("Content-Encoding"), ContentDisposition: h.Get("Content-Disposition"),
		ContentLanguage: h.Get("Content-Language"), CacheControl: h.Get("Cache-Control"), StorageClass: h.Get("X-Goog-Storage-Class"),
		Metadata: addMetadataHeaders(nil, h, "X-Goog-Meta-"),
	}
	var refused *apiError
	if o.StorageClass, refused = storageClass(o.StorageClass); refused != nil {
		return nil, checksums{}, refused
	}
	o.KMSKeyName = h.Get("X-Goog-Encryption-Kms-Key-Name")
	if v := h.Get("X-Goog-Custom-Time"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return nil, checksums{}, invalid("Invalid X-Goog-Custom-Time '%s'.", v)
		}
		o.CustomTime = t
	}
	var want checksums
	if err := want.addHeader(h); err != nil {
		return nil, want, err
	}
	return o, want, q.address(o, now)
}

// setType sets the content type that was sent with the bytes. It must not differ from
// that of the metadata, https://github.com/googleapis/google-cloud-go/issues/306.
func (o *Object) setType(upload string) *apiError {
	if o.ContentType != "" && upload != "" && o.ContentType != upload {
		return invalid("Content-Type specified in the upload (%s) does not match Content-Type specified in metadata (%s).", upload, o.ContentType)
	}
	if o.ContentType == "" {
		o.ContentType = upload
	}
	return nil
}

// address sets the names and the encryption key of o from the URL and the headers of
// q. Names in the metadata must be the same.
func (q *request) address(o *Object, now time.Time) *apiError {
	name := q.object
	if !q.xml {
		name = q.query.Get("name")
	}
	if name == "" {
		name = o.Name
	}
	if o.Name != "" && o.Name != name {
		return invalid("Value '%s' in content does not agree with value '%s'. This can happen when a value set through a parameter is inconsistent with a value set in the request.", o.Name, name)
	}
	if o.Bucket != "" && o.Bucket != q.bucket {
		return invalid("Value '%s' in content does not agree with value '%s'.", o.Bucket, q.bucket)
	}
	o.Bucket, o.Name = q.bucket, name
	q.object = name // for the request log
	if v := q.query.Get("contentEncoding"); v != "" {
		o.ContentEncoding = v
	}
	if v := q.query.Get("kmsKeyName"); v != "" {
		o.KMSKeyName = v
	}
	if err := o.checkNew(q.query.Get("predefinedAcl"), now); err != nil {
		return err
	}
	if err := q.checkProjection(); err != nil {
		return err
	}
	var err *apiError
	o.CustomerEncryption, err = encryptionKey(q.Header, "X-Goog-Encryption-")
	return err
}

// checkNew checks the fields of a new object, and completes its contexts and its access
// control list.
func (o *Object) checkNew(predefinedACL string, now time.Time) *apiError {
	if err := checkName(o.Name); err != nil {
		return err
	}
	if err := checkMetadata(o.Metadata); err != nil {
		return err
	}
	if err := o.newContexts(now); err != nil {
		return err
	}
	if err := o.grant(predefinedACL); err != nil {
		return err
	}
	return checkRetention(nil, o.Retention, false, now)
}

func readMetadata(r io.Reader) ([]byte, *apiError) {
	data, err := io.ReadAll(io.LimitReader(r, metadataLimit+1))
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "invalid", "The metadata could not be read: %v", err)
	case len(data) > metadataLimit:
		return nil, invalid("Metadata part is too large.") // status and text that the system tests of Node's client want
	}
	return data, nil
}

// decode reads the body of q, a resource called what, into v.
func (q *request) decode(what string, v any) *apiError {
	body, refused := readMetadata(q.in)
	if refused != nil {
		return refused
	}
	if err := strictjson.Decode(body, v); err != nil {
		return invalid("Invalid %s: %v", what, err)
	}
	return nil
}

// checkMetadata applies https://cloud.google.com/storage/quotas#objects.
func checkMetadata(m map[string]string) *apiError {
	size := 0
	for k, v := range m {
		size += len(k) + len(v)
	}
	if size > 8<<10 {
		return refuse(http.StatusBadRequest, "metadataTooLarge", "The metadata is %d bytes, at most 8192 are allowed.", size)
	}
	return nil
}

// addMetadataHeaders returns a copy of m with the custom metadata of the headers.
func addMetadataHeaders(m map[string]string, h http.Header, prefix string) map[string]string {
	m = maps.Clone(m)
	for key, values := range h {
		if name, ok := strings.CutPrefix(key, prefix); ok && name != "" {
			if m == nil {
				m = map[string]string{}
			}
			m[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	return m
}

// objectInput lists the fields that the metadata of an upload may have.
var objectInput = strings.Fields("acl bucket cacheControl contentDisposition contentEncoding contentLanguage contentType contexts crc32c customTime eventBasedHold kmsKeyName md5Hash metadata name " +
	"retention storageClass temporaryHold")

func decodeObject(data []byte) (*Object, checksums, *apiError) {
	if o, want, ok := decodePlain(data); ok {
		return o, want, nil
	}
	return decodeGeneral(data)
}

// decodeGeneral is decodeObject for any metadata.
func decodeGeneral(data []byte) (*Object, checksums, *apiError) {
	var (
		d    Object
		acl  []ACLRule
		sums checksums
	)
	if len(data) > 0 {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return nil, checksums{}, refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
		}
		for name, raw := range fields {
			if name == "acl" {
				var err *apiError
				if acl, err = parseACL(raw, objectACLs.roles); err != nil {
					return nil, checksums{}, err
				}
				delete(fields, name)
				continue
			}
			if slices.Contains(objectInput, name) {
				continue
			}
			if err := unkept("object", name, raw, objectOutput, nil); err != nil {
				return nil, checksums{}, err
			}
			delete(fields, name)
		}
		want, refused := declaredChecksums(fields)
		if refused != nil {
			return nil, checksums{}, refused
		}
		sums = want
		kept, err := json.Marshal(fields)
		if err == nil {
			err = strictjson.Decode(kept, &d)
		}
		if err != nil {
			return nil, checksums{}, refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
		}
	}
	o := d
	class, err := storageClass(o.StorageClass)
	if err != nil {
		return nil, checksums{}, err
	}
	return &Object{
		Bucket: o.Bucket, Name: o.Name, ContentType: o.ContentType, ContentEncoding: o.ContentEncoding, ContentDisposition: o.ContentDisposition,
		ContentLanguage: o.ContentLanguage, CacheControl: o.CacheControl, StorageClass: class, Metadata: o.Metadata, Contexts: o.Contexts, ACL: acl,
		TemporaryHold: o.TemporaryHold, EventBasedHold: o.EventBasedHold, Retention: o.Retention, CustomTime: o.CustomTime, KMSKeyName: o.KMSKeyName,
	}, sums, nil
}

// declaredChecksums removes the checksums, which must match, from the fields of an upload's metadata.
func declaredChecksums(fields map[string]json.RawMessage) (checksums, *apiError) {
	var c checksums
	if raw, ok := fields["md5Hash"]; ok {
		var text string
		if json.Unmarshal(raw, &text) != nil || c.setMD5(text) != nil {
			return c, invalid("Provided value (%s) is not a base64-encoded 128-bit MD5 hash.", cmp.Or(text, string(raw)))
		}
	}
	if raw, ok := fields["crc32c"]; ok {
		c.crc = new(CRC32C)
		if json.Unmarshal(raw, c.crc) != nil {
			return c, invalid("Invalid argument.")
		}
	}
	delete(fields, "md5Hash")
	delete(fields, "crc32c")
	return c, nil
}

// checkName applies https://cloud.google.com/storage/docs/objects#naming.
func checkName(name string) *apiError {
	switch {
	case name == "":
		return refuse(http.StatusBadRequest, "required", "No object name")
	case len(name) > 1024:
		return invalid("The maximum object length is 1024 characters, but got a name with %d characters: '%s...'", len(name), strings.ToValidUTF8(name[:77], ""))
	case !utf8.ValidString(name), name == ".", name == "..", strings.HasPrefix(name, ".well-known/acme-challenge/"):
		return invalid("The specified object name is not valid.")
	}
	for _, r := range name {
		if r == '\r' || r == '\n' {
			return invalid("Disallowed unicode characters present in object name '%s'", name)
		}
	}
	return nil
}

// storageClass returns the class with that name, which may be a legacy one,
// https://cloud.google.com/storage/docs/storage-classes. The error has the text of
// the service, https://github.com/googleapis/python-storage/issues/879.
func storageClass(name string) (string, *apiError) {
	switch class := strings.ToUpper(name); class {
	case "", "STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE", "RAPID", "MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY":
		return class, nil
	}
	return "", invalid("Invalid storage class")
}
