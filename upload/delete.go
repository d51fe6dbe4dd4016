package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload/internal/batch"
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
func (d *deleter) object(x *engine.Requester) error {
	if *x.Spec.IfGenerationMatch <= 0 {
		return fmt.Errorf("%w: the generation of %s is not known", session.ErrInvalid, x.Spec.URL())
	}
	_, err := x.Ask(d.ctx, decide.Request{}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, bucket.OpDelete, func(ctx context.Context, c *session.Client) session.Reply { return bucket.Delete(ctx, c, x.Spec) })
	})
	if failed, ok := errors.AsType[*session.Error](err); ok && failed.Op == bucket.OpDelete && failed.Status == http.StatusPreconditionFailed && errors.Is(err, session.ErrInvalid) {
		err = d.replaced(x)
	}
	return err
}

// replaced returns the error of a deletion whose precondition, the generation, was refused. It is nil if
// there is no object. The service may answer so to the repeat of a request that deleted it.
func (d *deleter) replaced(x *engine.Requester) error {
	spec := x.Spec
	spec.IfGenerationMatch = nil
	a, err := x.To(spec).Ask(d.ctx, decide.Request{}, x.To(spec).Stat)
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

// defaultDeletions is the number of deletions at a time.
const defaultDeletions = 32

// deleteCall is one call of [Uploader.Delete] or [Uploader.DeleteFolders].
type deleteCall struct {
	u        *Uploader
	ctx      context.Context
	cancel   context.CancelFunc
	what     string // is deleted: object or folder
	budget   *engine.SharedBudget
	failFast *batch.FailFast
}

func newDeleteCall(ctx context.Context, u *Uploader, what string) *deleteCall {
	c := &deleteCall{u: u, what: what, budget: u.newBudget()}
	c.ctx, c.cancel = context.WithCancel(ctx)
	// The service has answered: it listed the objects. A refusal by a stranger is therefore
	// not believed.
	c.budget.Reached.Store(true)
	c.failFast = batch.NewFailFast(c.budget.Progress)
	return c
}

// runDeletions calls work for each item in several goroutines, and yields what they emit. It calls items in another
// goroutine. When it returns, all of them have ended, and so has the call.
func runDeletions[T, R any](c *deleteCall, jobs int, items iter.Seq[T], work func(d *deleter, item T, emit func(R, error)), yield func(R, error) bool) {
	type outcome struct {
		of  R
		err error
	}
	queue, outcomes := make(chan T), make(chan outcome)
	var running sync.WaitGroup
	running.Go(func() {
		defer close(queue)
		for item := range items {
			select {
			case queue <- item:
			case <-c.ctx.Done():
				return
			}
		}
	})
	for range jobs {
		running.Go(func() {
			d := c.newDeleter()
			defer d.close()
			for item := range queue {
				work(d, item, func(of R, err error) { outcomes <- outcome{of, err} })
			}
		})
	}
	go func() {
		running.Wait()
		close(outcomes)
	}()
	defer func() {
		c.cancel()
		for range outcomes {
		}
	}()
	for o := range outcomes {
		if !yield(o.of, o.err) {
			return
		}
	}
}

// deleter makes the requests of a call, one after the other.
type deleter struct {
	*deleteCall
	of    label
	whole *engine.Position
	link  *engine.Uplink
	close func()
}

func (c *deleteCall) newDeleter() *deleter {
	d := &deleter{deleteCall: c, whole: engine.NewPosition(-1)}
	p := progress{whole: d.whole}
	events := newEvents(c.ctx, c.u, &d.of, p.describe)
	d.close = func() { events.close(c.ctx, nil) }
	d.link = c.u.newUplink(c.budget, new(engine.Tally), &reporter{events, c.u.opts.Logger, func() []slog.Attr {
		spec := d.of.get().spec
		return []slog.Attr{slog.String("bucket", spec.Bucket), slog.String(c.what, spec.Object)}
	}})
	return d
}

// try calls do with a requester for spec, unless the call has ended or the service is down. It records the outcome
// for the other deletions.
func (d *deleter) try(spec Spec, do func(*engine.Requester) error) error {
	switch why := d.failFast.Err(spec.Bucket); {
	case d.ctx.Err() != nil:
		return callInterrupted(d.ctx, "delete")
	case why != nil:
		return fmt.Errorf("%w: %w", ErrNotTried, why)
	}
	d.of.set(func(n *names) { n.spec = spec })
	x := engine.NewRequester(d.link, 0, d.whole).To(spec)
	defer x.Retry.Close()
	err := do(x)
	switch {
	case err == nil, errors.Is(err, session.ErrPrecondition), errors.Is(err, session.ErrPermission):
		// The service answers. Each object can have a hold or permissions of its own, and each folder can be in a
		// managed folder with permissions of its own.
		x.Retry.Succeeded()
		d.budget.Progressed()
		d.failFast.Succeeded(spec.Bucket)
	case d.ctx.Err() != nil:
		return callInterrupted(d.ctx, "delete")
	default:
		d.failFast.Failed(spec.Bucket, err)
	}
	return err
}

// DeleteFolders deletes those of the named folders that are empty, if the bucket of l has hierarchical namespace: such a
// bucket keeps a folder after its last object was deleted. In another bucket it makes one request, and deletes nothing.
// The names end in a slash, are in the order of their raw bytes, and have the prefix of l. Managed folders are never
// deleted, because they have an IAM policy.
//
// It yields each folder that was deleted, and, with the error, each folder that could not be
// deleted. It does not yield a folder that is not empty. The error wraps [session.ErrPermission] if
// storage.folders.delete is missing, or storage.managedFolders.get, which is needed to recognize a
// managed folder. If the service refuses the request about the bucket, nothing is deleted. If that
// request fails in another way, the only pair has its error and no name. Failures are handled like
// those of [Uploader.Delete]. DeleteFolders calls names in another goroutine.
func (u *Uploader) DeleteFolders(ctx context.Context, l Listing, names iter.Seq[string]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		c := newDeleteCall(ctx, u, "folder")
		defer c.cancel()
		switch has, err := c.hierarchical(l); {
		case err != nil:
			yield("", err)
			return
		case !has:
			return
		}
		var tree batch.FolderTree
		// The last deleter in a folder continues with it.
		work := func(d *deleter, n *batch.Folder, emit func(string, error)) {
			for n != nil {
				deleted := false
				if !n.Kept { // no other goroutine has n now
					err := d.try(Spec{Bucket: l.Bucket, Object: n.Name, UserProject: l.UserProject}, func(x *engine.Requester) (err error) {
						deleted, err = d.folder(x)
						return err
					})
					if deleted || err != nil {
						emit(n.Name, err)
					}
				}
				n = tree.Finish(n, deleted)
			}
		}
		runDeletions(c, defaultDeletions, tree.Innermost(names), work, yield)
	}
}

