package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gcsup/chunk"
	"gcsup/internal/brief"
	"gcsup/internal/checksum"
)

// Start opens a session for an object of size bytes, or -1 if the size is not
// known. Reply.URI is the session URI. Start may be repeated: a session without
// data costs nothing and expires.
func (c *Client) Start(ctx context.Context, spec Spec, size int64) Reply {
	body, err := spec.Resource()
	if err != nil {
		return unsent(OpStart, err)
	}
	header := map[string]string{"Content-Type": jsonType, "X-Upload-Content-Type": spec.contentType()}
	if size >= 0 {
		// With this header, the service refuses another total, and completes
		// the object when it has that many bytes.
		header["X-Upload-Content-Length"] = strconv.FormatInt(size, 10)
	}
	return c.do(ctx, call{
		op: OpStart, method: "POST", url: uploadsURL(c, spec, "resumable", false), key: spec.EncryptionKey,
		header: header, body: bytes.NewReader(body), length: int64(len(body)), content: body,
		read: func(r *Reply, resp *http.Response) error {
			return c.opened(r, resp.Header.Get("Location"))
		},
	})
}

// Put sends the bytes of rng, which it reads from body. They must not be the
// last bytes of the object. rng.To must be a multiple of [chunk.Granularity]. total
// is the size of the object, or -1 if it is not known. Put does not read from
// body after it has returned.
//
// A body that may wait before it returns bytes, for example for a rate limit, should
// have a method Interrupt(). When the reply has arrived, Put calls Interrupt, which
// must end a Read that waits, and every later Read, with an error. Otherwise an early
// reply would have to wait, too.
func (c *Client) Put(ctx context.Context, uri URI, rng chunk.Range, total int64, body io.Reader) Reply {
	return send(ctx, c, OpPut, uri, rng, total, nil, body)
}

// Finalize sends the last bytes of the object, rng, which it reads from body. If the
// service has all bytes, rng is empty, and body may be nil. crc32c is the checksum of
// the whole object. The service checks it before it creates the object, and refuses a
// mismatch with status 400. https://cloud.google.com/storage/docs/data-validation
func (c *Client) Finalize(ctx context.Context, uri URI, rng chunk.Range, total int64, crc32c uint32, body io.Reader) Reply {
	return send(ctx, c, OpFinalize, uri, rng, total, &crc32c, body)
}

// send makes a request to a session.
func send(ctx context.Context, c *Client, op Op, uri URI, rng chunk.Range, total int64, crc32c *uint32, body io.Reader) Reply {
	switch {
	case op == OpPut && rng.Len() == 0:
		// With a total, the request would finalize the object without a
		// checksum.
		return unsent(op, invalid("empty range"))
	case op == OpFinalize && rng.To != total:
		return unsent(op, invalid("the range ends at %d, the object at %d", rng.To, total))
	case rng.Len() > 0 && body == nil:
		return unsent(op, invalid("no body"))
	}
	if rng.Len() == 0 {
		body = nil
	}
	header := map[string]string{
		"Content-Range": contentRange(rng, total),
		// Request replies of 200 with X-HTTP-Status-Code-Override: 308 instead of 308, which
		// some proxies treat as a redirect. parseReply accepts both.
		"X-GUploader-No-308": "yes",
	}
	if crc32c != nil {
		header["X-Goog-Hash"] = "crc32c=" + checksum.Encode(*crc32c)
	}
	r := c.do(ctx, call{op: op, method: "PUT", key: c.key, header: header, body: body, length: rng.Len(), data: op != OpQuery}.to(uri, ""))
	r.Sent += rng.From
	return r
}

// contentRange returns the Content-Range of a request: "bytes a-b/T", with *
// for an empty range and for an unknown total.
func contentRange(rng chunk.Range, total int64) string {
	size := "*"
	if total >= 0 {
		size = strconv.FormatInt(total, 10)
	}
	if rng.Len() == 0 {
		return "bytes */" + size
	}
	return fmt.Sprintf("bytes %d-%d/%s", rng.From, rng.To-1, size)
}

// Query asks for the committed offset. It sends no total: with a total, the
// request would finalize an object that has all bytes, without a checksum.
func (c *Client) Query(ctx context.Context, uri URI) Reply {
	return send(ctx, c, OpQuery, uri, chunk.Range{}, -1, nil, nil)
}

