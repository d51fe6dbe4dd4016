package session

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"gcsup/internal/checksum"
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
	x := onObject(c, OpRead, "GET", spec, q)
	x.key = spec.EncryptionKey
	var content []byte
	x.read = func(r *Reply, resp *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(resp.Body, contentLimit+1))
		if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		if len(text) > contentLimit {
			r.Err = fmt.Errorf("read the content: more than %d bytes", contentLimit)
			return nil
		}
		if want, ok := hashHeader(resp.Header, "X-Goog-Hash"); ok && checksum.Update(0, text) != want {
			return fmt.Errorf("read the content: %w", ErrChecksum)
		}
		content = text
		return nil
	}
	r := c.do(ctx, x)
	return content, r
}

// Delete deletes an object with the preconditions of spec. Status 204 means success. A
// bucket with versioning keeps the object as a noncurrent version.
// https://cloud.google.com/storage/docs/json_api/v1/objects/delete
func (c *Client) Delete(ctx context.Context, spec Spec) Reply {
	return c.do(ctx, onObject(c, OpDelete, "DELETE", spec, spec.withConditions(url.Values{})))
}

// DeleteGeneration deletes one generation of an object, with the preconditions of spec. A
// bucket with versioning does not keep it.
// https://cloud.google.com/storage/docs/deleting-objects#delete-noncurrent
func (c *Client) DeleteGeneration(ctx context.Context, spec Spec, generation int64) Reply {
	q := url.Values{"generation": {strconv.FormatInt(generation, 10)}}
	return c.do(ctx, onObject(c, OpDelete, "DELETE", spec, spec.withConditions(q)))
}

// DeleteFolder deletes a folder of a bucket with hierarchical namespace. The name ends in a slash. Status
// 204 means success, and 409 that the folder is not empty. The service also deletes the managed folder of that
// name, if the caller may delete it: use bucket.DeleteFolder. userProject is the project that is billed, for requester-pays buckets.
// https://cloud.google.com/storage/docs/json_api/v1/folders/delete
func (c *Client) DeleteFolder(ctx context.Context, bucket, folder, userProject string) Reply {
	q := url.Values{"userProject": {userProject}}
	return c.do(ctx, call{op: OpFolderDelete, method: "DELETE", url: c.url(q, "storage", "v1", "b", bucket, "folders", folder)})
}

// Get reads a resource of the JSON API that has no method of its own, or a list of them. It
// is for op OpList, OpBucket, OpNotifications, OpPermissions or OpManagedFolder, see package bucket. Parameters
// whose value is "" are removed from query. path has the elements of the path below
// /storage/v1. read reads the body of a successful reply. If it returns an error, the reply
// counts as lost. If the body is complete, but cannot be used, read sets the Err of the reply.
func (c *Client) Get(ctx context.Context, op Op, query url.Values, path []string, read func(r *Reply, body io.Reader) error) Reply {
	return c.do(ctx, call{
		op: op, method: "GET", url: c.url(query, append([]string{"storage", "v1"}, path...)...),
		read: func(r *Reply, resp *http.Response) error { return read(r, resp.Body) },
	})
}
