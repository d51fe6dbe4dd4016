package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/session/state"
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

// way connects to an endpoint, and returns a function that uploads an object.
type way func(ctx context.Context, endpoint string) (upload func(ctx context.Context, name string, size int64) error, err error)

// ways are the ways by name, which is also that of the role.
var ways = map[string]way{
	"bare PUT": barePut, "bare insert": bareInsert, "upload.Reader": fromReader, "spooled Reader": fromSpool, "upload.Bytes": fromBytes, "storage.Writer": writer,
}

// barePut measures the minimum cost of a stream: one request without a session, whose
// body is read, hashed and sent by one goroutine.
func barePut(_ context.Context, endpoint string) (func(context.Context, string, int64) error, error) {
	hc := newHTTPClient()
	return func(ctx context.Context, name string, size int64) error {
		sum := crc32.New(castagnoli)
		req, err := http.NewRequestWithContext(ctx, "POST", endpoint+"/upload/storage/v1/b/bench/o?uploadType=media&name="+name, io.TeeReader(source(size), sum))
		if err != nil {
			return err
		}
		req.ContentLength = size
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var stored struct{ CRC32C string }
		if err := json.NewDecoder(resp.Body).Decode(&stored); err != nil {
			return fmt.Errorf("%s: %w", resp.Status, err)
		}
		if want := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum.Sum32())); stored.CRC32C != want {
			return fmt.Errorf("%s: CRC32C %q, want %q", resp.Status, stored.CRC32C, want)
		}
		return nil
	}, nil
}

// bareInsert measures the minimum cost of a small object: one request with its
// checksum.
func bareInsert(_ context.Context, endpoint string) (func(context.Context, string, int64) error, error) {
	hc := newHTTPClient()
	return func(ctx context.Context, name string, size int64) error {
		data := content[:size]
		sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli))
		const boundary = "b0b0b0b0b0b0b0b0"
		head := fmt.Sprintf("--%s\r\nContent-Type: application/json\r\n\r\n{\"name\":%q,\"crc32c\":%q}\r\n--%s\r\nContent-Type: application/octet-stream\r\n\r\n",
			boundary, name, base64.StdEncoding.EncodeToString(sum), boundary)
		tail := "\r\n--" + boundary + "--\r\n"
		body := io.MultiReader(strings.NewReader(head), bytes.NewReader(data), strings.NewReader(tail))
		req, err := http.NewRequestWithContext(ctx, "POST", endpoint+"/upload/storage/v1/b/bench/o?uploadType=multipart&name="+name, body)
		if err != nil {
			return err
		}
		req.ContentLength = int64(len(head) + len(data) + len(tail))
		req.Header.Set("Content-Type", "multipart/related; boundary="+boundary)
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}, nil
}

func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DialContext: (&net.Dialer{}).DialContext, WriteBufferSize: 64 << 10}}
}

func newUploader(endpoint string) (*upload.Uploader, error) {
	return upload.New(&http.Client{Transport: upload.NewTransport()}, &upload.Options{Endpoint: endpoint, Memory: *memory})
}

func fromReader(_ context.Context, endpoint string) (func(context.Context, string, int64) error, error) {
	up, err := newUploader(endpoint)
	return func(ctx context.Context, name string, size int64) error {
		_, err := up.Reader(ctx, source(size), upload.Spec{Bucket: "bench", Object: name})
		return err
	}, err
}

// fromSpool keeps the bytes on disk, in the directory for temporary files.
func fromSpool(_ context.Context, endpoint string) (func(context.Context, string, int64) error, error) {
	dir, err := os.MkdirTemp("", "benchembed-")
	if err != nil {
		return nil, err
	}
	store, err := state.OpenDir(filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	up, err := upload.New(&http.Client{Transport: upload.NewTransport()}, &upload.Options{
		Endpoint: endpoint, Memory: *memory, Store: store, Spool: upload.InSpool(filepath.Join(dir, "spool"), 0),
	})
	return func(ctx context.Context, name string, size int64) error {
		_, err := up.Reader(ctx, source(size), upload.Spec{Bucket: "bench", Object: name})
		return err
	}, err
}

func fromBytes(_ context.Context, endpoint string) (func(context.Context, string, int64) error, error) {
	up, err := newUploader(endpoint)
	return func(ctx context.Context, name string, size int64) error {
		_, err := up.Bytes(ctx, content[:size], upload.Spec{Bucket: "bench", Object: name})
		return err
	}, err
}

func writer(ctx context.Context, _ string) (func(context.Context, string, int64) error, error) {
	client, err := storage.NewClient(ctx, option.WithHTTPClient(newHTTPClient())) // STORAGE_EMULATOR_HOST names the endpoint
	return func(ctx context.Context, name string, size int64) error {
		w := client.Bucket("bench").Object(name).NewWriter(ctx)
		if _, err := io.Copy(w, source(size)); err != nil {
			return err
		}
		return w.Close()
	}, err
}
