package saved

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/session"
	"gcsup/session/state"
)

// committedEvery is how often the committed offset of a stream is saved, for a list of saved
// uploads.
const committedEvery = 5 * time.Second

// StreamRecord is the record of the session of a stream whose bytes are on disk. It implements the
// Record of package engine. The Token need not be saved before each request: a resume
// accepts every offset up to the end of the stream.
type StreamRecord struct{ journal *Journal }

// BeginStream makes the Token of a new stream, before its session is started.
func (j *Journal) BeginStream() { j.edit(func() { j.resetStream(state.Session{}) }) }

// resetStream starts a Token with a session. The caller is edit.
func (j *Journal) resetStream(s state.Session) {
	s.Created = time.Now()
	j.token = j.draft
	j.token.Session = s
}

// RecordStream returns the record of the session of a stream.
func (j *Journal) RecordStream() *StreamRecord { return &StreamRecord{j} }

// Started records a session that was opened. Sending saves it.
func (r *StreamRecord) Started(uri session.URI, restarts int) {
	r.journal.edit(func() { r.journal.resetStream(state.Session{URI: uri, Restarts: restarts}) })
}

// ErrUnsaved means that the session of a stream could not be saved, so that nothing was sent in it.
var ErrUnsaved = errors.New("the session cannot be saved")

// Sending saves the session before its first byte is sent, and later the committed offset in the
// background. Unlike for a file, the session must be saved, even if the store has an earlier one: the
// bytes that it commits are removed from the disk, and no other session can continue with the rest.
func (r *StreamRecord) Sending(ctx context.Context, committed, _, _ int64) error {
	j := r.journal
	r.Ended(committed)
	if !r.known() {
		if err := j.trySave(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrUnsaved, err)
		}
		return nil
	}
	j.mu.Lock()
	old := time.Since(j.stored.wrote) >= max(committedEvery, j.lease.SaveInterval())
	j.mu.Unlock()
	if old {
		j.SaveSoon()
	}
	return nil
}

// known reports whether the store has the session.
func (r *StreamRecord) known() bool {
	j := r.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored.token != nil && j.stored.token.URI == j.token.URI
}

// Handed does nothing.
func (r *StreamRecord) Handed(int64) {}

// Ended records the committed offset. The next save includes it.
func (r *StreamRecord) Ended(committed int64) {
	r.journal.edit(func() {
		s := &r.journal.token.Session
		s.Committed, s.HighWater = committed, max(s.HighWater, committed)
	})
}
