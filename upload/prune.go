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

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

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

// Prune deletes the saved uploads that cannot be resumed, and yields all, in the
// order of [Uploader.Saved]. A nil opts uses the defaults. It deletes an upload if
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
			if errors.Is(err, state.ErrNoToken) {
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
	budget *engine.Budget // of all uploads
	end    error          // the error of all remaining uploads; nil if they are tried
}

func (p *pruner) prune(ctx context.Context, s SavedUpload) (Pruned, error) {
	pruned := Pruned{SavedUpload: s}
	if err := cmp.Or(foreign(p.u, s.ID, s.Endpoint), p.end); err != nil {
		return pruned, err
	}
	err := inspect(ctx, p.u, s.ID, p.budget, func(s *savedCall, lease state.Lease) (err error) {
		pruned.SavedUpload = Describe(s.token) // it may have continued before the lock was taken
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
	token := s.token
	useless := pruned.State == SessionGone || pruned.State == SessionCanceled
	switch {
	case token.Parts != nil:
		useless = useless || token.Parts.Over || pruned.State == SessionFinished
	case pruned.State == SessionGone && token.Spool != nil:
		useless = !spoolWhole(token)
	case pruned.State == SessionFinished:
		if useless, err = s.holds(ctx, pruned.Object); err != nil {
			return err
		}
	}
	pruned.SourceMissing = !useless && p.opts.MissingSource && token.SourceIdentity == "" && missing(sourceOf(token))
	discard := withSpool(ctx, token, func() error { return saved.Delete(ctx, lease) })
	switch {
	case !useless && !pruned.SourceMissing && !pruned.Incomplete:
		return nil
	case p.opts.DryRun:
	case token.Parts != nil:
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
func sourceOf(t *state.Token) string {
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
