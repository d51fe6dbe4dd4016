package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"

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
	"bare PUT":        barePuts,
	"cubic PUT":       cubicPuts,
	"bare insert":     bareInserts,
	"upload.File":     ours(upload.Options{}, true, fromFile),
	"upload.Reader":   ours(upload.Options{}, false, fromReader),
	"Reader in parts": ours(upload.Options{Parallel: &upload.Parts{Connections: 8}}, true, fromReader),
	"auto Reader":     ours(upload.Options{Parallel: &upload.Parts{Auto: true}}, true, fromReader),
	"spooled Reader":  ours(upload.Options{Spool: &upload.Spool{}}, true, fromReader),
	"upload.Bytes":    ours(upload.Options{}, false, fromBytes),
	"storage.Writer": func(ctx context.Context, _ string) (uploadFunc, error) {
		return writer(ctx, option.WithHTTPClient(newHTTPClient()))
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
	return putsOver(newHTTPClient(), endpoint), nil
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

func newHTTPClient() *http.Client { return &http.Client{Transport: newTransport()} }

func newTransport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 100, DialContext: (&net.Dialer{}).DialContext, WriteBufferSize: 64 << 10}
}

// ours returns a way of package upload: do uploads a source with an Uploader that has options.
// A durable Uploader has a store on disk.
func ours(options upload.Options, durable bool, do func(context.Context, *upload.Uploader, source, upload.Spec) error) way {
	return func(_ context.Context, endpoint string) (uploadFunc, error) {
		options.Endpoint, options.Window, options.Memory = endpoint, embed.window, embed.memory
		if durable {
			dir, err := os.MkdirTemp(os.Getenv("XDG_STATE_HOME"), "way-") // in the benchmark's directory, which it removes
			if err != nil {
				return nil, err
			}
			if options.Spool != nil {
				if options.Spool.Dir, err = os.MkdirTemp(dir, "spool-"); err != nil {
					return nil, err
				}
			}
			if options.Store, err = state.OpenDir(filepath.Join(dir, "state")); err != nil {
				return nil, err
			}
		}
		up, err := upload.New(&http.Client{Transport: upload.NewTransport(nil)}, &options)
		return func(ctx context.Context, object string, s source) error {
			return do(ctx, up, s, upload.Spec{Bucket: "bench", Object: object})
		}, err
	}
}

func fromFile(ctx context.Context, up *upload.Uploader, s source, spec upload.Spec) error {
	_, err := up.File(ctx, s.path, spec)
	return err
}

func fromReader(ctx context.Context, up *upload.Uploader, s source, spec upload.Spec) error {
	return s.send(func(r io.Reader) error {
		_, err := up.Reader(ctx, r, spec)
		return err
	})
}

func fromBytes(ctx context.Context, up *upload.Uploader, s source, spec upload.Spec) error {
	_, err := up.Bytes(ctx, content[:s.size], spec)
	return err
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
