package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload/internal/batch"
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

// TestTwoRunsOverTwoRanges sends two ranges of one source at the same time, each
// through a run of its own, while requests fail.
func TestTwoRunsOverTwoRanges(t *testing.T) {
	t.Parallel()
	const size, half = 9*chunk.Granularity + 5, 4 * chunk.Granularity
	path, data := sourceFile(t, size)
	plan := &fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Times: 3, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		{Match: faults.Match{Op: faults.OpPut, Object: "part1"}, Skip: 2, Do: faults.Action{Effect: faults.EffectNotFound}},
	}}
	inBubble(t, plan, func(t *testing.T, srv *fakegcs.Server, u *Uploader) {
		src, err := chunk.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		var wg sync.WaitGroup
		for i, rng := range []chunk.Range{{From: 0, To: half}, {From: half, To: size}} {
			c := newCall(t.Context(), u, Spec{Bucket: "bkt", Object: fmt.Sprint("part", i)}, u.newBudget())
			file := source.FromReaderAt(io.NewSectionReader(src, rng.From, rng.Len()), rng.Len(), c.reread)
			wg.Go(func() {
				if err := c.uploadOnce(t.Context(), file); err != nil {
					t.Errorf("part %d: %v", i, err)
				}
				if n := c.result.tally.Sent.Load(); n < rng.Len() {
					t.Errorf("part %d: %d bytes were sent of %d", i, n, rng.Len())
				}
			})
		}
		wg.Wait()
		var got []byte
		for i := range 2 {
			part, err := srv.ReadObject("bkt", fmt.Sprint("part", i))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, part...)
		}
		if !bytes.Equal(got, data) {
			t.Error("the two objects are not the source's two ranges")
		}
	})
}

// TestThousandJobsShareOneBudget uploads a thousand files with one budget, and 400
// outside .ci/run. The budget grows with each file, so that the last one is retried as
// long as one file of their total size.
func TestThousandJobsShareOneBudget(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends a thousand files")
	}
	const size = 256 << 10
	jobs := testsize.Full(1000, 400)
	path, _ := sourceFile(t, size)
	inBubble(t, &fakegcs.Options{Discard: true, NoMD5: true}, func(t *testing.T, srv *fakegcs.Server, u *Uploader) {
		u.opts.ChunkSize = 0 // one request each
		shared := u.newBudget()
		slots := make(chan struct{}, 20)
		var wg sync.WaitGroup
		for i := range jobs {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				c := newCall(t.Context(), u, Spec{Bucket: "bkt", Object: fmt.Sprint(i)}, shared)
				if _, err := c.finish(t.Context(), uploadFile(t.Context(), c, path)); err != nil {
					t.Errorf("job %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if n := srv.Stats().Ops[faults.OpInsert]; n != int64(jobs) {
			t.Errorf("%d requests for %d jobs", n, jobs)
		}
		if err := srv.AddFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}); err != nil {
			t.Fatal(err)
		}
		c := newCall(t.Context(), u, Spec{Bucket: "bkt", Object: "last"}, shared)
		res, err := c.finish(t.Context(), uploadFile(t.Context(), c, path))
		want := backoff.Tries(int64(jobs+1) * size)
		if !errors.Is(err, session.ErrRetriesExhausted) || res.Retries != want {
			t.Errorf("%d retries, want %d: %v", res.Retries, want, err)
		}
	})
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
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > time.Second+batch.AbandonAfter || res.Requests != 1 {
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
		u.opts.Parallel = InParts(2, part).By(ByCompose)
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

// zeros is a source whose reads cost no time.
type zeros struct{}

func (zeros) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	return len(p), nil
}

// TestRequestsOfAMinute checks that a request takes about a minute after the rate is
// known.
func TestRequestsOfAMinute(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends 1 GiB")
	}
	inBubble(t, &fakegcs.Options{Rate: 512 << 10, Discard: true, NoMD5: true}, func(t *testing.T, srv *fakegcs.Server, u *Uploader) {
		u.opts.ChunkSize = 0
		const size = 1<<30 + 64<<20
		c := newCall(t.Context(), u, Spec{Bucket: "bkt", Object: "obj"}, u.newBudget())
		file := source.FromReaderAt(zeros{}, size, c.reread)
		res, err := c.do(t.Context(), func(ctx context.Context) error { return uploadSource(ctx, c, file, "") })
		if err != nil {
			t.Fatal(err)
		}
		// The start, 1 GiB, two or three times 30 MiB, and the last 256 KiB.
		if res.Requests < 6 || res.Requests > 7 {
			t.Errorf("%d requests, want 6 or 7", res.Requests)
		}
	})
}

// TestCanceledStreamEndsItsSession checks that a stream which is canceled, and
// can never be resumed, leaves no session open at the service.
func TestCanceledStreamEndsItsSession(t *testing.T) {
	stall := &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: 100}}}}
	inBubble(t, stall, func(t *testing.T, srv *fakegcs.Server, u *Uploader) {
		u.opts.Window = chunk.Granularity
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := u.Reader(ctx, bytes.NewReader(make([]byte, 3*chunk.Granularity)), Spec{Bucket: "bkt", Object: "obj"})
		if n := srv.Stats().Ops[faults.OpCancel]; !errors.Is(err, context.DeadlineExceeded) || n != 1 {
			t.Errorf("%v, and %d requests to end the session, want one", err, n)
		}
	})
}
