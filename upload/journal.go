package upload

import (
	"context"
	"errors"
	"sync"
	"time"

	"gcsup/session"
)

// journal writes the Token of one saved upload, from the acquisition of the lease to
// the last save. It is the record of the session of a file.
//
// Checkpoints are saved in a goroutine, so that a slow disk does not delay the
// network. If saves cannot keep up, the newest Token is saved next.
//
// After a session was saved, an error of the store is only a warning, because the
// upload can be resumed from the earlier Token. If the server then reports an offset
// that was not saved, the later process compares the server's checksum with the
// source. Only one error ends the upload: another process has the lease.
type journal struct {
	lease    session.Lease
	released func() // called when the lease is released; nil if the upload does not run
	events   *events

	ctx        context.Context // for the store; lasts a little longer than the upload's
	background context.Context // like ctx, for saves for which the upload does not wait
	stop       context.CancelFunc

	saving sync.Mutex // held during a save, so that no older Token replaces a newer one

	mu      sync.Mutex
	writer  *checkpointWriter // nil before saveSoon, and after awaitSaves
	next    nextToken
	last    *session.Token // saved when the lease is released; nil if there is nothing to save
	stored  stored
	lost    error                   // the error of a save that showed that the lease is lost, or nil
	abandon context.CancelCauseFunc // nil before guard
}

// stored describes the Token of an upload in the store.
type stored struct {
	state   saveState
	version int64     // of the Token that was saved last, see nextToken
	covered int64     // the high-water mark that the store has of this session
	wrote   time.Time // the last save
}

// saveState describes whether the store has an upload.
type saveState int

const (
	unsaved saveState = iota
	saved
	stale // the last save failed, and that was reported; the store has an earlier Token
)

var _ record = (*journal)(nil)

// openJournal acquires the lease of the upload with that ID and loads its Token. The
// Token is nil if there is none. If it was damaged, openJournal has set it aside, and
// damaged is the reason. The caller must call close.
func openJournal(ctx context.Context, store session.Store, id string, waiting func(*session.HeldError)) (j *journal, token *session.Token, damaged, err error) {
	lease, err := acquire(ctx, store, id, waiting)
	if err != nil {
		return nil, nil, nil, err
	}
	token, err = loadMoved(ctx, store, lease)
	switch {
	case errors.Is(err, session.ErrCorruptToken):
		token, damaged = nil, err
		err = session.SetAside(ctx, store, id)
	case errors.Is(err, session.ErrNoToken):
		token, err = nil, nil
	}
	if err != nil {
		release(ctx, lease)
		return nil, nil, nil, err
	}
	j = &journal{lease: lease, next: nextToken{draft: session.Token{ID: id}}}
	j.ctx, j.stop = lingering(ctx)
	j.background = j.ctx
	return j, token, damaged, nil
}

// adopt continues a saved session.
func (j *journal) adopt(t *session.Token) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next.token, j.stored.state, j.stored.covered = t, saved, t.HighWater
}

// saved reports whether the store has the upload, and its lease is held.
func (j *journal) saved() bool {
	if j == nil || j.leaseLost() != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored.state != unsaved
}

// guard returns a context that ends when the lease is lost.
func (j *journal) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	if j == nil {
		return context.WithCancel(ctx)
	}
	ctx, abandon := context.WithCancelCause(ctx)
	lost := j.lease.Context()
	stop := context.AfterFunc(lost, func() { abandon(context.Cause(lost)) })
	j.mu.Lock()
	j.abandon = abandon
	j.mu.Unlock()
	return ctx, func() {
		stop()
		abandon(nil)
	}
}

// leaseLost returns the error of a lost lease, or nil while the lease is held.
func (j *journal) leaseLost() error {
	if j == nil {
		return nil
	}
	if err := context.Cause(j.lease.Context()); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lost
}

// started makes a new Token. sending saves it before the first byte is sent.
func (j *journal) started(uri session.URI, restarts int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next.started(uri, restarts)
	j.stored.covered = 0
}

// sending saves the Token with the range of the next request. If saves are expensive,
// the Token states that all bytes may have been sent, so that it need not be saved
// before each request.
func (j *journal) sending(ctx context.Context, committed, sent, to int64) error {
	if j.lease.SaveInterval() > 0 && !j.next.draft.Spec.Gzip {
		to = max(to, j.next.file.Total())
	}
	j.note(committed, sent, to)
	j.mu.Lock()
	covered := j.stored.state != unsaved && j.lease.SaveInterval() > 0 && to <= j.stored.covered
	j.mu.Unlock()
	if covered {
		return nil
	}
	return j.save(ctx)
}

