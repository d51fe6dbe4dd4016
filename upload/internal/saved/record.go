package saved

import (
	"context"
	"errors"
	"slices"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
)

// Evidence is a source, as far as a saved upload describes it. A later process compares it with its
// own source.
type Evidence interface {
	Identity() chunk.Identity // of the bytes that were read
	Copied() bool             // the session began with another file, and the bytes must still be compared
	Total() int64             // the size of what is sent; -1 while it is not known

	// Newest returns the checkpoint to record before the bytes from sent to to are sent, or
	// zero.
	Newest(sent, to int64) chunk.Checkpoint

	// Compression returns the size of all compressed bytes, 0 while it is not known, and the
	// bytes of the file that are in those before to.
	Compression(to int64) (size int64, source chunk.Checkpoint)
}

// SessionRecord is the record of one session: that of a file, or that of a part. It implements the
// Recorder of package engine. Its state is in a journal, and only its methods change it.
type SessionRecord struct {
	journal *Journal
	part    int       // the number of the part, from 1; 0 for the session of the file
	source  Evidence  // not used if no bytes are sent
	checked time.Time // when a checkpoint was last added; guarded by the journal
}

// RecordFile returns the record of the session of a file.
func (j *Journal) RecordFile(source Evidence) *SessionRecord {
	j.whole = &SessionRecord{journal: j, source: source}
	return j.whole
}

// RecordPart returns the record of a part with a number from 1.
func (j *Journal) RecordPart(part int, source Evidence) *SessionRecord {
	return &SessionRecord{journal: j, part: part, source: source}
}

// sessionOf returns the session of a part, or of the file if part is 0.
func sessionOf(t *state.Upload, part int) *state.Session {
	if part == 0 {
		return &t.Session
	}
	return &t.Parts.List[part-1].Session
}

// session returns the session. The caller holds the mutex of the journal.
func (r *SessionRecord) session() *state.Session { return sessionOf(&r.journal.doc, r.part) }

// Part returns what is known of the part.
func (r *SessionRecord) Part() state.Part {
	r.journal.mu.Lock()
	defer r.journal.mu.Unlock()
	return r.journal.doc.Parts.List[r.part-1]
}

// Change changes what is known of the part.
func (r *SessionRecord) Change(f func(*state.Part)) {
	r.journal.edit(func() { f(&r.journal.doc.Parts.List[r.part-1]) })
}

// Started records a session that was opened. The next save includes it.
func (r *SessionRecord) Started(uri session.URI, restarts int) {
	j := r.journal
	j.edit(func() {
		if r.part == 0 {
			j.reset(r.source.Identity(), nil)
		}
		if r.compressed() {
			j.doc.Gzip = &state.GzipState{}
		}
		*r.session() = state.Session{URI: uri, Created: time.Now(), Restarts: restarts}
	})
}

// Sending saves the saved upload with the range of the next request. If saves are expensive,
// the saved upload states that all bytes may have been sent, so that it need not be saved
// before each request.
func (r *SessionRecord) Sending(ctx context.Context, committed, sent, to int64) error {
	j := r.journal
	if j.lease == nil {
		return nil
	}
	costly := j.lease.SaveInterval() > 0
	if costly && !r.compressed() {
		to = max(to, r.source.Total())
	}
	r.note(committed, sent, to)
	if costly && j.covered(r.part, to) {
		return nil
	}
	if r.part == 0 { // the saves of other parts may take long
		j.AwaitSaves()
	}
	return j.Save(ctx)
}

// covered reports whether the store has the session of a part, or of the file if part is 0, with a
// high-water mark of at least to.
func (j *Journal) covered(part int, to int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stored.doc == nil {
		return false
	}
	stored := sessionOf(j.stored.doc, part)
	return stored.URI == sessionOf(&j.doc, part).URI && stored.HighWater >= to
}

// note updates the saved upload before a request that sends the bytes up to to.
func (r *SessionRecord) note(committed, sent, to int64) {
	t := &r.journal.doc
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
func (r *SessionRecord) compressed() bool { return r.journal.draft.Spec.Gzip }

// Handed adds a checkpoint if one is due, and saves it in the background.
func (r *SessionRecord) Handed(sent int64) {
	j := r.journal
	if j.lease == nil || r.compressed() {
		return // sending saved the checksum of compressed bytes at the end of the request
	}
	if r.checkpoint(sent) && j.Old() {
		j.SaveSoon()
	}
}

// checkpoint adds the newest checkpoint if one is due, and reports whether it did.
func (r *SessionRecord) checkpoint(sent int64) bool {
	j, now := r.journal, time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := r.session()
	last := LastCheckpoint(s.Checkpoints)
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

// Rejected records that the service refused data at offset. The next save includes
// it.
func (r *SessionRecord) Rejected(offset int64) {
	r.journal.edit(func() { r.session().RejectedAt = offset + 1 })
}

// Ended updates the offsets and the checksums, which [Journal.Close] saves. The resume then
// reads fewer bytes and detects more changes.
func (r *SessionRecord) Ended(committed, sent int64) {
	r.note(committed, sent, committed)
	r.journal.Keep()
}

// Adopted returns the state in which the session of a saved upload of size bytes continues.
func Adopted(s state.Session, size int64) session.State {
	return session.State{
		Size: size, Committed: s.Committed, Sent: s.HighWater, Restarts: s.Restarts,
		MayExist: s.HighWater == size, // the earlier process may have sent the last byte
		Adopted:  true,
		Rejected: s.RejectedAt > 0, RejectedAt: s.RejectedAt - 1,
	}
}

// Dead reports whether an error ends the session, so that the next call must open
// another one. A precondition that failed before the last byte was sent does not end
// the session.
func Dead(err error) bool {
	if e, ok := errors.AsType[*session.Error](err); ok {
		if e.Open || e.Early {
			return false
		}
		if errors.Is(e, session.ErrPrecondition) {
			return true
		}
	}
	kinds := []error{
		session.ErrSessionLost, session.ErrCanceled, session.ErrChecksum,
		session.ErrUnexpectedData, session.ErrProtocol, session.ErrURIMismatch,
	}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
