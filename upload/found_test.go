package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
)

// The tests in this file are regression tests.

// TestSmallFileOnSlowLink checks that a small file on a slow link shows progress and
// does not stall. An earlier version did not count its bytes, so that the stall
// timeout was a deadline.
func TestSmallFileOnSlowLink(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, &fakegcs.Options{Rate: 66 << 10}, func(w *world) {
		content := data(8 * mib)
		res, err := w.uploader().File(w.t.Context(), w.file(content), spec)
		if err != nil || res.Requests != 1 {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
		if n := w.saw(upload.Progress); n < 100 {
			t.Errorf("%d Progress events in two minutes", n)
		}
	})
}

// TestUnalignedCommit checks that after a commit between two
// boundaries of 256 KiB no request is smaller than the service accepts.
func TestUnalignedCommit(t *testing.T) {
	t.Parallel()
	skipShort(t)
	short := fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectShortCommit, Bytes: 100}}
	for _, size := range []int64{2*q + 1, 3*q + 5, 4 * q, 33*q + 1} {
		content := data(size)
		for _, chunkSize := range []int64{0, q, 4 * q} {
			if chunkSize == 0 && size < 8*mib {
				continue // goes in one request
			}
			inBubble(t, &fakegcs.Options{Faults: []fakegcs.Fault{short}}, func(w *world) {
				_, err := w.uploader(func(o *upload.Options) { o.ChunkSize = chunkSize }).File(w.t.Context(), w.file(content), spec)
				if err != nil {
					t.Errorf("file of %d by %d: %v\n%s", size, chunkSize, err, w.trace())
				}
				w.wantObject("obj", content)
			})
		}
		inBubble(t, &fakegcs.Options{Faults: []fakegcs.Fault{short}}, func(w *world) {
			if _, err := w.uploader(smallWindow).Reader(w.t.Context(), pieces(content), spec); err != nil {
				t.Errorf("stream of %d: %v\n%s", size, err, w.trace())
			}
			w.wantObject("obj", content)
		})
	}
}

// unfinished leaves a saved upload with 2 MiB committed.
func (w *world) unfinished() (up *upload.Uploader, id, path string) {
	w.t.Helper()
	path = w.file(data(large))
	w.addFaults(
		fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStatusAfter, Status: 503, Bytes: 2 * mib}},
		fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}},
	)
	up = w.uploader(largeChunks)
	res, err := up.File(w.t.Context(), path, spec)
	if !res.Resumable {
		w.t.Fatal(err)
	}
	w.srv.ClearFaults()
	return up, res.ID, path
}

// TestCancelErrors checks that Cancel returns a sentinel error, and deletes
// the Token if the session is finished or canceled.
func TestCancelErrors(t *testing.T) {
	t.Parallel()
	skipShort(t)
	cancelling := func(do fakegcs.Action, times int) fakegcs.Fault {
		return fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpCancel}, Times: times, Do: do}
	}
	for _, tt := range []struct {
		name  string
		fault fakegcs.Fault
		want  error
		saved int
	}{
		{"403", cancelling(fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 403, Reason: "forbidden"}, 1), session.ErrPermission, 1},
		{"401 once", cancelling(fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 401}, 1), nil, 0},
		{"401 always", cancelling(fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 401}, -1), session.ErrCredentials, 1},
		{"503 once", cancelling(fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}, 1), nil, 0},
		{"503 always", cancelling(fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}, -1), session.ErrRetriesExhausted, 1},
		{"not found", cancelling(fakegcs.Action{Effect: fakegcs.EffectNotFound}, 1), nil, 0},
	} {
		inBubble(t, nil, func(w *world) {
			up, id, _ := w.unfinished()
			w.addFaults(tt.fault)
			if err := up.Cancel(w.t.Context(), id); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
			w.wantSaved(tt.saved)
		})
	}
	inBubble(t, nil, func(w *world) {
		up, id, _ := w.unfinished()
		w.addFaults(cancelling(fakegcs.Action{Effect: fakegcs.EffectStall}, -1))
		ctx, cancel := context.WithCancelCause(w.t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("the user said so")) })
		// The error of an upload would have its numbers, which are 0 here.
		const want = "cancel: context canceled: the user said so"
		if err := up.Cancel(ctx, id); !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("interrupted: %v, want %s", err, want)
		}
		w.wantSaved(1)
	})
	inBubble(t, nil, func(w *world) { // finished, and the reply lost
		path := w.file(data(9 * mib))
		w.addFaults(
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: fakegcs.Action{Effect: fakegcs.EffectLoseReply}},
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}},
		)
		res, _ := w.uploader().File(w.t.Context(), path, spec)
		w.srv.ClearFaults()
		if err := w.uploader().Cancel(w.t.Context(), res.ID); err != nil || w.saw(upload.Warning) != 1 {
			t.Errorf("finished: %v, %d warnings", err, w.saw(upload.Warning))
		}
		w.wantSaved(0)
	})
}

