package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/internal/benchrun"
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

// way connects to an endpoint, and returns a function that uploads an object.
type way func(ctx context.Context, endpoint string) (upload func(ctx context.Context, name string, size int64) error, err error)

// ways are the ways by name, which is also that of the role.
var ways = map[string]way{
	"bare PUT": barePut, "bare insert": bareInsert, "upload.Reader": fromReader, "spooled Reader": fromSpool, "upload.Bytes": fromBytes, "storage.Writer": writer,
}

// barePut measures the minimum cost of a stream.
func barePut(_ context.Context, endpoint string) (func(context.Context, string, int64) error, error) {
	hc := newHTTPClient()
	return func(ctx context.Context, name string, size int64) error {
		return benchrun.BarePut(ctx, hc, endpoint, name, source(size), size)
	}, nil
}

// bareInsert measures the minimum cost of a small object.
func bareInsert(_ context.Context, endpoint string) (func(context.Context, string, int64) error, error) {
	hc := newHTTPClient()
	return func(ctx context.Context, name string, size int64) error {
		return benchrun.BareInsert(ctx, hc, endpoint, name, content[:size])
	}, nil
}

func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DialContext: (&net.Dialer{}).DialContext, WriteBufferSize: 64 << 10}}
}

func newUploader(endpoint string) (*upload.Uploader, error) {
	return upload.New(&http.Client{Transport: upload.NewTransport()}, &upload.Options{Endpoint: endpoint, Window: *window, Memory: *memory})
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
		Endpoint: endpoint, Window: *window, Memory: *memory, Store: store, Spool: upload.InSpool(filepath.Join(dir, "spool"), 0),
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
