package upload

import (
	"context"
	"sync"
	"time"

	"gcsup/session"
)

// pieceRecord keeps the state of one part in the Token, so that another process can
// resume it.
type pieceRecord struct {
	piece   *piece
	journal *journal

	mu      sync.Mutex
	covered int64     // the high-water mark of this session in the store
	checked time.Time // when a checkpoint was last added
}

var _ record = (*pieceRecord)(nil)

func (r *pieceRecord) started(uri session.URI, restarts int) {
	r.mu.Lock()
	r.covered = 0
	r.mu.Unlock()
	r.journal.change(func(t *session.Token) {
		t.Parts.List[r.piece.i] = session.Part{URI: uri, Created: time.Now(), Restarts: restarts}
	})
}

// sending saves the Token with the range of the next request, unless the store has it.
func (r *pieceRecord) sending(ctx context.Context, committed, sent, to int64) error {
	if r.journal.lease.SaveInterval() > 0 {
		to = r.piece.content.Total() // see journal.sending
	}
	version := r.note(committed, sent, to)
	r.mu.Lock()
	covered := r.journal.lease.SaveInterval() > 0 && to <= r.covered
	r.mu.Unlock()
	if covered {
		return nil
	}
	err := r.journal.saveVersion(ctx, version)
	if err == nil && r.journal.has(version) {
		r.mu.Lock()
		r.covered = to
		r.mu.Unlock()
	}
	return err
}

// note updates the part in the Token, and returns the version of the Token.
func (r *pieceRecord) note(committed, sent, to int64) int64 {
	r.mu.Lock()
	r.checked = time.Now()
	r.mu.Unlock()
	return r.change(func(part *session.Part) {
		part.Committed = committed
		part.HighWater = max(part.HighWater, to)
		r.checkpoint(part, sent)
	})
}

// change replaces the part in the Token by a changed copy, and returns the version of the
// Token.
func (r *pieceRecord) change(f func(*session.Part)) int64 {
	return r.journal.change(func(t *session.Token) {
		part := t.Parts.List[r.piece.i]
		f(&part)
		t.Parts.List[r.piece.i] = part
	})
}

// checkpoint adds the newest checkpoint of bytes that were sent, and removes those
// that a resume cannot need.
func (r *pieceRecord) checkpoint(part *session.Part, sent int64) {
	part.Checkpoints = withCheckpoint(part.Checkpoints, r.piece.content.Newest(sent, sent), part.Committed)
}

// handed adds a checkpoint if one is due, and saves it in the background.
func (r *pieceRecord) handed(sent int64) {
	r.mu.Lock()
	now := time.Now()
	part := r.journal.part(r.piece.i)
	due := checkpointDue(sent, lastCheckpoint(part.Checkpoints), now.Sub(r.checked))
	if due {
		r.checked = now
	}
	r.mu.Unlock()
	if !due {
		return
	}
	r.change(func(part *session.Part) { r.checkpoint(part, sent) })
	if r.journal.old(now) {
		r.journal.saveSoon()
	}
}

func (r *pieceRecord) sent() {}
