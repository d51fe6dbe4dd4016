package fakegcs

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"gcsup/fakegcs/internal/blob"
)

// metadataLimit bounds a metadata body; the service's limits are far lower.
const metadataLimit = 1 << 20

// checksums are what an uploader says the bytes must have.
type checksums struct {
	crc *CRC32C
	md5 []byte
}

// addHeader adds what X-Goog-Hash and Content-MD5 declare.
func (c *checksums) addHeader(h http.Header) *apiError {
	for _, line := range h.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch name {
			case "crc32c":
				crc := new(CRC32C)
				if err := crc.UnmarshalText([]byte(value)); err != nil {
					return invalid("Invalid X-Goog-Hash header: %v", err)
				}
				c.crc = crc
			case "md5":
				if err := c.setMD5(value); err != nil {
					return err
				}
			}
		}
	}
	if v := h.Get("Content-MD5"); v != "" {
		return c.setMD5(v)
	}
	return nil
}

func (c *checksums) setMD5(value string) *apiError {
	sum, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(sum) != 16 {
		return invalid("Invalid MD5 '%s': it is not the base64 of 16 bytes.", value)
	}
	c.md5 = sum
	return nil
}

// check holds what was declared against what came.
func (c checksums) check(o *Object) *apiError {
	if c.crc != nil && *c.crc != o.CRC32C {
		return refuse(http.StatusBadRequest, "crcMismatch", `Provided CRC32C "%s" doesn't match calculated CRC32C "%s".`, *c.crc, o.CRC32C)
	}
	if c.md5 == nil {
		return nil
	}
	if o.MD5 == nil {
		return errUnimplemented("checking an MD5 with Options.NoMD5")
	}
	if !bytes.Equal(c.md5, o.MD5) {
		return refuse(http.StatusBadRequest, "badDigest", `Provided MD5 hash "%s" doesn't match calculated MD5 hash "%s".`,
			base64.StdEncoding.EncodeToString(c.md5), base64.StdEncoding.EncodeToString(o.MD5))
	}
	return nil
}

// newObject reads from the request that begins a resumable upload what the
// object is to be.
func (s *Server) newObject(q *request) (*Object, checksums, *apiError) {
	if q.xml {
		return s.newXMLObject(q)
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
	return o, want, s.address(q, o)
}

// setType takes the content type that comes with the bytes; the metadata must
// not have another, https://github.com/googleapis/google-cloud-go/issues/306.
func (o *Object) setType(upload string) *apiError {
	if o.ContentType != "" && upload != "" && o.ContentType != upload {
		return invalid("Content-Type specified in the upload (%s) does not match Content-Type specified in metadata (%s).", upload, o.ContentType)
	}
	if o.ContentType == "" {
		o.ContentType = upload
	}
	return nil
}

// nameUpload gives a request that begins an upload the name that only its
// metadata has, as Python's client and gcloud send it, for faults that match
// objects. What it reads of the body is there to be read again.
func (q *request) nameUpload() {
	boundary := multipartBoundary(q.Header.Get("Content-Type"))
	if q.object != "" || q.xml || q.op != OpStart && (q.op != OpInsert || boundary == "") {
		return
	}
	var ahead bytes.Buffer
	under := q.in.r
	metadata := io.TeeReader(io.LimitReader(under, metadataLimit), &ahead)
	defer func() { q.in.r = io.MultiReader(&ahead, under) }()
	if q.op == OpInsert {
		first, err := multipart.NewReader(metadata, boundary).NextRawPart()
		if err != nil {
			return // the insert will say so
		}
		metadata = first
	}
	var named struct {
		Name string `json:"name"`
	}
	if json.NewDecoder(metadata).Decode(&named) == nil {
		q.object = named.Name
	}
}

func readMetadata(r io.Reader) ([]byte, *apiError) {
	data, err := io.ReadAll(io.LimitReader(r, metadataLimit+1))
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "invalid", "The metadata could not be read: %v", err)
	case len(data) > metadataLimit:
		return nil, refuse(http.StatusRequestEntityTooLarge, "uploadTooLarge", "The metadata is larger than %d bytes.", metadataLimit)
	}
	return data, nil
}