// TestTokenSurvivesAnswersOfOthers checks that one unexpected reply of a proxy
// does not discard the committed bytes.
func TestTokenSurvivesAnswersOfOthers(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{302, 307, 405, 407, 411, 414, 417, 421, 426, 431, 451} {
		inBubble(t, nil, func(w *world) {
			up, _, path := w.unfinished()
			w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: code, Body: "<html>proxy</html>"}})
			if _, err := up.File(w.t.Context(), path, spec); err != nil {
				w.wantSaved(1)
				if _, err := up.File(w.t.Context(), path, spec); err != nil {
					t.Errorf("%d: and then: %v", code, err)
				}
			}
		})
	}
}

// TestContentTypeWithLineBreak checks that a content type with a line break is
// refused.
func TestContentTypeWithLineBreak(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		s := spec
		s.ContentType = "text/plain\r\n\r\nextra"
		if _, err := w.uploader().File(w.t.Context(), w.file(data(10)), s); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("error = %v, want ErrInvalid", err)
		}
		w.wantNoObject("obj")
	})
}

// hungStore answers the first save only.
type hungStore struct {
	session.Store
	mu sync.Mutex
	n  int
}

func (h *hungStore) Save(ctx context.Context, token *session.Token) error {
	h.mu.Lock()
	h.n++
	n := h.n
	h.mu.Unlock()
	if n < 2 {
		return h.Store.Save(ctx, token)
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestStoreThatHangs checks that a store that hangs does not delay a canceled
// upload indefinitely.
func TestStoreThatHangs(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, &fakegcs.Options{Rate: 1 << 20}, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		time.AfterFunc(3*time.Second, cancel)
		up := w.uploader(func(o *upload.Options) { o.Store = &hungStore{Store: w.store} })
		start := time.Now()
		if _, err := up.File(ctx, w.file(data(12*mib)), spec); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("returned %v after it was cancelled", took-3*time.Second)
		}
		time.Sleep(20 * time.Second) // until the save has timed out
	})
}

// briefly runs n uploads with sessions for 32 s. apart is the time between their
// starts.
func (w *world) briefly(n int, apart time.Duration) {
	w.t.Helper()
	path := w.file(data(large))
	up := w.uploader(largeChunks, withoutStore)
	ctx, cancel := context.WithTimeout(w.t.Context(), 32*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			_, _ = up.File(ctx, path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)})
		})
	}
	wg.Wait()
}

// TestManyUploadsWhoseDataIsRefused checks that neither a session that opens nor a
// status query that is answered opens the gate, or keeps it open, while data is
// refused. In an earlier version, 32 uploads made 9 requests each in 32 s.
func TestManyUploadsWhoseDataIsRefused(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, apart := range []time.Duration{0, 20 * time.Millisecond} {
		t.Run(apart.String(), func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				const n = 32
				w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}})
				w.briefly(n, apart)
				ops := w.srv.Stats().Ops
				if data := ops[fakegcs.OpPut]; data > n+5 || ops[fakegcs.OpQuery] > 5 {
					t.Errorf("%d requests with data and %d queries for %d uploads", data, ops[fakegcs.OpQuery], n)
				}
			})
		})
	}
}

