package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"

	"gcsup/chunk"
)

// Op names an exchange.
type Op string

// The exchanges.
const (
	OpStart    Op = "start"    // open a session
	OpPut      Op = "put"      // object data that is not the last
	OpQuery    Op = "query"    // how much is committed?
	OpFinalize Op = "finalize" // the last data, or none, with the total and the checksum
	OpCancel   Op = "cancel"   // end the session, drop its bytes
	OpInsert   Op = "insert"   // a small object in one request, without a session
	OpStat     Op = "stat"     // metadata of the object at the destination
)

// Start opens a session for an object of the given size (-1: not known yet).
// The reply's URI is the session. Repeating it is harmless: a session that
// gets no bytes costs nothing and expires.
func (c *Client) Start(ctx context.Context, spec Spec, size int64) Reply {
	body, err := json.Marshal(spec.resource())
	if err != nil {
		return unsent(OpStart, err)
	}
	req, err := c.request("POST", c.url(spec.query("resumable"), "upload", "storage", "v1", "b", url.PathEscape(spec.Bucket), "o"), bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return unsent(OpStart, err)
	}
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	req.Header.Set("X-Upload-Content-Type", spec.contentType())
	if size >= 0 {
		// The service then refuses another total, and completes the object
		// when it holds that many bytes.
		req.Header.Set("X-Upload-Content-Length", strconv.FormatInt(size, 10))
	}
	r := c.exchange(ctx, OpStart, URI{}, req)
	if r.Err == nil && (r.Status == 200 || r.Status == 201) {
		if r.URI, err = c.fresh(r.location.reveal()); err != nil {
			r.Err = err
			if errors.Is(err, ErrForeignURI) {
				r.Status = 0
			}
		}
	}
	return r
}

// Put sends the bytes of rng, which body yields, as a part that is not the
// last one. rng.To must be a multiple of [chunk.Quantum]. total is the size of
// the object, -1 when it is not known yet. When Put returns, body is no longer
// read.
func (c *Client) Put(ctx context.Context, uri URI, rng chunk.Range, total int64, body io.Reader) Reply {
	return c.send(ctx, OpPut, uri, rng, total, nil, body)
}

// Finalize sends the last bytes of the object, rng, which body yields, or none
// when the server holds them all (an empty rng; body may be nil). crc32c is
// that of the whole object: the service compares it before the object comes
// into being, and refuses a mismatch with status 400.
// https://cloud.google.com/storage/docs/data-validation
func (c *Client) Finalize(ctx context.Context, uri URI, rng chunk.Range, total int64, crc32c uint32, body io.Reader) Reply {
	return c.send(ctx, OpFinalize, uri, rng, total, &crc32c, body)
}

func (c *Client) send(ctx context.Context, op Op, uri URI, rng chunk.Range, total int64, crc32c *uint32, body io.Reader) Reply {
	switch {
	case op == OpPut && rng.Len() == 0:
		// With a total it would finalize, and without a checksum.
		return unsent(op, fmt.Errorf("%w: a part without bytes", ErrInvalid))
	case op == OpFinalize && rng.To != total:
		return unsent(op, fmt.Errorf("%w: the last part ends at %d, the object at %d", ErrInvalid, rng.To, total))
	case rng.Len() > 0 && body == nil:
		return unsent(op, fmt.Errorf("%w: no body", ErrInvalid))
	}
	var detachable *detachableBody
	var reader io.Reader
	if rng.Len() > 0 {
		detachable = &detachableBody{r: body}
		reader = detachable
	}
	req, err := c.request("PUT", uri.reveal(), reader, rng.Len())
	if err != nil {
		return unsent(op, err)
	}
	req.Header.Set("Content-Range", contentRange(rng, total))
	noRedirect308(req)
	if crc32c != nil {
		req.Header.Set("X-Goog-Hash", "crc32c="+chunk.EncodeCRC32C(*crc32c))
	}
	r := c.exchange(ctx, op, uri, req)
	r.Sent = rng.From
	if detachable != nil {
		// net/http may still be reading the body when it returns an early
		// reply.
		n := detachable.stop()
		r.Sent += n
		r.Unsent = r.Status == 0 && n == 0
	}
	return r
}

// contentRange is the Content-Range of a part: bytes a-b/T, with * for what is
// empty or not known.
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