// ended updates the offsets and the checksums for the last save. The resume then
// reads fewer bytes and detects more changes.
func (j *journal) ended(committed, sent int64) {
	j.note(committed, sent, committed)
	j.keep()
}

// keep makes the last save write the Token.
func (j *journal) keep() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = j.next.token
}

// note updates the Token before a request that sends the bytes up to to.
func (j *journal) note(committed, sent, to int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next.sending(committed, sent, to)
}

// rejected records that the service refused data at offset. The next save includes
// it.
func (j *journal) rejected(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next.rejected(offset)
}

// startedParts makes a new Token of an upload in parts. It is saved before the first
// byte of the first part.
func (j *journal) startedParts(parts session.Parts) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next.startedParts(parts)
	j.stored.covered = 0
}

// part returns the state of a part in the Token.
func (j *journal) part(i int) session.Part {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next.token.Parts.List[i]
}

// old reports whether the last save is so old that an optional save should be made.
func (j *journal) old(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return now.Sub(j.stored.wrote) >= j.lease.SaveInterval()
}

// change replaces the Token of an upload in parts by a changed copy. It returns the
// version of the copy.
func (j *journal) change(f func(*session.Token)) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next.change(f)
}

// saveVersion makes a version of the Token, or a later one, durable.
func (j *journal) saveVersion(ctx context.Context, version int64) error {
	j.saving.Lock()
	done := j.has(version)
	j.saving.Unlock()
	if done {
		return nil // the save for another part included it
	}
	return j.save(ctx)
}

// has reports whether the store has a version of the Token, or a later one.
func (j *journal) has(version int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored.state == saved && j.stored.version >= version
}

// save writes the newest Token. It returns an error if the store has none, or
// another process has the lease.
func (j *journal) save(ctx context.Context) error {
	j.saving.Lock()
	defer j.saving.Unlock()
	j.mu.Lock()
	token, version := j.next.token, j.next.version
	j.mu.Unlock()
	err := j.lease.Save(ctx, token)

	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.stored = stored{saved, version, token.HighWater, time.Now()}
		return nil
	case errors.Is(err, session.ErrInUse):
		if j.lost == nil {
			j.lost = err
			if j.abandon != nil {
				j.abandon(err)
			}
		}
		return err
	case j.stored.state == unsaved:
		return err
	}
	j.unsavable(ctx, err)
	return nil
}

// unsavable warns that the Token could not be saved because of err, and the store has
// an earlier one. The caller holds j.mu.
func (j *journal) unsavable(ctx context.Context, err error) {
	if j.stored.state != stale && ctx.Err() == nil {
		j.events.post(Event{Kind: Warning, Cause: "the upload continues, and its state cannot be saved: " + err.Error()})
	}
	j.stored.state = stale
}

// handed saves a checkpoint if one is due.
func (j *journal) handed(sent int64) {
	if j.next.draft.Spec.Gzip {
		return // sending saved the checksum at the end of the request
	}
	j.mu.Lock()
	now := time.Now()
	due := j.next.checkpoint(sent, now) && now.Sub(j.stored.wrote) >= j.lease.SaveInterval()
	j.mu.Unlock()
	if due {
		j.saveSoon()
	}
}

// saveSoon saves the newest Token in the background. It does not block.
func (j *journal) saveSoon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.writer == nil {
		j.writer = newCheckpointWriter(func() {
			ctx, cancel := context.WithTimeout(j.background, checkpointTimeout)
			defer cancel()
			_ = j.save(ctx)
		})
	}
	j.writer.wake()
}

// awaitSaves waits for what saveSoon saves.
func (j *journal) awaitSaves() {
	if j == nil {
		return
	}
	j.mu.Lock()
	writer := j.writer
	j.writer = nil
	j.mu.Unlock()
	if writer != nil {
		writer.stop()
	}
}

// sent waits until the current save of a checkpoint ends.
func (j *journal) sent() { j.awaitSaves() }

// discard deletes the Token, because its session is unusable or the upload is
// finished.
func (j *journal) discard() error {
	j.mu.Lock()
	j.next.token, j.last, j.stored.state, j.stored.covered = nil, nil, unsaved, 0
	j.mu.Unlock()
	return j.lease.Delete(j.ctx)
}

// close makes the last save, and releases the lease.
func (j *journal) close() {
	defer j.stop()
	if j.released != nil {
		defer j.released()
	}
	last := j.last
	if err := j.lease.Release(j.ctx, last); err != nil && last != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.unsavable(j.ctx, err)
	}
}
