package saved

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
)

// Journal writes the saved upload of one saved upload, from the acquisition of the lease to
// the last save. It has the state of the session of the file, or of those of its parts.
// The records of the sessions change it. The zero Journal is for an upload that is not saved:
// it has only the state.
//
// Checkpoints are saved in a goroutine, so that a slow disk does not delay the
// network. If saves cannot keep up, the newest saved upload is saved next.
//
// After a session was saved, an error of the store is only a warning, because the
// upload can be resumed from the earlier saved upload. If the server then reports an offset
// that was not saved, the later process compares the server's checksum with the
// source. Only one error ends the upload: another process has the lease.
type Journal struct {
	store    state.Store
	lease    state.Lease        // nil if the upload is not saved
	released func()             // called when the lease is released
	stale    func(error)        // see Call
	kept     func(*state.Parts) // see OnSave; may be nil

	ctx        context.Context // for the store; lasts a little longer than the upload's
	background context.Context // like ctx, for saves for which the upload does not wait
	stop       context.CancelFunc

	held context.Context         // ends when the lease is lost
	lose context.CancelCauseFunc // ends held

	draft state.Upload   // the fields of every saved upload of this upload: ID, endpoint, Spec, path
	whole *SessionRecord // of the session of the file; nil if it has none, or has parts

	saving chan struct{} // has an element during a save, so that no older saved upload replaces a newer one

	mu      sync.Mutex
	saver   chan struct{} // closed when the goroutine of SaveSoon ends; nil if there is none
	due     bool          // that goroutine must save
	doc     state.Upload  // saved next
	version int64         // of doc; counts its changes
	last    bool          // the saved upload is saved when the lease is released
	stored  stored
}

// stored describes the saved upload of an upload in the store.
type stored struct {
	doc     *state.Upload // nil if the upload is not saved
	version int64         // of doc
	wrote   time.Time     // the last save
	stale   bool          // the last save failed, and that was reported; the store has doc
}

// Call is the call that works on a saved upload.
type Call struct {
	Store     state.Store
	Running   *Running
	Interrupt context.CancelCauseFunc // ends the call; nil if that is not possible

	Waiting func(*state.HeldError) // called before each wait for the lease, with its holder
	Stale   func(error)            // called when the saved upload cannot be saved, and the store keeps an earlier one

	// Last and Background return contexts for calls of the store: for the last ones of an
	// upload, and for those for which it does not wait.
	Last, Background func(context.Context) context.Context
}

// Open acquires the lease of an upload and loads its saved upload. The saved upload is nil if there
// is none. If it was damaged, Open has set it aside, and damaged is the reason. draft has
// the fields of every saved upload of the upload. If it has no source, it gets that of the saved upload. The
// caller must call Close.
func Open(ctx context.Context, c Call, draft state.Upload) (j *Journal, doc *state.Upload, damaged, err error) {
	lease, err := acquire(ctx, c.Store, draft.ID, c.Waiting)
	if err != nil {
		return nil, nil, nil, err
	}
	doc, err = loadMoved(ctx, c.Store, lease)
	switch {
	case errors.Is(err, state.ErrCorrupt):
		doc, damaged = nil, err
		err = state.SetAside(ctx, c.Store, draft.ID)
	case errors.Is(err, state.ErrNotFound):
		doc, err = nil, nil
	}
	if err != nil {
		Release(ctx, lease)
		return nil, nil, nil, err
	}
	j = &Journal{store: c.Store, lease: lease, stale: c.Stale, draft: draft, saving: make(chan struct{}, 1), released: c.Running.add(draft.ID, c.Interrupt)}
	longer, stop := Lingering(ctx)
	j.ctx, j.stop = c.Last(longer), stop
	j.background = c.Background(j.ctx)
	j.held, j.lose = context.WithCancelCause(lease.Context())
	if doc != nil {
		j.draft.SourcePath = cmp.Or(draft.SourcePath, doc.SourcePath)
		j.draft.SourceIdentity = cmp.Or(draft.SourceIdentity, doc.SourceIdentity)
		j.draft.Spool = doc.Spool
		j.Adopt(doc)
	}
	return j, doc, damaged, nil
}

// Adopt continues a saved upload.
func (j *Journal) Adopt(t *state.Upload) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.doc = *cloned(t)
	if j.lease != nil {
		j.stored.doc = t
	}
}

