package saved

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/require"
	"gcsup/session/state"
)

// TestStreamRecord checks that the session of a stream is saved before its first byte is sent, even if the
// store has an earlier one, and the committed offset every five seconds.
func TestStreamRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		dir, _ := openDir(t)
		var full atomic.Bool
		j, _ := open(t, failing(dir, "save", &full), func(_ *Call, draft *state.Upload) {
			draft.SourcePath, draft.Spool = "", &state.Spool{Dir: "/spool"}
		})
		j.BeginStream()
		if err := j.Save(t.Context()); err != nil || !load(t, dir, id).URI.IsZero() {
			t.Errorf("before the session is started: %v", err)
		}
		r := j.RecordStream()
		uri := s.start()
		r.Started(uri, 3)
		full.Store(true)
		if err := r.Sending(t.Context(), 0, 0, 4*q); !errors.Is(err, ErrUnsaved) || !errors.Is(err, errFault) {
			t.Errorf("a session that cannot be saved: %v", err)
		}
		full.Store(false)
		for _, step := range []struct {
			after     time.Duration
			committed int64
			saved     int64
		}{{0, 0, 0}, {4999 * time.Millisecond, q, 0}, {time.Millisecond, 2 * q, 2 * q}, {4 * time.Second, 3 * q, 2 * q}} {
			time.Sleep(step.after)
			require.NoError(t, r.Sending(t.Context(), step.committed, 0, 0))
			r.Handed(9 * q)
			j.AwaitSaves()
			doc := load(t, dir, id)
			if !sameURI(doc.URI, uri) || doc.Restarts != 3 || doc.Created.IsZero() || doc.Committed != step.saved || doc.HighWater != step.saved {
				t.Errorf("after %v: saved %+v, want %d committed", step.after, doc, step.saved)
			}
		}
		r.Rejected(7)
		r.Ended(2 * q) // as a query may report
		j.Keep()
		j.Close()
		if doc := load(t, dir, id); doc.RejectedAt != 8 || doc.Committed != 2*q || doc.HighWater != 3*q {
			t.Errorf("the last save is %+v", doc)
		}
	})
}
