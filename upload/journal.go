package upload

import (
	"context"
	"errors"
	"sync"
	"time"

	"gcsup/session"
)

// record is where a run keeps what another process needs to resume its session.
type record interface {
	// started notes that a session was opened.
	started(uri session.URI, restarts int)

	// sending is called before a request that sends up to offset to. When it
	// returns nil, the record is durable.
	sending(ctx context.Context, committed, to int64) error

	// hashed is called while a request is under way, when more of the source
	// was hashed. It does not block.
	hashed()

	// sent is called after a request. It returns the error of the last save
	// that was made while the request was under way.
	sent() error
}

// unrecorded is the record of an upload that cannot be resumed.
type unrecorded struct{}

func (unrecorded) started(session.URI, int)                    {}
func (unrecorded) sending(context.Context, int64, int64) error { return nil }
func (unrecorded) hashed()                                     {}
func (unrecorded) sent() error                                 { return nil }

// journal is the life of one saved upload, from the lock to the last save: it is
// where the Token is written. It is a record for the session of a file.
//
// Checkpoints are saved in a goroutine, so that a slow disk does not delay the
// network. If saves cannot keep up, the newest Token is saved next.
type journal struct {
	store  session.Store
	draft  session.Token // what every Token of this upload has: ID, endpoint, Spec, path
	file   *fileContent
	unlock func()

	ctx    context.Context // for the store; lasts a little longer than the upload's
	cancel context.CancelFunc

	saving sync.Mutex // held during a save, so that no older Token replaces a newer one
	writer *checkpointWriter

	mu      sync.Mutex
	token   *session.Token // saved, or about to be; replaced and never changed; nil before started
	exists  bool           // the store has it
	checked time.Time      // the last checkpoint
}

var _ record = (*journal)(nil)

// openJournal locks the saved upload of that ID and loads it. The Token is nil if
// there is none. If that is because it was damaged, it has been set aside, and
// damaged is the reason. The caller must call close.
func openJournal(ctx context.Context, store session.Store, id string) (j *journal, token *session.Token, damaged, err error) {
	unlock, err := store.Lock(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	token, err = store.Load(ctx, id)
	switch {
	case errors.Is(err, session.ErrDamaged):
		token, damaged = nil, err
		err = session.SetAside(ctx, store, id)
	case errors.Is(err, session.ErrNoToken):
		token, err = nil, nil
	}
	if err != nil {
		unlock()
		return nil, nil, nil, err
	}
	j = &journal{store: store, draft: session.Token{ID: id}, unlock: unlock}
	j.ctx, j.cancel = lingering(ctx)
	return j, token, damaged, nil
}

// adopt continues a saved session.
func (j *journal) adopt(t *session.Token) { j.token, j.exists = t, true }

// saved reports whether the store has the upload.
func (j *journal) saved() bool { return j != nil && j.exists }

// started makes a new Token. It is saved by sending, before the first byte.
func (j *journal) started(uri session.URI, restarts int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	token := j.draft
	token.Created, token.URI, token.Restarts = time.Now(), uri, restarts
	token.Source = j.file.identity
	j.token = &token
}

// sending makes the Token durable, with the request that is about to be made.
func (j *journal) sending(ctx context.Context, committed, to int64) error {
	j.mu.Lock()
	token := *j.token
	token.Committed = committed
	token.HighWater = max(token.HighWater, to)
	if !j.file.copied { // else it remains one whose bytes must be compared
		token.Source = j.file.identity
	}
	if c, ok := j.file.sum.Nearest(j.file.sum.Offset()); ok && c.Offset > 0 {
		j.token = withCheckpoint(token, c)
	} else {
		j.token = pruned(token)
	}
	j.checked = time.Now()
	j.mu.Unlock()
	return j.save(ctx)
}

// save writes the newest Token.
func (j *journal) save(ctx context.Context) error {
	j.saving.Lock()
	defer j.saving.Unlock()
	j.mu.Lock()
	token := j.token
	j.mu.Unlock()
	if err := j.store.Save(ctx, token); err != nil {
		return err
	}
	j.exists = true
	return nil
}

// hashed saves a checkpoint if one is due.
func (j *journal) hashed() {
	j.mu.Lock()
	due := j.checkpoint(time.Now())
	j.mu.Unlock()
	if due {
		j.checkpoints().wake()
	}
}

// checkpoint adds the newest checksum to the Token, if it is worth a save. j.mu
// is held.
func (j *journal) checkpoint(now time.Time) bool {
	last, offset := lastCheckpoint(j.token), j.file.sum.Offset()
	if !checkpointDue(offset, last, now.Sub(j.checked)) {
		return false
	}
	c, ok := j.file.sum.Nearest(offset)
	if !ok || c.Offset <= last {
		return false
	}
	j.token, j.checked = withCheckpoint(*j.token, c), now
	return true
}

func (j *journal) checkpoints() *checkpointWriter {
	if j.writer == nil {
		j.writer = newCheckpointWriter(func() error { return j.save(j.ctx) })
	}
	return j.writer
}

// sent waits for the save of a checkpoint that is under way.
func (j *journal) sent() error {
	if j.writer == nil {
		return nil
	}
	err := j.writer.stop()
	j.writer = nil
	return err
}

// discard deletes the Token, because its session is of no more use or the upload
// is finished.
func (j *journal) discard() error {
	j.token, j.exists = nil, false
	return j.store.Delete(j.ctx, j.draft.ID)
}

// close releases the lock.
func (j *journal) close() {
	j.cancel()
	j.unlock()
}

// checkpointWriter saves in a goroutine whenever it is woken.
type checkpointWriter struct {
	due  chan struct{} // holds at most one
	done chan struct{}
	err  error // of the last save; read after stop
}

func newCheckpointWriter(save func() error) *checkpointWriter {
	w := &checkpointWriter{due: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for range w.due {
			w.err = save()
		}
	}()
	return w
}

// wake makes the writer save what is newest. It does not block.
func (w *checkpointWriter) wake() {
	select {
	case w.due <- struct{}{}:
	default:
	}
}

// stop waits for the save under way and returns the error of the last one.
func (w *checkpointWriter) stop() error {
	close(w.due)
	<-w.done
	return w.err
}

// linger is how long the store may take once the upload was cancelled.
const linger = 5 * time.Second

// lingering returns a context that outlives ctx a little: state can still be
// saved or deleted after cancellation.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(linger, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}