// Begin makes the saved upload of a new upload in parts. source is the identity of the file. The saved upload
// is saved before the first byte is sent. The parts of a compressed file are added when their sizes are known.
func (j *Journal) Begin(source chunk.Identity, parts *state.Parts) {
	var zipped *state.GzipState
	if j.draft.Spec.Gzip && j.draft.Spool == nil {
		zipped = &state.GzipState{}
	} else {
		parts.List = make([]state.Part, (source.Size+parts.Size-1)/parts.Size)
	}
	j.edit(func() {
		j.reset(source, parts)
		j.doc.Gzip = zipped
	})
}

// BeginRemoval makes the saved upload of a stream that is sent in parts. Its bytes are in memory, so that nothing but
// the removal of what parts names is left if the process ends.
func (j *Journal) BeginRemoval(parts *state.Parts) {
	j.edit(func() {
		j.reset(chunk.Identity{}, &state.Parts{Prefix: parts.Prefix, Upload: parts.Upload, Over: true})
		j.doc.Spec.Gzip = false // there are no compressed bytes to compare
	})
}

// reset starts a new saved upload. The caller is edit.
func (j *Journal) reset(source chunk.Identity, parts *state.Parts) {
	j.doc = j.draft
	j.doc.Created, j.doc.Source, j.doc.Parts = time.Now(), source, parts
}

// edit changes the saved upload that is saved next.
func (j *Journal) edit(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
	j.version++
}

// Change changes what the saved upload describes of all parts together.
func (j *Journal) Change(f func(*state.Parts)) { j.edit(func() { f(j.doc.Parts) }) }

// Parts returns what the saved upload describes of all parts together. The records of the parts
// have the rest.
func (j *Journal) Parts() *state.Parts { return j.doc.Parts }

// Doc returns a copy of the saved upload that is saved next.
func (j *Journal) Doc() *state.Upload {
	j.mu.Lock()
	defer j.mu.Unlock()
	return cloned(&j.doc)
}

// Compressed changes what the saved upload describes of a file that is compressed.
func (j *Journal) Compressed(f func(*state.GzipState)) {
	j.edit(func() {
		changed := *j.doc.Gzip // a save may read the old one
		f(&changed)
		j.doc.Gzip = &changed
	})
}

// Size returns the size of the object that a file becomes; -1 while that of a compressed one is not known.
func (j *Journal) Size() int64 {
	if j.doc.Gzip != nil {
		return j.doc.ObjectSize()
	}
	return j.doc.Source.Size
}

// SetSpec sets the options of the object, for the next saved upload that is new.
func (j *Journal) SetSpec(spec session.Spec) {
	spec.EncryptionKey = spec.EncryptionKey.WithoutSecret()
	j.draft.Spec = spec
}

// cloned returns a copy of t, with its own list of parts.
func cloned(t *state.Upload) *state.Upload {
	c := *t
	if t.Parts != nil {
		c.Parts = new(*t.Parts)
		c.Parts.List = slices.Clone(t.Parts.List)
	}
	return &c
}

// Lease returns the lease, which requests need. It is nil if the upload is not saved.
func (j *Journal) Lease() state.Lease { return j.lease }

// File returns the record of the session of the file. It is nil if RecordFile was not called.
func (j *Journal) File() *SessionRecord { return j.whole }

// Saved reports whether the store has the upload, and its lease is held.
func (j *Journal) Saved() bool {
	if j.LeaseLost() != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored.doc != nil
}

// Deleted reports whether the store has no upload with the ID, although the lease may be lost.
func (j *Journal) Deleted(ctx context.Context) bool {
	_, err := j.store.Load(ctx, j.draft.ID)
	return errors.Is(err, state.ErrNotFound)
}

// Guard returns a context that ends when the lease is lost.
func (j *Journal) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.lease == nil {
		return context.WithCancel(ctx)
	}
	ctx, abandon := context.WithCancelCause(ctx)
	stop := context.AfterFunc(j.held, func() { abandon(context.Cause(j.held)) })
	return ctx, func() {
		stop()
		abandon(nil)
	}
}

// LeaseLost returns the error of a lost lease, or nil while the lease is held.
func (j *Journal) LeaseLost() error {
	if j.lease == nil {
		return nil
	}
	return context.Cause(j.held)
}

// Keep makes the last save write the saved upload.
func (j *Journal) Keep() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = true
}

