package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// Query asks the service for the state of the saved upload that has this ID, see
// [Uploader.Saved]. It changes nothing at the service. It reads the source only for parts of a
// multipart upload that arrived after the last save: like a resume, it compares them with the
// source. Without the source, or if it has changed or is compressed, such parts do not count.
//
// A session counts as gone only after two equal answers of the service, and as canceled
// only after a reply with status 499. After the same answers, an upload would start
// over. Query retries failed requests like an upload.
//
// A session must not have two requests at a time. If another process works on the
// upload, the error wraps [state.ErrInUse]. [SavedUpload.Committed] has what that
// process last saved. The error wraps [state.ErrNotFound] if there is no such upload,
// and [session.ErrURIMismatch] if it was started at another endpoint.
func (u *Uploader) Query(ctx context.Context, id string) (Holding, error) {
	if _, err := u.savedStore(); err != nil {
		return Holding{}, fmt.Errorf("query: %w", err)
	}
	ctx, done := storeCall(ctx, u)
	defer done()
	var holding Holding
	var err error
	answered := make(chan struct{})
	u.goroutines.Run(func() { // the source may be at a file server that is away
		defer close(answered)
		err = inspect(ctx, u, id, u.newBudget(), func(s *savedCall, _ state.Lease) (err error) {
			defer s.openUnchanged()()
			holding, err = s.query(ctx)
			return err
		})
	})
	if !batch.Await(ctx, answered, grace.Call) {
		return Holding{}, fmt.Errorf("query: %w: the source or the store does not answer", context.Cause(ctx))
	}
	return holding, err
}

// Cancel ends the saved upload with that ID: the service drops its bytes, and the
// store deletes it. It is for uploads that will not be resumed. A session that is not
// canceled costs nothing and expires after a week. Like File, Cancel waits for a
// lease and delivers events of the kind LeaseHeld. The error wraps [state.ErrNotFound] if there is no
// such upload.
//
// If a call of this Uploader runs the upload, as described for [Uploader.Pause], Cancel
// interrupts it first. That call returns an [*InterruptedError] that wraps
// [session.ErrCanceled], and its upload does not count as resumable. If Cancel then fails,
// for example because the service is down, the upload is still saved.
func (u *Uploader) Cancel(ctx context.Context, id string) error {
	c := newCall(ctx, u, Spec{}, u.newBudget())
	err := cancelSaved(ctx, c, id)
	c.requests.Retry.Close()
	_, err = c.conclusion(ctx, c.result.snapshot(&c.progress), err)
	return err
}

// cancelSaved is Cancel, without its last event.
func cancelSaved(ctx context.Context, c *call, id string) error {
	ctx = c.storeContext(ctx)
	var doc *state.Upload
	var damaged error
	id, err := c.u.findSaved(ctx, id)
	if err == nil {
		c.identify(id, c.spec)
		err = c.u.running.Stop(ctx, id, &engine.Stopped{By: session.ErrCanceled})
	}
	if err == nil {
		doc, damaged, err = c.openJournal(ctx, state.Upload{ID: id}, nil)
	}
	if err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	defer c.journal.Close()
	switch {
	case damaged != nil: // it was set aside, and the session URI is unknown
		warnOfLostParts(c.events, id, "BUCKET")
		return nil
	case doc == nil:
		return fmt.Errorf("cancel: %w: %s", state.ErrNotFound, id)
	}
	c.identify(id, doc.Spec)
	s := &savedCall{call: c, doc: doc}
	if doc.Parts != nil {
		return s.cancelParts(ctx)
	}
	return s.cancel(ctx, withSpool(ctx, doc, c.journal.Discard))
}

// Pause interrupts the upload that has this ID, if a call of this Uploader, or of one
// that [Uploader.With] made from it, runs the upload. It waits until the upload is saved
// and its lease is released. The same call, or Resume, continues the upload. Pause sends
// no request to the service.
//
// The call that was interrupted returns an [*InterruptedError] that wraps [ErrPaused].
// A stream in parts, see [Parts], cannot be paused, because nothing could continue it: the
// error wraps [session.ErrInvalid], and the stream continues.
//
// If no call of this Uploader runs the upload, and it is saved, Pause does nothing. The
// error wraps [state.ErrInUse] if another Uploader or process has the upload and the
// store is a [state.LockChecker]. It wraps [state.ErrNotFound] if the upload is not
// saved: it was finished, or was interrupted before it had a session.
//
// If ctx is done, Pause does not wait any longer, for example for a file that hangs. The
// upload is interrupted nevertheless.
func (u *Uploader) Pause(ctx context.Context, id string) error {
	id, err := u.findSaved(ctx, id)
	if err == nil {
		err = u.notPartedStream(ctx, id)
	}
	if err == nil {
		err = u.running.Stop(ctx, id, &engine.Stopped{By: ErrPaused})
	}
	if err == nil {
		e := saved.Load(ctx, u.opts.Store, id)
		if err = e.Err; e.InUse {
			err = state.ErrInUse
		}
	}
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}

// PruneOptions configure [Uploader.Prune].
type PruneOptions struct {
	// MissingSource also cancels and deletes the uploads whose source does not exist. On
	// a file system that is not mounted, no source exists. A source that is not a file is
	// never missing.
	MissingSource bool

	// DryRun makes the same queries, and deletes nothing.
	DryRun bool
}

