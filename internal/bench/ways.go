package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/session/state"
	"gcsup/upload"
)

// way connects to an endpoint, and returns a function that uploads an object.
type way func(ctx context.Context, endpoint string) (uploadFunc, error)

type uploadFunc func(ctx context.Context, object string, s source) error

// ways are the ways of this program by name.
var ways = map[string]way{
	"bare PUT":       barePuts,
	"cubic PUT":      cubicPuts,
	"bare insert":    bareInserts,
	"upload.File":    fromFile,
	"upload.Reader":  fromReader,
	"spooled Reader": fromSpool,
	"Reader in parts": func(_ context.Context, endpoint string) (uploadFunc, error) {
		return fromReaderInParts(endpoint, &upload.Parts{Connections: 8})
	},
	"auto Reader": func(_ context.Context, endpoint string) (uploadFunc, error) {
		return fromReaderInParts(endpoint, &upload.Parts{Auto: true})
	},
	"upload.Bytes": fromBytes,
	"storage.Writer": func(ctx context.Context, _ string) (uploadFunc, error) {
		return writer(ctx, option.WithHTTPClient(newHTTPClient(100)))
	},
	"storage.Writer with its own transport": func(ctx context.Context, _ string) (uploadFunc, error) { return writer(ctx) },
}

// source is where the bytes of an object come from: a part of a file, or generated if path
// is "".
type source struct {
	path       string
	from, size int64
}

// content has the bytes that all ways upload repeatedly if they have no file. They fit in a
// processor's cache, like bytes that a program has just computed.
var content = func() []byte {
	b := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

// endless is a reader that repeats content. Like a pipe, it has no WriteTo.
type endless struct{ off int }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, content[e.off:])
	e.off = (e.off + n) % len(content)
	return n, nil
}

// send calls do with the bytes as a stream.
func (s source) send(do func(io.Reader) error) error {
	if s.path == "" {
		return do(io.LimitReader(&endless{}, s.size))
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(io.NewSectionReader(f, s.from, s.size))
}

// barePuts measures the minimum cost of a stream or a file.
func barePuts(_ context.Context, endpoint string) (uploadFunc, error) {
	return putsOver(newHTTPClient(100), endpoint), nil
}

// cubicPuts is barePuts with cubic, whatever the system's congestion control is.
func cubicPuts(_ context.Context, endpoint string) (uploadFunc, error) {
	return putsOver(&http.Client{Transport: upload.NewTransport(&upload.TransportOptions{CongestionControl: "cubic"})}, endpoint), nil
}

func putsOver(hc *http.Client, endpoint string) uploadFunc {
	return func(ctx context.Context, object string, s source) error {
		return s.send(func(r io.Reader) error { return barePut(ctx, hc, endpoint, object, r, s.size) })
	}
}

// bareInserts measures the minimum cost of a small object or a small file.
func bareInserts(_ context.Context, endpoint string) (uploadFunc, error) {
	i, err := newInserter(endpoint)
	return func(ctx context.Context, object string, s source) error {
		return i.insert(ctx, object, s.size, func(p []byte) error {
			if s.path == "" {
				copy(p, content)
				return nil
			}
			f, err := os.Open(s.path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.ReadFull(f, p)
			return err
		})
	}, err
}

func newHTTPClient(idle int) *http.Client { return &http.Client{Transport: newTransport(idle)} }

func newTransport(idle int) *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: idle, DialContext: (&net.Dialer{}).DialContext, WriteBufferSize: 64 << 10}
}

func newUploader(o upload.Options) (*upload.Uploader, error) {
	o.Window, o.Memory = embed.window, embed.memory
	return upload.New(&http.Client{Transport: upload.NewTransport(nil)}, &o)
}

// newDir returns a new directory. XDG_STATE_HOME is that of the benchmark, which removes it.
func newDir() (string, error) { return os.MkdirTemp(os.Getenv("XDG_STATE_HOME"), "way-") }

// newStore returns a store in a new directory.
func newStore() (*state.Dir, error) {
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	return state.OpenDir(dir)
}

// fromFile uploads a whole file with a durable store.
func fromFile(_ context.Context, endpoint string) (uploadFunc, error) {
	store, err := newStore()
	if err != nil {
		return nil, err
	}
	up, err := newUploader(upload.Options{Endpoint: endpoint, Store: store})
	return func(ctx context.Context, object string, s source) error {
		_, err := up.File(ctx, s.path, upload.Spec{Bucket: "bench", Object: object})
		return err
	}, err
}

func fromReader(_ context.Context, endpoint string) (uploadFunc, error) {
	up, err := newUploader(upload.Options{Endpoint: endpoint})
	return readerFunc(up), err
}

// fromReaderInParts sends a stream as p describes.
func fromReaderInParts(endpoint string, p *upload.Parts) (uploadFunc, error) {
	store, err := newStore()
	if err != nil {
		return nil, err
	}
	up, err := newUploader(upload.Options{Endpoint: endpoint, Store: store, Parallel: p})
	return readerFunc(up), err
}

// fromSpool keeps the bytes of a stream on disk.
func fromSpool(_ context.Context, endpoint string) (uploadFunc, error) {
	store, err := newStore()
	if err != nil {
		return nil, err
	}
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	up, err := newUploader(upload.Options{Endpoint: endpoint, Store: store, Spool: &upload.Spool{Dir: dir}})
	return readerFunc(up), err
}

func readerFunc(up *upload.Uploader) uploadFunc {
	return func(ctx context.Context, object string, s source) error {
		return s.send(func(r io.Reader) error {
			_, err := up.Reader(ctx, r, upload.Spec{Bucket: "bench", Object: object})
			return err
		})
	}
}

func fromBytes(_ context.Context, endpoint string) (uploadFunc, error) {
	up, err := newUploader(upload.Options{Endpoint: endpoint})
	return func(ctx context.Context, object string, s source) error {
		_, err := up.Bytes(ctx, content[:s.size], upload.Spec{Bucket: "bench", Object: object})
		return err
	}, err
}

// writer uploads with the official library.
func writer(ctx context.Context, options ...option.ClientOption) (uploadFunc, error) {
	client, err := storage.NewClient(ctx, options...) // STORAGE_EMULATOR_HOST names the endpoint
	return func(ctx context.Context, object string, s source) error {
		return s.send(func(r io.Reader) error {
			w := client.Bucket("bench").Object(object).NewWriter(ctx)
			if _, err := io.Copy(w, r); err != nil {
				return err
			}
			return w.Close()
		})
	}, err
}
