package upload

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gcsup/session/state"
	"gcsup/upload/internal/source"
)

// journal writes the Token of one saved upload, from the acquisition of the lease to
// the last save. It has the state of the session of the file, or of those of its parts.
// The records of the sessions change it. The zero journal is for an upload that is not saved:
// it has only the state.
//
// Checkpoints are saved in a goroutine, so that a slow disk does not delay the
// network. If saves cannot keep up, the newest Token is saved next.
//
// After a session was saved, an error of the store is only a warning, because the
// upload can be resumed from the earlier Token. If the server then reports an offset
// that was not saved, the later process compares the server's checksum with the
// source. Only one error ends the upload: another process has the lease.
type journal struct {
	store    state.Store
	lease    state.Lease // nil if the upload is not saved
	released func()      // called when the lease is released; nil if the upload does not run
	events   *events

	ctx        context.Context // for the store; lasts a little longer than the upload's
	background context.Context // like ctx, for saves for which the upload does not wait
	stop       context.CancelFunc

	held context.Context         // ends when the lease is lost
	lose context.CancelCauseFunc // ends held

	draft state.Token    // the fields of every Token of this upload: ID, endpoint, Spec, path
	whole *sessionRecord // of the session of the file; nil if it has none, or has parts

	saving sync.Mutex // held during a save, so that no older Token replaces a newer one

	mu       sync.Mutex
	writer   *checkpointWriter // nil before saveSoon, and after awaitSaves
	token    state.Token       // saved next, with sessions instead of its own ones
	sessions []state.Part      // the session of the file, or those of its parts
	version  int64             // of token and sessions; counts their changes
	last     bool              // the Token is saved when the lease is released
	stored   stored
}

// stored describes the Token of an upload in the store.
type stored struct {
	token   *state.Token // nil if the upload is not saved
	version int64        // of token
	wrote   time.Time    // the last save
	stale   bool         // the last save failed, and that was reported; the store has token
}

// openJournal acquires the lease of the upload with that ID and loads its Token. The
// Token is nil if there is none. If it was damaged, openJournal has set it aside, and
// damaged is the reason. The caller must call close.
func openJournal(ctx context.Context, store state.Store, id string, waiting func(*state.HeldError)) (j *journal, token *state.Token, damaged, err error) {
	lease, err := acquire(ctx, store, id, waiting)
	if err != nil {
		return nil, nil, nil, err
	}
	token, err = loadMoved(ctx, store, lease)
	switch {
	case errors.Is(err, state.ErrCorruptToken):
		token, damaged = nil, err
		err = state.SetAside(ctx, store, id)
	case errors.Is(err, state.ErrNoToken):
		token, err = nil, nil
	}
	if err != nil {
		release(ctx, lease)
		return nil, nil, nil, err
	}
	j = &journal{store: store, lease: lease, draft: state.Token{ID: id}}
	j.ctx, j.stop = lingering(ctx)
	j.background = j.ctx
	j.held, j.lose = context.WithCancelCause(lease.Context())
	return j, token, damaged, nil
}

// adopt continues a saved upload.
func (j *journal) adopt(t *state.Token) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.token, j.sessions = *t, slices.Clone(sessionsOf(t))
	if t.Parts != nil {
		j.token.Parts = new(*t.Parts)
	}
	if j.lease != nil {
		j.stored.token, j.stored.version, j.stored.stale = t, j.version, false
	}
}

// begin makes the Token of a new upload of a file, with a number of sessions. parts is nil unless
// they are those of parts. The Token is saved before the first byte is sent.
func (j *journal) begin(file *source.File, parts *state.Parts, sessions int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reset(file, parts, sessions)
}

// reset is begin for a caller that holds j.mu.
func (j *journal) reset(file *source.File, parts *state.Parts, sessions int) {
	j.token, j.sessions = j.draft, make([]state.Part, sessions)
	j.token.Created, j.token.Source, j.token.Parts = time.Now(), file.Identity(), parts
	j.version++
}

// sessionsOf returns the session of t, or those of its parts.
func sessionsOf(t *state.Token) []state.Part {
	if t.Parts != nil {
		return t.Parts.List
	}
	return []state.Part{{Session: t.Session}}
}

