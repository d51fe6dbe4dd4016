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

	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// DeleteOptions configure [Uploader.Delete]. The zero value uses the defaults.
type DeleteOptions struct {
	Jobs        int    // deletions at a time; 0 means 32
	UserProject string // project that is billed, for requester-pays buckets
}

const defaultDeletions = 32

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
		ctx, cancel := context.WithCancel(ctx)
		d := &deleteCall{u: u, ctx: ctx, opts: *cmp.Or(opts, &DeleteOptions{}), budget: u.newBudget(), ended: make(chan deletion)}
		// The service has answered: it listed the objects. A refusal by a stranger is therefore
		// not believed.
		d.budget.Reached.Store(true)
		d.breaker = batch.NewBreaker(d.budget.Progress)
		d.start(objects)
		defer func() {
			cancel()
			for range d.ended {
			}
		}()
		for e := range d.ended {
			if !yield(e.object, e.err) {
				return
			}
		}
	}
}

// deleteCall is one call of [Uploader.Delete].
type deleteCall struct {
	u       *Uploader
	ctx     context.Context
	opts    DeleteOptions
	budget  *engine.Budget
	breaker *batch.Breaker
	ended   chan deletion
}

// deletion is the outcome of the deletion of an object.
type deletion struct {
	object *session.Object
	err    error
}

// start starts the goroutines. The last of them closes d.ended.
func (d *deleteCall) start(objects iter.Seq[*session.Object]) {
	queue := make(chan *session.Object)
	var running sync.WaitGroup
	running.Go(func() {
		defer close(queue)
		for o := range objects {
			select {
			case queue <- o:
			case <-d.ctx.Done():
				return
			}
		}
	})
	for range cmp.Or(max(d.opts.Jobs, 0), defaultDeletions) {
		running.Go(func() { d.work(queue) })
	}
	go func() {
		running.Wait()
		close(d.ended)
	}()
}

// work deletes the objects of the queue.
func (d *deleteCall) work(queue <-chan *session.Object) {
	var of label
	p := progress{whole: engine.NewPosition(-1)}
	events := newEvents(d.ctx, d.u, &of, p.describe)
	defer events.close(d.ctx, nil)
	report := &reporter{events, d.u.opts.Logger, func() []slog.Attr {
		spec := of.get().spec
		return []slog.Attr{slog.String("bucket", spec.Bucket), slog.String("object", spec.Object)}
	}}
	link := d.u.newUplink(d.budget, new(engine.Tally), report)
	for o := range queue {
		spec := Spec{Bucket: o.Bucket, Object: o.Name, UserProject: d.opts.UserProject, IfGenerationMatch: &o.Generation}
		of.set(func(n *names) { n.spec = spec })
		d.ended <- deletion{o, d.delete(engine.NewRequester(link, 0, p.whole).To(spec))}
	}
}

// delete deletes the object of x.
func (d *deleteCall) delete(x *engine.Exchanger) error {
	defer x.Retry.Close()
	spec := x.Spec
	switch why := d.breaker.Err(spec.Bucket); {
	case d.u.invalid != nil:
		return d.u.invalid
	case d.ctx.Err() != nil:
		return callInterrupted(d.ctx, "delete")
	case why != nil:
		return fmt.Errorf("%w: %w", ErrNotTried, why)
	case *spec.IfGenerationMatch <= 0:
		return fmt.Errorf("%w: the generation of %s is not known", session.ErrInvalid, spec.URL())
	}
	_, err := x.Ask(d.ctx, session.Request{}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, session.OpDelete, func(ctx context.Context, c *session.Client) session.Reply { return c.Delete(ctx, spec) })
	})
	if failed, ok := errors.AsType[*session.Error](err); ok && failed.Op == session.OpDelete && failed.Status == http.StatusPreconditionFailed && errors.Is(err, session.ErrInvalid) {
		err = d.replaced(x)
	}
	switch {
	case err == nil, errors.Is(err, session.ErrPrecondition), errors.Is(err, session.ErrPermission):
		// The service answers. Each object can have a hold or permissions of its own.
		x.Retry.Succeeded()
		d.budget.Progressed()
		d.breaker.Succeeded(spec.Bucket)
	case d.ctx.Err() != nil:
		return callInterrupted(d.ctx, "delete")
	default:
		d.breaker.Failed(spec.Bucket, err)
	}
	return err
}

// replaced returns the error of a deletion whose precondition, the generation, was refused. It is nil if
// there is no object. The service may answer so to the repeat of a request that deleted it.
func (d *deleteCall) replaced(x *engine.Exchanger) error {
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