// Finished returns the number of parts that are finished.
func (j *Journal) Finished() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.doc.Parts == nil {
		return 0 // the upload has started over, with one session
	}
	for i := range j.doc.Parts.List {
		if j.doc.Parts.List[i].Finished() {
			n++
		}
	}
	return n
}

// Lists reports whether the store has part i, which is from 0.
func (j *Journal) Lists(i int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	doc := j.stored.doc
	return doc != nil && doc.Parts != nil && i < len(doc.Parts.List)
}

// Old reports whether the last save is so old that an optional save should be made.
func (j *Journal) Old() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored.doc != nil && time.Since(j.stored.wrote) >= j.lease.SaveInterval()
}

// Save is Persist, but if it fails while the store has an older saved upload, it only reports that: the upload can
// be resumed. It returns an error if the store has none, or another process has the lease.
func (j *Journal) Save(ctx context.Context) error {
	err := j.Persist(ctx)
	if err == nil || errors.Is(err, state.ErrInUse) {
		return err
	}
	j.mu.Lock()
	resumable := j.stored.doc != nil
	j.mu.Unlock()
	if resumable {
		j.unsavable(ctx, err)
		return nil
	}
	return err
}

// Persist writes the newest saved upload to the store, through the lease, unless the store has it. It returns every error.
func (j *Journal) Persist(ctx context.Context) error {
	if j.lease == nil {
		return nil
	}
	j.mu.Lock()
	wanted := j.version
	j.mu.Unlock()
	select {
	case j.saving <- struct{}{}:
	default: // a store decides for itself what it does if ctx is done
		select {
		case j.saving <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-j.saving }()
	j.mu.Lock()
	if j.stored.doc != nil && !j.stored.stale && j.stored.version >= wanted {
		j.mu.Unlock()
		return nil // the save for another part included it
	}
	doc, version := cloned(&j.doc), j.version
	j.mu.Unlock()
	err := j.lease.Save(ctx, doc)
	if errors.Is(err, state.ErrInUse) {
		j.lose(err)
		return err
	}
	if err == nil {
		j.mu.Lock()
		j.stored = stored{doc: doc, version: version, wrote: time.Now()}
		j.mu.Unlock()
		if j.kept != nil && doc.Parts != nil {
			j.kept(doc.Parts)
		}
	}
	return err
}

// OnSave makes the journal call kept with the parts that the store has, after each save. It must be called before the
// first part is sent.
func (j *Journal) OnSave(kept func(*state.Parts)) { j.kept = kept }

// unsavable warns that the saved upload could not be saved because of err, and the store has
// an earlier one.
func (j *Journal) unsavable(ctx context.Context, err error) {
	j.mu.Lock()
	known := j.stored.stale
	j.stored.stale = true
	j.mu.Unlock()
	if !known && ctx.Err() == nil {
		j.stale(err)
	}
}

// SaveSoon saves the newest saved upload in the background. It does not block.
func (j *Journal) SaveSoon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.due = true
	if j.saver == nil {
		j.saver = make(chan struct{})
		go j.saveDue()
	}
}

// saveDue saves until nothing is due.
func (j *Journal) saveDue() {
	for j.takeDue() {
		ctx, cancel := context.WithTimeout(j.background, checkpointTimeout)
		_ = j.Save(ctx)
		cancel()
	}
}

// takeDue reports whether a save is due. If not, the goroutine of saveDue ends.
func (j *Journal) takeDue() (due bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if due, j.due = j.due, false; !due {
		close(j.saver)
		j.saver = nil
	}
	return due
}

// AwaitSaves waits for what SaveSoon saves.
func (j *Journal) AwaitSaves() {
	j.mu.Lock()
	saver := j.saver
	j.mu.Unlock()
	if saver != nil {
		<-saver
	}
}

// Discard deletes the saved upload, because its session is unusable or the upload is
// finished.
func (j *Journal) Discard() error {
	if j.lease == nil {
		return nil
	}
	j.AwaitSaves()
	j.mu.Lock()
	j.stored.doc, j.last = nil, false
	j.mu.Unlock()
	return j.lease.Delete(j.ctx)
}

// Close makes the last save, and releases the lease.
func (j *Journal) Close() {
	defer j.stop()
	defer j.released()
	j.AwaitSaves()
	var last *state.Upload
	if j.last {
		last = &j.doc // no other goroutine has j now
	}
	if err := j.lease.Release(j.ctx, last); err != nil && last != nil {
		j.unsavable(j.ctx, err)
	}
}
