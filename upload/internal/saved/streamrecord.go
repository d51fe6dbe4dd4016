package saved

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// committedEvery is how often the committed offset of a stream is saved, for a list of saved
// uploads.
const committedEvery = 5 * time.Second

// StreamRecord is the record of the session of a stream whose bytes are on disk. It implements the
// Recorder of package engine. The saved upload need not be saved before each request: a resume
// accepts every offset up to the end of the stream.
type StreamRecord struct{ journal *Journal }

// BeginStream makes the saved upload of a new stream, before its session is started.
func (j *Journal) BeginStream() { j.edit(func() { j.reset(chunk.Identity{}, nil) }) }

// RecordStream returns the record of the session of a stream.
func (j *Journal) RecordStream() *StreamRecord { return &StreamRecord{j} }

// Started records a session that was opened. Sending saves it.
func (r *StreamRecord) Started(uri session.URI, restarts int) {
	j := r.journal
	j.edit(func() {
		j.reset(chunk.Identity{}, nil)
		j.doc.URI, j.doc.Restarts = uri, restarts
	})
}

// ErrUnsaved means that the session of a stream, or a multipart upload, could not be saved, so that nothing was sent in
// it.
var ErrUnsaved = errors.New("the upload cannot be saved")

// Sending saves the session before its first byte is sent, and later the committed offset in the
// background. Unlike for a file, the session must be saved, even if the store has an earlier one: the
// bytes that it commits are removed from the disk, and no other session can continue with the rest.
func (r *StreamRecord) Sending(ctx context.Context, committed, _, _ int64) error {
	j := r.journal
	r.Ended(committed)
	if !j.covered(0, 0) {
		if err := j.Persist(ctx); err != nil {
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

// Handed does nothing.
func (r *StreamRecord) Handed(int64) {}

// Ended records the committed offset. The next save includes it.
func (r *StreamRecord) Ended(committed int64) {
	r.journal.edit(func() {
		s := &r.journal.doc.Session
		s.Committed, s.HighWater = committed, max(s.HighWater, committed)
	})
}

// Rejected records that the service refused data at offset. The next save includes it.
func (r *StreamRecord) Rejected(offset int64) {
	r.journal.edit(func() { r.journal.doc.RejectedAt = offset + 1 })
}
