package upload

import (
	"context"
	"time"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/source"
)

// sessionRecord is the record of one session: that of a file, or that of a part. Its state is in
// a journal, and its methods are the only ones that change it.
type sessionRecord struct {
	journal *journal
	i       int              // of the session in the journal
	file    *source.File     // nil if no bytes are sent
	content source.Resumable // what is sent of file
	part    bool             // the session is that of a part
	checked time.Time        // when a checkpoint was last added; guarded by the journal
}

var _ record = (*sessionRecord)(nil)

// recordFile returns the record of the session of a file. content is what is sent of it.
func (j *journal) recordFile(file *source.File, content source.Resumable) *sessionRecord {
	j.whole = &sessionRecord{journal: j, file: file, content: content}
	return j.whole
}

// state returns what is known of the session.
func (r *sessionRecord) state() state.Part {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return r.journal.sessions[r.i]
}

// change changes what is known of the session.
func (r *sessionRecord) change(f func(*state.Part)) {
	j := r.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	f(&j.sessions[r.i])
	j.version++
}

func (r *sessionRecord) started(uri session.URI, restarts int) {
	j := r.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if !r.part {
		j.reset(r.file, nil, 1)
	}
	if r.compressed() {
		j.token.Gzip = &state.GzipState{}
	}
	j.sessions[r.i] = state.Part{Session: state.Session{URI: uri, Created: time.Now(), Restarts: restarts}}
	j.version++
}

// sending saves the Token with the range of the next request. If saves are expensive,
// the Token states that all bytes may have been sent, so that it need not be saved
// before each request.
func (r *sessionRecord) sending(ctx context.Context, committed, sent, to int64) error {
	j := r.journal
	if j.lease == nil {
		return nil
	}
	costly := j.lease.SaveInterval() > 0
	if costly && !r.compressed() {
		to = max(to, r.file.Total())
	}
	r.note(committed, sent, to)
	if costly && r.covered(to) {
		return nil
	}
	if !r.part { // the saves of other parts may take long
		j.awaitSaves()
	}
	return j.save(ctx)
}

// covered reports whether the store has a high-water mark of at least to for the session.
func (r *sessionRecord) covered(to int64) bool {
	j := r.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stored.token == nil {
		return false
	}
	stored := sessionsOf(j.stored.token)[r.i]
	return stored.URI == j.sessions[r.i].URI && stored.HighWater >= to
}

// note updates the Token before a request that sends the bytes up to to.
func (r *sessionRecord) note(committed, sent, to int64) {
	r.change(func(s *state.Part) {
		t := &r.journal.token
		if to > s.HighWater {
			t.Gzip = (*state.GzipState)(r.content.Compression(to))
		}
		if !r.part && !r.file.Copied() { // otherwise the bytes of the source must still be compared
			t.Source = r.file.Identity()
		}
		s.Committed, s.HighWater = committed, max(s.HighWater, to)
		s.Checkpoints = withCheckpoint(s.Checkpoints, r.content.Newest(sent, to), committed)
		r.checked = time.Now()
	})
}

// compressed reports whether the file is compressed while it is sent.
func (r *sessionRecord) compressed() bool { return r.journal.draft.Spec.Gzip }

// handed adds a checkpoint if one is due, and saves it in the background.
func (r *sessionRecord) handed(sent int64) {
	j := r.journal
	if j.lease == nil || r.compressed() {
		return // sending saved the checksum of compressed bytes at the end of the request
	}
	if r.checkpoint(sent) && j.old() {
		j.saveSoon()
	}
}

// checkpoint adds the newest checkpoint if one is due, and reports whether it did.
func (r *sessionRecord) checkpoint(sent int64) bool {
	j, now := r.journal, time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.sessions[r.i]
	last := lastCheckpoint(s.Checkpoints)
	if !checkpointDue(sent, last, now.Sub(r.checked)) {
		return false
	}
	c := r.content.Newest(sent, sent)
	if c.Offset <= last {
		return false
	}
	s.Checkpoints, r.checked = withCheckpoint(s.Checkpoints, c, s.Committed), now
	j.version++
	return true
}

// rejected records that the service refused data at offset. The next save includes
// it.
func (r *sessionRecord) rejected(offset int64) {
	r.change(func(s *state.Part) { s.RejectedAt = offset + 1 })
}

// ended updates the offsets and the checksums for the last save. The resume then
// reads fewer bytes and detects more changes.
func (r *sessionRecord) ended(committed, sent int64) {
	r.note(committed, sent, committed)
	r.journal.keep()
}

// adopted returns the state in which a saved session of size bytes continues.
func adopted(saved state.Part, size int64) session.State {
	return session.State{
		Size: size, Committed: saved.Committed, Sent: saved.HighWater, Restarts: saved.Restarts,
		MayExist: saved.HighWater == size, // the earlier process may have sent the last byte
		Adopted:  true,
		Rejected: saved.RejectedAt > 0, RejectedAt: saved.RejectedAt - 1,
	}
}
