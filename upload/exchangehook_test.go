package upload_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// decisions records the exchanges of an uploader, as "put: send" or "part 2: done".
type decisions struct {
	mu    sync.Mutex
	words []string
	last  upload.Exchange
}

func (d *decisions) listen(o *upload.Options) {
	o.Exchange = func(x upload.Exchange) {
		d.mu.Lock()
		defer d.mu.Unlock()
		what := string(x.Op)
		if x.Part > 0 {
			what += fmt.Sprint(" ", x.Part)
		}
		if x.Next != nil {
			what += ": " + x.Next.String()
		}
		d.words, d.last = append(d.words, what), x
	}
}

// listenRestarts is listen, and records the Restarted events among the exchanges.
func (d *decisions) listenRestarts(o *upload.Options) {
	d.listen(o)
	observe := o.Observer
	o.Observer = func(e upload.Event) {
		observe(e)
		if e.Kind == upload.Restarted {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.words = append(d.words, "restarted")
		}
	}
}

func (d *decisions) want(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.words, want) {
		t.Errorf("decisions\n%q\nwant\n%q", d.words, want)
	}
}

// TestExchangeNext checks the decision after each reply, with its reason. The transcripts have those of all kinds of requests.
func TestExchangeNext(t *testing.T) {
	t.Parallel()
	status := func(op faults.Op, status int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectStatus, Status: status}}
	}
	t.Run("the session is lost, and then the upload is refused", func(t *testing.T) {
		inBubble(t, nil, func(w *world) {
			w.addFaults(
				faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectNotFound}},
				status(faults.OpFinalize, 403))
			var d decisions
			_, err := w.uploader(largeChunks, d.listenRestarts).File(w.t.Context(), w.file(data(large)), spec)
			failed, ok := errors.AsType[*session.Error](err)
			if !ok || !errors.Is(err, session.ErrPermission) {
				t.Fatalf("error = %v", err)
			}
			d.want(t, "start: send", "put: wait, query: 404 Not Found", "query: begin: 404 Not Found", "restarted",
				"start: send", "put: send", "finalize: fail: permission denied: 403 Forbidden")
			if d.last.Next.Err == failed {
				t.Error("the hook has the error of the upload, which may change meanwhile")
			}
		})
	})
	// The decision to start over does not count, because the source has another MD5.
	t.Run("a local error", func(t *testing.T) {
		inBubbleWithMD5(t, &fakegcs.Options{}, func(w *world) {
			other := spec
			other.MD5 = make([]byte, 16)
			var d decisions
			_, err := w.uploader(largeChunks, d.listen).File(w.t.Context(), w.file(data(large)), other)
			if !errors.Is(err, session.ErrChecksum) {
				t.Fatalf("error = %v", err)
			}
			d.want(t, "start: send", "put: send", "finalize")
		})
	})
}
