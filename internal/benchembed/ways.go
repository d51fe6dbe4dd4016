package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gcsup/upload"
)

// content has the bytes that all ways upload repeatedly. They fit in a processor's
// cache, like bytes that a program has just computed.
var content = func() []byte {
	b := make([]byte, 64<<10)
	x := uint64(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}()

// endless is a reader that repeats content. Like a pipe, it has no WriteTo.
type endless struct{ off int }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, content[e.off:])
	e.off = (e.off + n) % len(content)
	return n, nil
}

// source returns a stream of size bytes.
func source(size int64) io.Reader { return io.LimitReader(&endless{}, size) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// barePut measures the minimum cost of a stream: one request without a session, whose
// bytes are hashed.
func barePut(ctx context.Context, c *clients, name string, size int64) error {
	sum := crc32.New(castagnoli)
	req, err := http.NewRequestWithContext(ctx, "POST", c.endpoint+"/upload/storage/v1/b/bench/o?uploadType=media&name="+url.QueryEscape(name), io.TeeReader(source(size), sum))
	if err != nil {
		return err
	}
	req.ContentLength = size
	return send(c.bare, req)
}

// bareInsert measures the minimum cost of a small object: one request with its
// checksum.
func bareInsert(ctx context.Context, c *clients, name string, size int64) error {
	data := content[:size]
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli))
	const boundary = "b0b0b0b0b0b0b0b0"
	head := fmt.Sprintf("--%s\r\nContent-Type: application/json\r\n\r\n{\"name\":%q,\"crc32c\":%q}\r\n--%s\r\nContent-Type: application/octet-stream\r\n\r\n",
		boundary, name, base64.StdEncoding.EncodeToString(sum), boundary)
	tail := "\r\n--" + boundary + "--\r\n"
	body := io.MultiReader(strings.NewReader(head), bytes.NewReader(data), strings.NewReader(tail))
	req, err := http.NewRequestWithContext(ctx, "POST", c.endpoint+"/upload/storage/v1/b/bench/o?uploadType=multipart&name="+url.QueryEscape(name), body)
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(head) + len(data) + len(tail))
	req.Header.Set("Content-Type", "multipart/related; boundary="+boundary)
	return send(c.bare, req)
}

// send makes a request and checks its status only.
func send(hc *http.Client, req *http.Request) error {
	resp, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != 200 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func reader(ctx context.Context, c *clients, name string, size int64) error {
	_, err := c.up.Reader(ctx, source(size), upload.Spec{Bucket: "bench", Object: name})
	return err
}

func fromBytes(ctx context.Context, c *clients, name string, size int64) error {
	_, err := c.up.Bytes(ctx, content[:size], upload.Spec{Bucket: "bench", Object: name})
	return err
}

func writer(ctx context.Context, c *clients, name string, size int64) error {
	w := c.official.Bucket("bench").Object(name).NewWriter(ctx)
	if _, err := io.Copy(w, source(size)); err != nil {
		return err
	}
	return w.Close()
}
