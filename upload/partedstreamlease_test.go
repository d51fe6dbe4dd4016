package upload_test

import (
	"errors"
	"testing"
	"time"

	"gcsup/session/state"
	"gcsup/upload"
)

// TestStreamInPartsSuspended suspends a machine that sends a stream in parts until its lease expires. Meanwhile, another
// machine begins a stream, or takes the lease to query the upload. In both cases the first machine continues, and makes the
// object, unless the stream is in a spool and its input has ended: then the other machine completes it.
func TestStreamInPartsSuspended(t *testing.T) {
	t.Parallel()
	skipShort(t)
	begin := func(w *world, m *machine, _ string) error {
		other := spec
		other.Object = "other"
		_, err := m.Reader(w.t.Context(), pieces(data(partedLarge)), other)
		return err
	}
	query := func(w *world, m *machine, id string) error {
		_, err := m.Query(w.t.Context(), id)
		return err
	}
	for name, test := range map[string]struct {
		look    func(w *world, m *machine, id string) error
		spooled bool
	}{"a stream": {begin, false}, "a look": {query, false}, "a look at a spool": {query, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, slowly, func(w *world) {
				with := func(o *upload.Options) { streamParts(o); o.ChunkSize = 0 }
				content, sent, spool := data(partedLarge), partedLarge*3/4, func(*upload.Options) {}
				if test.spooled {
					sent, spool = partedLarge, w.spooling(48*mib)
				}
				a, b := w.machine("a", with, spool), w.machine("b", with, spool)
				in, end := w.stream(a.Uploader, spec)
				w.done(in.Write(content[:sent]))
				if test.spooled {
					_ = in.Close()
				}
				time.Sleep(time.Second)
				saved, err := firstOf(b.Saved(w.t.Context()))
				if err != nil || saved.ToRemove == test.spooled || saved.Incomplete {
					t.Fatalf("%+v, %v", saved, err)
				}
				a.net.suspend()
				time.Sleep(2 * leaseTTL)
				if err := test.look(w, b, saved.ID); err != nil {
					t.Errorf("the other machine: %v", err)
				}
				a.net.wake()
				if _, err := in.Write(content[sent:]); err != nil && !test.spooled {
					t.Fatal(err)
				}
				if _, err := end(); errors.Is(err, state.ErrInUse) != test.spooled || err != nil && !test.spooled {
					t.Errorf("the stream: %v\n%s", err, w.trace())
				}
				if test.spooled {
					w.done(b.Resume(w.t.Context(), saved.ID))
				}
				w.wantObject("obj", content)
				w.wantNoSpool()
				w.wantNoUploads()
			})
		})
	}
}