// Pruned is the result of Prune for a saved upload.
type Pruned struct {
	SavedUpload
	Holding            // the state at the service; see Uploader.Query
	SourceMissing bool // the session could be resumed, but there is no source; set only with PruneOptions.MissingSource
	Deleted       bool // it was deleted, or would have been without PruneOptions.DryRun
}

// Prune deletes the saved uploads that cannot be resumed. It yields all saved uploads in
// the order of [Uploader.Saved]. A nil opts uses the defaults. It deletes an upload if
//   - the service confirmed that the session is gone or canceled, as for
//     [Uploader.Query]. A spooled stream whose session is gone is kept if all its bytes are on disk, or if
//     that is not known: they may be the only copy;
//   - the session is finished, and its object is at the destination;
//   - the input of a spooled stream did not end, see [SavedUpload.Incomplete]. The session is
//     canceled first;
//   - [PruneOptions.MissingSource] is set, and there is no source. The session is
//     canceled first.
//
// It never deletes an upload because of its age, or because the service was not
// reached. If it cannot decide, it keeps the upload, yields it with an error, and
// continues. Such an error wraps
//   - [state.ErrInUse] if a process works on the upload;
//   - [session.ErrURIMismatch] if it was started at another endpoint;
//   - an error that [Uploader.Saved] yields;
//   - [ErrNotTried] if the service could not be reached for an earlier upload, or
//     rejected the credentials.
//
// Prune queries one upload at a time, while it holds the lock of that upload.
func (u *Uploader) Prune(ctx context.Context, opts *PruneOptions) iter.Seq2[Pruned, error] {
	return func(yield func(Pruned, error) bool) {
		ctx, done := storeCall(ctx, u)
		defer done()
		p := pruner{u: u, opts: *cmp.Or(opts, &PruneOptions{}), budget: u.newBudget()}
		for saved, err := range u.Saved(ctx) {
			pruned := Pruned{SavedUpload: saved}
			if err == nil {
				pruned, err = p.prune(ctx, saved)
			}
			if errors.Is(err, state.ErrNotFound) {
				continue // another process finished it
			}
			if !yield(pruned, err) {
				return
			}
		}
	}
}

// pruner is one call of Prune.
type pruner struct {
	u      *Uploader
	opts   PruneOptions
	budget *engine.SharedBudget // of all uploads
	end    error                // the error of all remaining uploads; nil if they are tried
}

func (p *pruner) prune(ctx context.Context, s SavedUpload) (Pruned, error) {
	pruned := Pruned{SavedUpload: s}
	if err := cmp.Or(foreign(p.u, s.ID, s.Endpoint), p.end); err != nil {
		return pruned, err
	}
	err := inspect(ctx, p.u, s.ID, p.budget, func(s *savedCall, lease state.Lease) (err error) {
		pruned.SavedUpload = Describe(s.doc) // it may have continued before the lock was taken
		if pruned.Holding, err = s.query(ctx); err != nil {
			p.learn(err)
			return err
		}
		return p.decide(ctx, s, lease, &pruned)
	})
	return pruned, err
}

// learn records an error that concerns all uploads.
func (p *pruner) learn(err error) {
	switch {
	case errors.Is(err, session.ErrCredentials):
		p.end = fmt.Errorf("%w: %w", ErrNotTried, session.ErrCredentials)
	case errors.Is(err, session.ErrRetriesExhausted) && !p.budget.Reached.Load():
		p.end = fmt.Errorf("%w: the service could not be reached: %w", ErrNotTried, session.ErrRetriesExhausted)
	}
}

// decide deletes an upload if it cannot be resumed. The caller holds its lease.
func (p *pruner) decide(ctx context.Context, s *savedCall, lease state.Lease, pruned *Pruned) (err error) {
	doc := s.doc
	useless := pruned.State == SessionGone || pruned.State == SessionCanceled
	switch {
	case doc.Parts != nil && doc.Parts.Over:
		useless = true
	case pruned.State == SessionGone && doc.Spool != nil:
		useless = !spoolWhole(doc)
	case doc.Parts != nil:
		useless = useless || pruned.State == SessionFinished
	case pruned.State == SessionFinished:
		if useless, err = s.holds(ctx, pruned.Object); err != nil {
			return err
		}
	}
	pruned.SourceMissing = !useless && p.opts.MissingSource && (doc.SourceIdentity == "" || doc.Spool != nil) && missing(sourceOf(doc))
	discard := withSpool(ctx, doc, func() error { return saved.Delete(ctx, lease) })
	switch {
	case !useless && !pruned.SourceMissing && !pruned.Incomplete:
		return nil
	case p.opts.DryRun:
	case doc.Parts != nil:
		if err = s.removeParts(ctx); err == nil {
			err = discard()
		}
	case useless:
		err = discard()
	default:
		err = s.cancel(ctx, discard)
	}
	pruned.Deleted = err == nil
	return err
}

// sourceOf returns the path of the source: the file, or the directory of a stream.
func sourceOf(t *state.Upload) string {
	if t.Spool != nil {
		return filepath.Join(t.Spool.Dir, t.ID)
	}
	return t.SourcePath
}

// missing reports whether a file does not exist. After another error, such as that of
// an unreadable directory, the file may exist.
func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