// TestEditedBeforeAFailure checks that an edit of the source during the upload is
// reported as such, even if a request fails after it. An earlier version reported
// damage at the server.
func TestEditedBeforeAFailure(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(9 * mib))
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStatusAfter, Status: 503, Bytes: 2 * mib}})
		up := w.uploader(func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Waiting {
					if err := editQuietly(path, 1000); err != nil {
						t.Error(err)
					}
				}
			}
		})
		if _, err := up.File(w.t.Context(), path, spec); !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("error = %v, want ErrSourceChanged", err)
		}
		w.wantNoObject("obj")
	})
}

// TestHugeChunkSize checks that a chunk size near the greatest integer does not
// overflow. In an earlier version it became 256 KiB.
func TestHugeChunkSize(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStatusAfter, Status: 503, Bytes: mib}})
		res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = math.MaxInt64 }).File(w.t.Context(), w.file(data(9*mib)), spec)
		if err != nil || res.Requests > 6 {
			t.Errorf("%d requests, %v", res.Requests, err)
		}
	})
}

// TestMissingBucketWithPrecondition checks that a missing bucket is reported
// as not found even if there is a precondition, for small and for large files.
func TestMissingBucketWithPrecondition(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, size := range []int64{9 * mib, 100} {
		inBubble(t, nil, func(w *world) {
			five := int64(5)
			_, err := w.uploader().File(w.t.Context(), w.file(data(size)), upload.Spec{Bucket: "nobucket", Object: "o", IfGenerationMatch: &five})
			if !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%d bytes: %v, want ErrNotFound", size, err)
			}
		})
	}
}

// appending is a store in whose Lock another process writes to the source: after the
// file was opened, and before its first byte is read.
type appending struct {
	session.Store
	path string
}

func (a *appending) Lock(ctx context.Context, id string) (func(), error) {
	if err := appendTo(a.path, "second line\n"); err != nil {
		return nil, err
	}
	return a.Store.Lock(ctx, id)
}

// TestAppendedWhileOpened checks that a file that grows while it is opened is
// uploaded completely or not at all. An earlier version uploaded its first part.
func TestAppendedWhileOpened(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, size := range []int64{100, 9 * mib} {
		inBubble(t, nil, func(w *world) {
			content := []byte(strings.Repeat("x", int(size)))
			path := w.file(content)
			_, err := w.uploader(func(o *upload.Options) { o.Store = &appending{w.store, path} }).File(w.t.Context(), path, spec)
			if err == nil {
				now, _ := os.ReadFile(path)
				if got, _ := w.srv.ReadObject("bkt", "obj"); !bytes.Equal(got, now) {
					t.Errorf("%d bytes: done, and the object has %d bytes, the file %d", size, len(got), len(now))
				}
			} else if !errors.Is(err, session.ErrSourceChanged) {
				t.Errorf("%d bytes: %v", size, err)
			}
		})
	}
}

// withoutChecksum removes the CRC32C of objects from replies.
type withoutChecksum struct{ http.RoundTripper }

func (w withoutChecksum) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	body = regexp.MustCompile(`"crc32c": *"[^"]*",`).ReplaceAll(body, nil)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, err
}

// TestResultHasNoChecksumOfOurs checks that a Result has a CRC32C only if the
// service sent one. It had that of the source.
func TestResultHasNoChecksumOfOurs(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{10, large} {
		inBubble(t, nil, func(w *world) {
			content := data(size)
			w.http.Transport = withoutChecksum{w.http.Transport}
			res, err := w.uploader(largeChunks).File(w.t.Context(), w.file(content), spec)
			if err != nil || res.Object.Size != size || res.Object.HasCRC32C || res.Object.CRC32C != 0 {
				t.Errorf("%d bytes: %+v, %v", size, res.Object, err)
			}
			w.wantObject("obj", content)
		})
	}
}
