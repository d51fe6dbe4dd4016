package session

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"gcsup/chunk"
)

// contentLimit bounds the content that Read returns.
const contentLimit = 32 << 20

// Read reads the content of a small object, such as a saved upload. generation is the
// version to read; 0 is the current one. The content is nil if the reply does not
// have it; the reply then has the reason. Read compares the CRC32C that the service
// sends, and returns at most 32 MiB.
// https://cloud.google.com/storage/docs/json_api/v1/objects/get
func (c *Client) Read(ctx context.Context, spec Spec, generation int64) ([]byte, Reply) {
	q := url.Values{"alt": {"media"}}
	if generation != 0 {
		q.Set("generation", strconv.FormatInt(generation, 10))
	}
	var content []byte
	r := c.onObject(ctx, OpRead, "GET", spec, spec.EncryptionKey, q, reading(func(resp *http.Response) (complete bool, err error) {
		content, complete, err = readContent(resp)
		return complete, err
	}))
	return content, r
}

// Delete deletes an object with the preconditions of spec. Status 204 means success. A
// bucket with versioning keeps the object as a noncurrent version.
// https://cloud.google.com/storage/docs/json_api/v1/objects/delete
func (c *Client) Delete(ctx context.Context, spec Spec) Reply {
	return c.delete(ctx, spec, url.Values{})
}

// DeleteGeneration deletes one generation of an object, with the preconditions of spec. A
// bucket with versioning does not keep it.
// https://cloud.google.com/storage/docs/deleting-objects#delete-noncurrent
func (c *Client) DeleteGeneration(ctx context.Context, spec Spec, generation int64) Reply {
	return c.delete(ctx, spec, url.Values{"generation": {strconv.FormatInt(generation, 10)}})
}

func (c *Client) delete(ctx context.Context, spec Spec, q url.Values) Reply {
	spec.addConditions(q)
	return c.onObject(ctx, OpDelete, "DELETE", spec, EncryptionKey{}, q, parseReply)
}

// onObject makes a request without a body for an object.
func (c *Client) onObject(ctx context.Context, op Op, method string, spec Spec, key EncryptionKey, q url.Values, parse parser) Reply {
	if spec.UserProject != "" {
		q.Set("userProject", spec.UserProject)
	}
	target := c.url(q, "storage", "v1", "b", url.PathEscape(spec.Bucket), "o", url.PathEscape(spec.Object))
	req, err := c.keyedRequest(method, target, key, nil, 0)
	if err != nil {
		return unsent(op, err)
	}
	if method != "GET" {
		c.addIdempotencyToken(req, nil)
	}
	return c.roundTrip(ctx, op, URI{}, req, parse)
}

// readContent reads the content of an object. complete is false if the connection was
// cut.
func readContent(resp *http.Response) (content []byte, complete bool, err error) {
	content, err = io.ReadAll(io.LimitReader(resp.Body, contentLimit+1))
	if err != nil {
		return nil, false, fmt.Errorf("read the content: %w", err)
	}
	if len(content) > contentLimit {
		return nil, true, fmt.Errorf("read the content: more than %d bytes", contentLimit)
	}
	if want, ok := hashHeader(resp.Header, "X-Goog-Hash"); ok && chunk.Update(0, content) != want {
		return nil, false, fmt.Errorf("read the content: %w", ErrChecksum)
	}
	return content, true, nil
}
