package upload

import (
	"context"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
)

// evidence is a source, as far as a Token describes it. A later process compares it with its
// own source.
type evidence interface {
	// Identity returns the identity of the bytes that were read.
	Identity() chunk.Identity

	// Copied reports whether the session began with another file, and the bytes must still
	// be compared.
	Copied() bool

	// Total returns the size of what is sent, or -1 while it is not known.
	Total() int64

	// Newest returns the checkpoint to record before the bytes from sent to to are sent, or
	// zero.
	Newest(sent, to int64) chunk.Checkpoint

	// Compression describes a compressed source: the size of all compressed bytes, 0 while it
	// is not known, and the bytes of the file that are in those before to.
	Compression(to int64) (size int64, source chunk.Checkpoint)
}

// sessionRecord is the record of one session: that of a file, or that of a part. Its state is in
// a journal, and its methods are the only ones that change it.
type sessionRecord struct {
	journal *journal
	part    int       // the number of the part, from 1; 0 for the session of the file
	source  evidence  // not used if no bytes are sent
	checked time.Time // when a checkpoint was last added; guarded by the journal
}

// recordFile returns the record of the session of a file.
func (j *journal) recordFile(source evidence) *sessionRecord {
	j.whole = &sessionRecord{journal: j, source: source}
	return j.whole
}

// recordPart returns the record of a part with a number from 1.
func (j *journal) recordPart(part int, source evidence) *sessionRecord {
	return &sessionRecord{journal: j, part: part, source: source}
}

// sessionOf returns the session of a part, or of the file if part is 0.
func sessionOf(t *state.Token, part int) *state.Session {
	if part == 0 {
		return &t.Session
	}
	return &t.Parts.List[part-1].Session
}

// session returns the session. The caller holds the mutex of the journal.
func (r *sessionRecord) session() *state.Session { return sessionOf(&r.journal.token, r.part) }

// state returns what is known of the part.
func (r *sessionRecord) state() state.Part {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return r.journal.token.Parts.List[r.part-1]
}

// change changes what is known of the part.
func (r *sessionRecord) change(f func(*state.Part)) {
	r.journal.edit(func() { f(&r.journal.token.Parts.List[r.part-1]) })
}

func (r *sessionRecord) started(uri session.URI, restarts int) {
	j := r.journal
	j.edit(func() {
		if r.part == 0 {
			j.reset(r.source.Identity(), nil)
		}
		if r.compressed() {
			j.token.Gzip = &state.GzipState{}
		}
		*r.session() = state.Session{URI: uri, Created: time.Now(), Restarts: restarts}
	})
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
		to = max(to, r.source.Total())
	}
	r.note(committed, sent, to)
	if costly && r.covered(to) {
		return nil
	}
	if r.part == 0 { // the saves of other parts may take long
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
	stored := sessionOf(j.stored.token, r.part)
	return stored.URI == r.session().URI && stored.HighWater >= to
}

// note updates the Token before a request that sends the bytes up to to.
func (r *sessionRecord) note(committed, sent, to int64) {
	t := &r.journal.token
	r.journal.edit(func() {
		s := r.session()
		if r.compressed() && to > s.HighWater {
			size, source := r.source.Compression(to)
			t.Gzip = &state.GzipState{Size: size, Source: source}
		}
		if r.part == 0 && !r.source.Copied() { // otherwise the bytes of the source must still be compared
			t.Source = r.source.Identity()
		}
		s.Committed, s.HighWater = committed, max(s.HighWater, to)
		s.Checkpoints = withCheckpoint(s.Checkpoints, r.source.Newest(sent, to), committed)
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
	s := r.session()
	last := lastCheckpoint(s.Checkpoints)
	if !checkpointDue(sent, last, now.Sub(r.checked)) {
		return false
	}
	c := r.source.Newest(sent, sent)
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
	r.journal.edit(func() { r.session().RejectedAt = offset + 1 })
}

// ended updates the offsets and the checksums for the last save. The resume then
// reads fewer bytes and detects more changes.
func (r *sessionRecord) ended(committed, sent int64) {
	r.note(committed, sent, committed)
	r.journal.keep()
}

// adopted returns the state in which a saved session of size bytes continues.
func adopted(s state.Session, size int64) session.State {
	return session.State{
		Size: size, Committed: s.Committed, Sent: s.HighWater, Restarts: s.Restarts,
		MayExist: s.HighWater == size, // the earlier process may have sent the last byte
		Adopted:  true,
		Rejected: s.RejectedAt > 0, RejectedAt: s.RejectedAt - 1,
	}
}