// hierarchical reports whether the bucket has folders. It has none if the service does not tell.
func (c *deleteCall) hierarchical(l Listing) (has bool, err error) {
	d := c.newDeleter()
	defer d.close()
	err = d.try(Spec{Bucket: l.Bucket, Object: l.Prefix, UserProject: l.UserProject}, func(x *engine.Requester) error {
		_, err := x.Ask(c.ctx, decide.Request{Optional: true}, func(ctx context.Context) session.Reply {
			return x.Plain(ctx, bucket.OpConfig, func(ctx context.Context, s *session.Client) (r session.Reply) {
				has, r = bucket.Hierarchical(ctx, s, l.Bucket, l.Prefix, l.UserProject)
				return r
			})
		})
		return err
	})
	if engine.Refusal(err) && !errors.Is(err, session.ErrCredentials) {
		return false, nil
	}
	return has, err
}

// folder deletes the folder of x, unless it is managed or not empty.
func (d *deleter) folder(x *engine.Requester) (deleted bool, err error) {
	var managed bool
	_, err = x.Ask(d.ctx, decide.Request{}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, bucket.OpDeleteFolder, func(ctx context.Context, c *session.Client) (r session.Reply) {
			managed, r = bucket.DeleteFolder(ctx, c, x.Spec.Bucket, x.Spec.Object, x.Spec.UserProject)
			return r
		})
	})
	if failed, ok := errors.AsType[*session.Error](err); ok && failed.Op == bucket.OpDeleteFolder && failed.Status == http.StatusConflict && engine.Refusal(err) {
		return false, nil // it is not empty
	}
	return err == nil && !managed, err
}