// address puts into o what the URL and headers say: where it goes, with which
// key it is encrypted. Body and URL must agree.
func (s *Server) address(q *request, o *Object) *apiError {
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
	if err := checkName(name); err != nil {
		return err
	}
	o.Bucket, o.Name = q.bucket, name
	q.object = name // for the accounting
	if v := q.query.Get("contentEncoding"); v != "" {
		o.ContentEncoding = v
	}
	if v := q.query.Get("kmsKeyName"); v != "" {
		o.KMSKeyName = v
	}
	if err := checkMetadata(o.Metadata); err != nil {
		return err
	}
	if err := mayRetain(nil, o.Retention, false, s.now()); err != nil {
		return err
	}
	var err *apiError
	o.CustomerEncryption, err = encryptionKey(q.Header, "x-goog-encryption-")
	return err
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

// encryptionKey reads the headers of a customer-supplied key,
// https://cloud.google.com/storage/docs/encryption/customer-supplied-keys. It
// returns nil when there are none.
func encryptionKey(h http.Header, prefix string) (*Encryption, *apiError) {
	algorithm, key, sum := h.Get(prefix+"algorithm"), h.Get(prefix+"key"), h.Get(prefix+"key-sha256")
	if algorithm == "" && key == "" && sum == "" {
		return nil, nil
	}
	if algorithm != "AES256" {
		return nil, refuse(http.StatusBadRequest, "customerEncryptionAlgorithmIsInvalid", "The encryption algorithm is not valid. It must be AES256.")
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 32 {
		return nil, refuse(http.StatusBadRequest, "customerEncryptionKeyFormatIsInvalid", "The encryption key is not valid. It must be the base64 of 32 bytes.")
	}
	want := sha256.Sum256(raw)
	if base64.StdEncoding.EncodeToString(want[:]) != sum {
		return nil, refuse(http.StatusBadRequest, "customerEncryptionKeySha256IsInvalid", "Provided encryption key SHA256 hash does not match key.")
	}
	return &Encryption{algorithm, sum}, nil
}

// mayRead refuses to read the bytes of o without the key they were given with.
func mayRead(o *Object, h http.Header, prefix string) *apiError {
	key, err := encryptionKey(h, prefix)
	if err != nil {
		return err
	}
	if o.CustomerEncryption != nil && key == nil {
		return refuse(http.StatusBadRequest, "resourceIsEncryptedWithCustomerEncryptionKey", "The target object is encrypted by a customer-supplied encryption key.")
	}
	return fits(key, o)
}

// fits refuses a key that isn't the one of o. No key always fits: metadata can
// be read without.
func fits(key *Encryption, o *Object) *apiError {
	switch {
	case key == nil:
		return nil
	case o.CustomerEncryption == nil:
		return refuse(http.StatusBadRequest, "resourceNotEncryptedWithCustomerEncryptionKey", "The target object is not encrypted by a customer-supplied encryption key.")
	case key.KeySHA256 != o.CustomerEncryption.KeySHA256:
		return refuse(http.StatusBadRequest, "customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect.")
	}
	return nil
}

// newXMLObject reads the same from the headers of an XML API request.
func (s *Server) newXMLObject(q *request) (*Object, checksums, *apiError) {
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
	return o, want, s.address(q, o)
}

// addMetadataHeaders adds the custom metadata that comes in headers, to a new
// map.
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

// insert takes a whole object in one request.
func (s *Server) insert(q *request) *reply {
	o, err := s.insertObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	if q.xml {
		r := newReply(http.StatusOK).set("Content-Type", "text/html; charset=UTF-8")
		q.objectHeaders(r, o)
		r.set("Content-Type", "text/html; charset=UTF-8")
		return r
	}
	return jsonReply(http.StatusOK, q.resource(o))
}

func (s *Server) insertObject(q *request) (*Object, *apiError) {
	if err := s.hasBucket(q.bucket); err != nil {
		return nil, err
	}
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return nil, err
	}
	var (
		o     *Object
		want  checksums
		parts *multipart.Reader
		media io.Reader = q.in
	)
	switch {
	case q.xml:
		o, want, err = s.newXMLObject(q)
	case q.query.Get("uploadType") == "multipart":
		parts, media, o, want, err = s.openMultipart(q)
	default:
		o = &Object{ContentType: q.Header.Get("Content-Type")}
		if err = want.addHeader(q.Header); err == nil {
			err = s.address(q, o)
		}
	}
	if err != nil {
		return nil, err
	}
	content := s.newBlob()
	if err := s.fill(content, o, media); err != nil {
		content.Release()
		return nil, err
	}
	err = want.check(o)
	if err == nil && parts != nil {
		err = checkLater(q, parts, o)
	}
	var published *Object
	if err == nil {
		published, err = s.publish(o, content, cond)
	}
	if err != nil {
		content.Release()
		return nil, err
	}
	return published, nil
}

// checkLater holds o against the checksums of a multipart upload that are not
// in its metadata: of a part after the media, and of the header.
func checkLater(q *request, parts *multipart.Reader, o *Object) *apiError {
	var end, header checksums
	if err := trailer(parts, &end); err != nil {
		return err
	}
	if err := header.addHeader(q.Header); err != nil {
		return err
	}
	if err := end.check(o); err != nil {
		return err
	}
	return header.check(o)
}

// fill reads r to its end into blob, and gives o the size and checksums.
func (s *Server) fill(content *blob.Blob, o *Object, r io.Reader) *apiError {
	sum := blob.NewDigest(&s.buffers, !s.opts.NoMD5)
	defer sum.Idle()
	var storeErr error
	readErr := blob.ReadQuanta(r, 0, &s.buffers, func(p []byte) error {
		kept, err := content.Append(p, true)
		if err != nil {
			s.buffers.Put(p)
			storeErr = err
			return err
		}
		sum.Add(p, !kept)
		return nil
	})
	if err := content.Close(); err != nil && storeErr == nil {
		storeErr = err
	}
	switch {
	case storeErr != nil:
		return errInternal(storeErr)
	case readErr != nil:
		return invalid("The body could not be read: %v", readErr)
	}
	o.Size, o.CRC32C, o.MD5 = content.Size(), CRC32C(sum.CRC32C()), sum.MD5()
	return nil
}

// openMultipart reads a multipart upload up to its media,
// https://cloud.google.com/storage/docs/uploading-objects#rest-upload-objects.
func (s *Server) openMultipart(q *request) (*multipart.Reader, io.Reader, *Object, checksums, *apiError) {
	fail := func(err *apiError) (*multipart.Reader, io.Reader, *Object, checksums, *apiError) {
		return nil, nil, nil, checksums{}, err
	}
	kind := q.Header.Get("Content-Type")
	boundary := multipartBoundary(kind)
	if boundary == "" {
		return fail(refuse(http.StatusBadRequest, "badContent", "Unsupported content with type: %s", kind))
	}
	parts := multipart.NewReader(q.in, boundary)
	first, err := parts.NextRawPart()
	if err != nil {
		return fail(refuse(http.StatusBadRequest, "badContent", "Malformed multipart body: %v", err))
	}
	data, refused := readMetadata(first)
	if refused != nil {
		return fail(refused)
	}
	o, want, refused := decodeObject(data)
	if refused != nil {
		return fail(refused)
	}
	media, err := parts.NextRawPart()
	if err != nil {
		return fail(refuse(http.StatusBadRequest, "badContent", "Malformed multipart body: %v", err))
	}
	if refused := o.setType(media.Header.Get("Content-Type")); refused != nil {
		return fail(refused)
	}
	if refused := s.address(q, o); refused != nil {
		return fail(refused)
	}
	return parts, media, o, want, nil
}

// multipartBoundary finds the boundary of a multipart content type. Unlike
// [mime.ParseMediaType] it takes what gcloud and gsutil send: '===…==' in
// single quotes, which are no part of it.
func multipartBoundary(contentType string) string {
	kind, rest, _ := strings.Cut(contentType, ";")
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(kind)), "multipart/") {
		return ""
	}
	for rest != "" {
		rest = strings.TrimLeft(rest, " \t;")
		name, value, ok := strings.Cut(rest, "=")
		if !ok {
			return ""
		}
		if value == "" {
			return ""
		}
		quoted := ""
		if value[0] == '"' || value[0] == '\'' {
			if quoted, _, ok = strings.Cut(value[1:], value[:1]); !ok {
				return ""
			}
			rest = value[len(quoted)+2:]
		} else {
			quoted, rest, _ = strings.Cut(value, ";")
			quoted = strings.TrimSpace(quoted)
		}
		if strings.EqualFold(strings.TrimSpace(name), "boundary") {
			return quoted
		}
	}
	return ""
}

// trailer reads what follows the media: nothing, or one part with checksums.
// A body without the closing boundary was cut off.
func trailer(parts *multipart.Reader, want *checksums) *apiError {
	malformed := func(err error) *apiError {
		return refuse(http.StatusBadRequest, "badContent", "Malformed multipart body: %v", err)
	}
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
		data, refused := readMetadata(part)
		if refused != nil {
			return refused
		}
		_, later, refused := decodeObject(data)
		if refused != nil {
			return refused
		}
		if later.crc != nil {
			want.crc = later.crc
		}
		if later.md5 != nil {
			want.md5 = later.md5
		}
	}
}
