package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// DeleteOptions configure [Uploader.Delete]. The zero value uses the defaults.
type DeleteOptions struct {
	Jobs        int    // deletions at a time; 0 means 32
	UserProject string // project that is billed, for requester-pays buckets
}

// Delete deletes objects that were listed, several at a time. It yields each object with the
// outcome, in the order in which the deletions end. Bucket, Name and Generation are required. The
// error is nil if the object was deleted, or does not exist. It wraps [session.ErrPrecondition] if
// the object is no longer of that generation: it is not deleted. It wraps
// [session.ErrPermission] if a hold or a retention policy protects it.
//
// A failed request is retried like that of an upload. A failure does not affect other objects,
// unless the retries of one are used up while no deletion succeeds, or the credentials are not
// accepted. The rest then ends with [ErrNotTried]. When ctx is done, or the loop ends, no more
// objects are read. An object whose deletion was interrupted may be deleted.
//
// A bucket with versioning keeps the object as a noncurrent version, and one with soft delete
// keeps it for a time. Delete calls objects in another goroutine.
func (u *Uploader) Delete(ctx context.Context, objects iter.Seq[*session.Object], opts *DeleteOptions) iter.Seq2[*session.Object, error] {
	return func(yield func(*session.Object, error) bool) {
		opts := cmp.Or(opts, &DeleteOptions{})
		work := func(d *deleter, o *session.Object, emit func(*session.Object, error)) {
			spec := Spec{Bucket: o.Bucket, Object: o.Name, UserProject: opts.UserProject, IfGenerationMatch: &o.Generation}
			emit(o, d.try(spec, d.object))
		}
		runDeletions(newDeleteCall(ctx, u, "object"), cmp.Or(max(opts.Jobs, 0), defaultDeletions), objects, work, yield)
	}
}

// object deletes the object of x.
func (d *deleter) object(x *engine.Exchanger) error {
	if *x.Spec.IfGenerationMatch <= 0 {
		return fmt.Errorf("%w: the generation of %s is not known", session.ErrInvalid, x.Spec.URL())
	}
	_, err := x.Ask(d.ctx, session.Request{}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, session.OpDelete, func(ctx context.Context, c *session.Client) session.Reply { return c.Delete(ctx, x.Spec) })
	})
	if failed, ok := errors.AsType[*session.Error](err); ok && failed.Op == session.OpDelete && failed.Status == http.StatusPreconditionFailed && errors.Is(err, session.ErrInvalid) {
		err = d.replaced(x)
	}
	return err
}

// replaced returns the error of a deletion whose precondition, the generation, was refused. It is nil if
// there is no object. The service may answer so to the repeat of a request that deleted it.
func (d *deleter) replaced(x *engine.Exchanger) error {
	spec := x.Spec
	spec.IfGenerationMatch = nil
	a, err := x.To(spec).Ask(d.ctx, session.Request{}, x.To(spec).Stat)
	switch {
	case err != nil && !engine.Refusal(err):
		return err
	case err != nil: // the caller may not read it
		return fmt.Errorf("%w: it was probably replaced after it was listed", session.ErrPrecondition)
	case a.Object == nil:
		return nil
	}
	return fmt.Errorf("%w: it was replaced after it was listed: generation %d, not %d", session.ErrPrecondition, a.Object.Generation, *x.Spec.IfGenerationMatch)
}
