package upload

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/internal/grace"
	"gcsup/upload/internal/source"
)

// The tests in this file combine parts of the package in ways in which the
// methods of Uploader do not.

// inBubble runs f with a server, in virtual time, and an Uploader for it.
func inBubble(t *testing.T, opts *fakegcs.Options, f func(t *testing.T, srv *fakegcs.Server, u *Uploader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, client, stop := ServeBucket(t, opts)
		defer stop()
		u, err := New(client, &Options{Endpoint: "http://gcs.test", ChunkSize: chunk.Granularity})
		if err != nil {
			t.Fatal(err)
		}
		f(t, srv, u)
	})
}

// sourceFile makes a file of size random bytes.
func sourceFile(t *testing.T, size int) (path string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(content)
	path = filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// hangingReader is a file on a server that no longer responds.
type hangingReader struct{ release chan struct{} }

func (h hangingReader) ReadAt(p []byte, off int64) (int, error) {
	<-h.release
	return 0, os.ErrDeadlineExceeded
}

// TestCancellationWaitsForNoFile checks that a canceled upload whose source hangs
// returns soon and reports its progress.
func TestCancellationWaitsForNoFile(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *fakegcs.Server, u *Uploader) {
		const size = 20 << 20
		hanging := hangingReader{make(chan struct{})}
		c := newCall(t.Context(), u, Spec{Bucket: "bkt", Object: "obj"}, u.newBudget())
		file := source.FromReaderAt(hanging, size, c.reread)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		res, err := c.do(ctx, func(ctx context.Context) error { return uploadSource(ctx, c, file, "") })
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > time.Second+grace.Call || res.Requests != 1 {
			t.Errorf("after %v: %+v, %v", took, res, err)
		}
		close(hanging.release)
	})
}

// halfReader is a file of zeros whose second half does not respond.
type halfReader struct {
	hangingReader
	half int64
}

func (h halfReader) ReadAt(p []byte, off int64) (int, error) {
	if off < h.half {
		clear(p)
		return len(p), nil
	}
	return h.hangingReader.ReadAt(p, off)
}

// TestCancellationWaitsForNoPart checks that a canceled upload in parts whose source
// hangs reports the bytes of its parts. It reported 0 bytes.
func TestCancellationWaitsForNoPart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *fakegcs.Server, u *Uploader) {
		const part = 2 << 20
		u.opts.Parallel = &Parts{Connections: 2, MinPart: part, Join: ByCompose}
		half := halfReader{hangingReader{make(chan struct{})}, 2 * part}
		c := newCall(t.Context(), u, Spec{Bucket: "bkt", Object: "obj"}, u.newBudget())
		file := source.FromReaderAt(half, 4*part, c.reread)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.do(ctx, func(ctx context.Context) error { return uploadSource(ctx, c, file, "") })
		if e, ok := errors.AsType[*InterruptedError](err); !ok || e.Committed != 2*part || e.Sent != 2*part {
			t.Errorf("%v, want %d bytes acknowledged", err, 2*part)
		}
		close(half.release)
		time.Sleep(time.Minute) // until the parts are removed
	})
}