// Cancel ends the session, and the service drops its bytes. Status 499 means success,
// see [Reply.Canceled]. An object that is already finalized is not deleted.
func (c *Client) Cancel(ctx context.Context, uri URI) Reply {
	return c.do(ctx, call{op: OpCancel, method: "DELETE"}.to(uri, ""))
}

// Insert uploads an object of size bytes, which it reads from data, in one
// request. The service checks crc32c before it creates the object. The upload
// is not resumable:
// https://cloud.google.com/storage/docs/uploading-objects#rest-upload-objects.
func (c *Client) Insert(ctx context.Context, spec Spec, size int64, crc32c uint32, data io.Reader) Reply {
	meta := spec.resource()
	meta.CRC32C = checksum.Encode(crc32c)
	head, err := json.Marshal(meta)
	if err != nil {
		return unsent(OpInsert, err)
	}
	// This takes a tenth of the time of mime/multipart, which matters for many
	// small objects.
	boundary := rand.Text()
	front := "--" + boundary + "\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n" + string(head) +
		"\r\n--" + boundary + "\r\nContent-Type: " + spec.contentType() + "\r\n\r\n"
	back := "\r\n--" + boundary + "--\r\n"

	if data == nil {
		data = http.NoBody
	}
	r := c.do(ctx, call{
		op: OpInsert, method: "POST", url: uploadsURL(c, spec, "multipart", brief.Wanted(ctx)), key: spec.EncryptionKey,
		header: map[string]string{"Content-Type": "multipart/related; boundary=" + boundary},
		body:   insertBody{fullReader{io.MultiReader(strings.NewReader(front), data, strings.NewReader(back))}, data},
		length: int64(len(front)+len(back)) + size, data: true, content: head,
	})
	r.Sent = min(max(r.Sent-int64(len(front)), 0), size)
	return r
}

// jsonType is the content type of a request of the JSON API.
const jsonType = "application/json; charset=UTF-8"

// briefFields are the fields of an object by which an upload is verified, and its generation.
// https://cloud.google.com/storage/docs/json_api#partial-response
const briefFields = "bucket,name,generation,size,crc32c,md5Hash"

// uploadsURL returns the URL of the request that starts an upload. If the description of the object in the reply is
// brief, it has only briefFields.
func uploadsURL(c *Client, spec Spec, uploadType string, brief bool) string {
	// The default projection, noAcl, leaves out the ACL and the owner of the object.
	// storage.Writer sends full, too.
	projection, fields := "full", ""
	if brief {
		projection, fields = "", briefFields
	}
	q := spec.Conditions()
	maps.Copy(q, url.Values{
		"uploadType": {uploadType}, "name": {spec.Object}, "projection": {projection}, "fields": {fields},
		"predefinedAcl": {spec.PredefinedACL}, "kmsKeyName": {spec.KMSKeyName}, "userProject": {spec.UserProject},
	})
	return c.url(q, "upload", "storage", "v1", "b", spec.Bucket, "o")
}

// Stat reads the metadata of the object at the destination. The service sends
// the CRC32C of an object with a customer-supplied key only for that key. If the
// object is not encrypted with spec.EncryptionKey, Stat asks again without the
// key, and the object in the reply has no CRC32C.
func (c *Client) Stat(ctx context.Context, spec Spec) Reply {
	x := call{op: OpStat, method: "GET", url: c.url(url.Values{"userProject": {spec.UserProject}}, "storage", "v1", "b", spec.Bucket, "o", spec.Object)}
	if !spec.EncryptionKey.HasSecret() {
		return c.do(ctx, x)
	}
	keyed := x
	keyed.key = spec.EncryptionKey
	r := c.do(ctx, keyed)
	if r.otherEncryption() {
		if r = c.do(ctx, x); r.Object != nil {
			r.Object.CRC32C, r.Object.HasCRC32C = 0, false
		}
	}
	return r
}

// insertBody is the body of an Insert.
type insertBody struct {
	fullReader
	data io.Reader
}

// Interrupt interrupts the data, see [Client.Put].
func (b insertBody) Interrupt() { interrupt(b.data) }

// fullReader fills the buffer of each Read. net/http writes the result of each Read
// to the connection, so that a small object takes one write instead of three.
type fullReader struct{ r io.Reader }

func (f fullReader) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = f.r.Read(p[n:])
		n += m
	}
	return n, err
}
