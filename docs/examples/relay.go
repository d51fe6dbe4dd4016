package examples

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"gcsup/upload"
)

// Relay copies a file of a web server to an object, without a copy on disk. If it is
// interrupted, the same call continues, even in another process: the ETag is the
// identity of the bytes.
func Relay(ctx context.Context, up *upload.Uploader, client *http.Client, url string, spec upload.Spec) (*upload.Result, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	etag := resp.Header.Get("ETag")
	if resp.StatusCode != http.StatusOK || resp.ContentLength < 0 || etag == "" {
		return nil, fmt.Errorf("%s: status %s, %d bytes, ETag %q", url, resp.Status, resp.ContentLength, etag)
	}
	source := &webFile{ctx: ctx, client: client, url: url, etag: etag}
	return up.ReaderAt(ctx, source, resp.ContentLength, url+" "+etag, spec)
}

// webFile reads ranges of one version of a file.
type webFile struct {
	ctx       context.Context
	client    *http.Client
	url, etag string
}

// ReadAt implements io.ReaderAt. It may be called several times at once.
func (f *webFile) ReadAt(p []byte, off int64) (int, error) {
	req, err := http.NewRequestWithContext(f.ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1))
	req.Header.Set("If-Match", f.etag) // fail if the version changed
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent {
		return 0, fmt.Errorf("%s: status %s", f.url, resp.Status)
	}
	n, err := io.ReadFull(resp.Body, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF // p extends beyond the end of the file
	}
	return n, err
}
