package saved

import (
	"context"
	"sync/atomic"
	"testing"

	"gcsup/session/state"
	"gcsup/upload/internal/source"
)

// emptyURILease counts the saves of a Token without a session.
type emptyURILease struct {
	state.Lease
	saves, empty atomic.Int64
}

func (l *emptyURILease) Save(_ context.Context, t *state.Token) error {
	l.saves.Add(1)
	if t.URI.IsZero() {
		l.empty.Add(1) // state.Encode refuses it: "incomplete token"
	}
	return nil
}

// TestSaveWhileASessionStarts saves in the background, as SaveSoon does, while a lost session is
// replaced by another one.
func TestSaveWhileASessionStarts(t *testing.T) {
	uri := someURI(t)
	lease := &emptyURILease{}
	j := &Journal{lease: lease}
	file := source.FromBytes(make([]byte, 1<<20), func(int64, int64, int64) {})
	r := j.RecordFile(file)
	r.Started(uri, 0)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = j.Save(context.Background())
			}
		}
	}()
	for i := range 200_000 {
		r.Started(uri, i)
	}
	close(stop)
	<-done
	if n := lease.empty.Load(); n > 0 {
		t.Errorf("%d of %d saves were of a Token without the URI of its session", n, lease.saves.Load())
	}
}