// Query asks how much of the object the server holds. It never finalizes:
// the form with a total would, when all bytes are there, and without a
// checksum.
func (c *Client) Query(ctx context.Context, uri URI) Reply {
	req, err := c.request("PUT", uri.reveal(), nil, 0)
	if err != nil {
		return unsent(OpQuery, err)
	}
	req.Header.Set("Content-Range", "bytes */*")
	noRedirect308(req)
	return c.exchange(ctx, OpQuery, uri, req)
}

// Cancel ends the session; the server drops its bytes. Success is status 499
// (see [Reply.Cancelled]); an object that was finished before stays.
func (c *Client) Cancel(ctx context.Context, uri URI) Reply {
	req, err := c.request("DELETE", uri.reveal(), nil, 0)
	if err != nil {
		return unsent(OpCancel, err)
	}
	// Makes net/http send Content-Length: 0, which the service asks for.
	req.TransferEncoding = []string{"identity"}
	return c.exchange(ctx, OpCancel, uri, req)
}

// Insert uploads a whole small object, size bytes that data yields, in one
// request, with its CRC32C, which the service compares before the object comes into being. It is not
// resumable: https://cloud.google.com/storage/docs/uploading-objects#rest-upload-objects.
func (c *Client) Insert(ctx context.Context, spec Spec, size int64, crc32c uint32, data io.Reader) Reply {
	meta := spec.resource()
	meta.CRC32C = chunk.EncodeCRC32C(crc32c)
	head, err := json.Marshal(meta)
	if err != nil {
		return unsent(OpInsert, err)
	}
	var envelope bytes.Buffer
	w := multipart.NewWriter(&envelope)
	part, _ := w.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json; charset=UTF-8"}})
	_, _ = part.Write(head)
	_, _ = w.CreatePart(textproto.MIMEHeader{"Content-Type": {spec.contentType()}})
	opening := envelope.Len()
	_ = w.Close() // writes to memory do not fail
	front, back := envelope.Bytes()[:opening], envelope.Bytes()[opening:]

	body := &detachableBody{r: io.MultiReader(bytes.NewReader(front), data, bytes.NewReader(back))}
	req, err := c.request("POST", c.url(spec.query("multipart"), "upload", "storage", "v1", "b", url.PathEscape(spec.Bucket), "o"), body, int64(envelope.Len())+size)
	if err != nil {
		return unsent(OpInsert, err)
	}
	req.Header.Set("Content-Type", "multipart/related; boundary="+w.Boundary())
	r := c.exchange(ctx, OpInsert, URI{}, req)
	n := body.stop()
	r.Sent = min(max(n-int64(opening), 0), size)
	r.Unsent = r.Status == 0 && n == 0
	return r
}

// Stat asks for the metadata of the object at the destination.
func (c *Client) Stat(ctx context.Context, spec Spec) Reply {
	q := url.Values{"fields": {"bucket,name,generation,metageneration,size,crc32c,contentType,timeCreated"}}
	if spec.UserProject != "" {
		q.Set("userProject", spec.UserProject)
	}
	req, err := c.request("GET", c.url(q, "storage", "v1", "b", url.PathEscape(spec.Bucket), "o", url.PathEscape(spec.Object)), nil, 0)
	if err != nil {
		return unsent(OpStat, err)
	}
	return c.exchange(ctx, OpStat, URI{}, req)
}

// request builds a request with an explicit length, so that net/http never
// falls back to chunked transfer encoding.
func (c *Client) request(method, target string, body io.Reader, length int64) (*http.Request, error) {
	if body == nil {
		body = http.NoBody
	}
	req, err := http.NewRequest(method, target, body)
	if err != nil || req.URL.Host == "" {
		return nil, fmt.Errorf("%w: cannot build the request for %s", ErrInvalid, c.Endpoint()) // err would print the URI
	}
	req.ContentLength = length
	req.GetBody = nil // one exchange is one request: no resending behind our back
	return req, nil
}

// noRedirect308 asks for 200 with X-HTTP-Status-Code-Override: 308 instead of
// 308, which some proxies treat as a redirect. Both are understood.
func noRedirect308(req *http.Request) { req.Header.Set("X-GUploader-No-308", "yes") }

// unsent is the reply to a request that could not even be built.
func unsent(op Op, err error) Reply { return Reply{Op: op, Committed: -1, Err: err} }
