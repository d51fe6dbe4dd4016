package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// blockingReader returns all of content, and then blocks until it is closed.
type blockingReader struct {
	content *bytes.Reader
	closed  chan struct{}
	inRead  atomic.Bool
}

func newBlockingReader(content []byte) *blockingReader {
	return &blockingReader{content: bytes.NewReader(content), closed: make(chan struct{})}
}

func (b *blockingReader) Read(p []byte) (int, error) {
	b.inRead.Store(true)
	defer b.inRead.Store(false)
	if n, err := b.content.Read(p); err == nil {
		return n, nil
	}
	<-b.closed
	return 0, io.ErrClosedPipe
}

// TestReaderReturnsAfterItsLastRead checks that nothing reads the source after Reader
// has returned. In an earlier version, a caller that seeked back and tried again
// published too few bytes.
func TestReaderReturnsAfterItsLastRead(t *testing.T) {
	refused := refusing(faults.OpPut, 403)
	for _, tt := range []struct {
		name   string
		faults []faults.Fault
		cancel bool
		want   error
	}{
		{"canceled", nil, true, context.Canceled},
		{"refused", []faults.Fault{refused}, false, session.ErrPermission},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The reply comes when the stream is read ahead.
			inBubble(t, &fakegcs.Options{Faults: tt.faults, Latency: time.Second}, func(w *world) {
				ctx, cancel := context.WithCancel(w.t.Context())
				defer cancel()
				r := newBlockingReader(data(3*q + 1))
				ended := calling(func() (*upload.Result, error) { return w.uploader(smallWindow).Reader(ctx, r, spec) })
				time.Sleep(1500 * time.Millisecond) // the session is open
				if !r.inRead.Load() {
					t.Fatal("the reader is not read")
				}
				if tt.cancel {
					cancel()
				}
				time.Sleep(time.Minute)
				if len(ended) > 0 {
					t.Error("Reader returned during a Read")
				}
				close(r.closed)
				if got := <-ended; !errors.Is(got.err, tt.want) {
					t.Errorf("error = %v, want %v", got.err, tt.want)
				}
				if r.inRead.Load() {
					t.Error("Reader returned during a Read")
				}
				w.wantNoObject("obj")
			})
		})
	}
}

// TestReaderInterruptsAConnection checks that an upload that fails does not
// close a connection that it reads from.
func TestReaderInterruptsAConnection(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		ours, theirs := net.Pipe()
		defer theirs.Close()
		ended := calling(func() (*upload.Result, error) { return w.uploader().Reader(ctx, ours, spec) })
		synctest.Wait()
		cancel()
		if got := <-ended; !errors.Is(got.err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", got.err)
		}
		go theirs.Write([]byte("next"))
		p := make([]byte, 4)
		if n, err := ours.Read(p); err != nil || string(p[:n]) != "next" {
			t.Errorf("Read = %q, %v", p[:n], err)
		}
	})
}

// TestReaderReadsLittleBeforeTheSession checks that an upload that cannot start reads
// only enough to determine whether its source is short, and nothing if the
// precondition does not hold.
func TestReaderReadsLittleBeforeTheSession(t *testing.T) {
	refuse := func(op faults.Op) []faults.Fault {
		return []faults.Fault{{Match: faults.Match{Op: op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}}}
	}
	onlyNew := upload.Spec{Bucket: "bkt", Object: "old", IfGenerationMatch: new(int64)}
	for _, tt := range []struct {
		name   string
		faults []faults.Fault
		spec   upload.Spec
		want   error
		read   int64
	}{
		{"precondition", nil, onlyNew, session.ErrPrecondition, 0},
		{"no session", refuse(faults.OpStart), spec, session.ErrPermission, q + 1},
		{"no bucket", nil, upload.Spec{Bucket: "none", Object: "obj"}, session.ErrNotFound, q + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				w.done(w.uploader().Reader(w.t.Context(), pieces(data(1)), upload.Spec{Bucket: "bkt", Object: "old"}))
				w.addFaults(tt.faults...)
				r := bytes.NewReader(data(5 * q))
				w.fails(tt.want)(w.uploader().Reader(w.t.Context(), r, tt.spec))
				if n := 5*q - int64(r.Len()); n != tt.read {
					t.Errorf("%d bytes were read, want %d", n, tt.read)
				}
			})
		})
	}
}
