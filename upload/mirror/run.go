package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"gcsup/upload"
	"gcsup/upload/tree"
)

// Run makes the prefix equal to the directory. Without Options.Delete it only uploads, and looks up
// objects as [upload.Uploader.Files] does with a Listing. It yields an Outcome for each file in the
// order in which the uploads end, then for each protected object, and then for each object that is
// deleted. The error of a pair is that of the file or the deletion. A file that vanished has a
// [*tree.EntryError], like an entry that is not a file. An object whose file was made meanwhile is
// kept: Appeared.
//
// If the run as a whole fails, the last pair has the error and an Outcome without a Result and
// without an Object: ErrIncomplete, ErrNoFiles, ErrTooManyDeletions, the error of the listing, or that of ctx. With
// DryRun, the objects that would be deleted are yielded before that.
func (m *Mirror) Run(ctx context.Context, u *upload.Uploader) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		s := &surveyor{m: m, u: u}
		defer s.close()
		opts := m.opts.Batch
		if opts.Sizes == nil {
			opts.Sizes = m.tree.Sizes(ctx)
		}
		jobs := s.jobs(ctx)
		if !m.opts.Delete {
			opts.Listing, jobs = &m.listing, m.jobs(ctx)
		}
		failed := int64(0)
		for res, err := range u.Files(ctx, jobs, &opts) {
			err = vanished(res, err)
			if m.failed(err) {
				failed++
			}
			if !yield(Outcome{Kind: Upload, Result: res}, err) {
				return
			}
		}
		switch {
		case ctx.Err() != nil:
			yield(Outcome{}, fmt.Errorf("mirror: %w: %v", ctx.Err(), context.Cause(ctx)))
		case m.opts.Delete:
			m.deleteRest(ctx, u, s, failed, yield)
		}
	}
}

// failed reports whether err is the failure of a file, because of which nothing is deleted.
func (m *Mirror) failed(err error) bool {
	entry, ok := errors.AsType[*tree.EntryError](err)
	if !ok {
		return err != nil
	}
	switch entry.Kind {
	case tree.LeftOut, tree.Link, tree.Private: // ignored links have the kind Link
		return false
	}
	return m.opts.Strict
}

// vanished returns the error of a file, which is an [*tree.EntryError] if the file was removed before it
// was opened.
func vanished(res *upload.Result, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && res != nil && pe.Path == res.Path && errors.Is(pe, fs.ErrNotExist) {
		return tree.VanishedError(res.Path)
	}
	return err
}

// deleteRest yields the outcomes of the objects without a file.
func (m *Mirror) deleteRest(ctx context.Context, u *upload.Uploader, s *surveyor, failed int64, yield func(Outcome, error) bool) {
	v := s.take()
	switch {
	case v == nil: // only if ctx was done
		yield(Outcome{}, fmt.Errorf("%w: the plan has not ended", ErrIncomplete))
		return
	case v.err != nil:
		yield(Outcome{}, v.err)
		return
	}
	refused := v.check(failed, m.opts.MaxDelete)
	then := []iter.Seq2[Outcome, error]{kept(v.protects)}
	switch {
	case m.opts.Batch.DryRun:
		then = append(then, v.planned())
	case refused == nil:
		if m.opts.Deleting != nil && v.deletes.n > 0 {
			m.opts.Deleting(v.deletes.n)
		}
		then = append(then, v.delete(ctx, m, u), kept(v.appeared))
	}
	if !yieldAll(then, yield) {
		return
	}
	if refused == nil && ctx.Err() == nil {
		v.deleteFolders(ctx, m, u) // none in a dry run
	}
	if refused == nil && ctx.Err() != nil {
		refused = fmt.Errorf("mirror: %w: %v", ctx.Err(), context.Cause(ctx))
	}
	if refused != nil {
		yield(Outcome{}, refused)
	}
}

// Check compares the files with their objects, as [upload.Uploader.Compare] does. It yields an Outcome
// for each file, and then a Delete with Planned for each object without a file, and a Protect for
// those that Run does not delete. It changes nothing. If the listing fails, the last pair has the
// error, and an Outcome without a Result and without an Object.
func (m *Mirror) Check(ctx context.Context, u *upload.Uploader) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		s := &surveyor{m: m, u: u}
		defer s.close()
		opts := m.opts.Batch
		if opts.Sizes == nil {
			opts.Sizes = m.tree.Sizes(ctx)
		}
		for res, err := range u.Compare(ctx, s.jobs(ctx), &opts) {
			if !yield(Outcome{Kind: Upload, Result: res}, err) {
				return
			}
		}
		v := s.take()
		switch {
		case ctx.Err() != nil:
			yield(Outcome{}, fmt.Errorf("mirror: %w: %v", ctx.Err(), context.Cause(ctx)))
			return
		case v == nil || v.err != nil:
			err := ErrIncomplete
			if v != nil {
				err = v.err
			}
			yield(Outcome{}, err)
			return
		}
		yieldAll([]iter.Seq2[Outcome, error]{v.planned(), kept(v.protects)}, yield)
	}
}

// yieldAll yields outcomes. It returns false if the iteration ended, or if the objects could not be
// read, which is the last outcome.
func yieldAll(sequences []iter.Seq2[Outcome, error], yield func(Outcome, error) bool) bool {
	for _, outcomes := range sequences {
		for o, err := range outcomes {
			if !yield(o, err) || o.Object == nil {
				return false
			}
		}
	}
	return true
}