// next returns the Token that is saved next. The caller holds j.mu.
func (j *journal) next() *state.Token {
	t := j.token
	if t.Parts == nil {
		t.Session = j.sessions[0].Session
		return &t
	}
	t.Parts = new(*t.Parts)
	t.Parts.List = slices.Clone(j.sessions)
	return &t
}

// saved reports whether the store has the upload, and its lease is held.
func (j *journal) saved() bool {
	if j == nil || j.leaseLost() != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored.token != nil
}

// deleted reports whether the store has no upload with the ID, although the lease may be lost.
func (j *journal) deleted(ctx context.Context) bool {
	_, err := j.store.Load(ctx, j.draft.ID)
	return errors.Is(err, state.ErrNoToken)
}

// guard returns a context that ends when the lease is lost.
func (j *journal) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	if j == nil || j.lease == nil {
		return context.WithCancel(ctx)
	}
	ctx, abandon := context.WithCancelCause(ctx)
	stop := context.AfterFunc(j.held, func() { abandon(context.Cause(j.held)) })
	return ctx, func() {
		stop()
		abandon(nil)
	}
}

// leaseLost returns the error of a lost lease, or nil while the lease is held.
func (j *journal) leaseLost() error {
	if j == nil || j.lease == nil {
		return nil
	}
	return context.Cause(j.held)
}

// keep makes the last save write the Token.
func (j *journal) keep() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = true
}

// change changes what the Token describes of all parts together.
func (j *journal) change(f func(*state.Parts)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j.token.Parts)
	j.version++
}

// finished returns the number of parts that are finished.
func (j *journal) finished() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.sessions {
		if j.sessions[i].Finished() {
			n++
		}
	}
	return n
}

// old reports whether the last save is so old that an optional save should be made.
func (j *journal) old() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored.token != nil && time.Since(j.stored.wrote) >= j.lease.SaveInterval()
}

// save writes the newest Token, unless the store has it. It returns an error if the store has
// none, or another process has the lease.
func (j *journal) save(ctx context.Context) error {
	if j.lease == nil {
		return nil
	}
	j.mu.Lock()
	wanted := j.version
	j.mu.Unlock()
	j.saving.Lock()
	defer j.saving.Unlock()
	j.mu.Lock()
	if j.stored.token != nil && !j.stored.stale && j.stored.version >= wanted {
		j.mu.Unlock()
		return nil // the save for another part included it
	}
	token, version := j.next(), j.version
	j.mu.Unlock()
	err := j.lease.Save(ctx, token)

	j.mu.Lock()
	stale := false
	switch {
	case err == nil:
		j.stored = stored{token: token, version: version, wrote: time.Now()}
	case errors.Is(err, state.ErrInUse):
		j.lose(err)
	default:
		stale = j.stored.token != nil
	}
	j.mu.Unlock()
	if stale {
		j.unsavable(ctx, err)
		return nil
	}
	return err
}

// unsavable warns that the Token could not be saved because of err, and the store has
// an earlier one.
func (j *journal) unsavable(ctx context.Context, err error) {
	j.mu.Lock()
	known := j.stored.stale
	j.stored.stale = true
	j.mu.Unlock()
	if !known && ctx.Err() == nil {
		j.events.post(Event{Kind: Warning, Cause: "the upload continues, and its state cannot be saved: " + err.Error()})
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
	j.mu.Lock()
	writer := j.writer
	j.writer = nil
	j.mu.Unlock()
	if writer != nil {
		writer.stop()
	}
}

// discard deletes the Token, because its session is unusable or the upload is
// finished.
func (j *journal) discard() error {
	j.awaitSaves()
	j.mu.Lock()
	j.stored.token, j.last = nil, false
	j.mu.Unlock()
	return j.lease.Delete(j.ctx)
}

// close makes the last save, and releases the lease.
func (j *journal) close() {
	defer j.stop()
	if j.released != nil {
		defer j.released()
	}
	j.awaitSaves()
	var last *state.Token
	if j.last {
		last = j.next() // no other goroutine has j now
	}
	if err := j.lease.Release(j.ctx, last); err != nil && last != nil {
		j.unsavable(j.ctx, err)
	}
}
