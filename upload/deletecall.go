package upload

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// defaultDeletions is the number of deletions at a time.
const defaultDeletions = 32

// deleteCall is one call of [Uploader.Delete] or [Uploader.DeleteFolders].
type deleteCall struct {
	u       *Uploader
	ctx     context.Context
	cancel  context.CancelFunc
	what    string // is deleted: object or folder
	budget  *engine.Budget
	breaker *batch.Breaker
}

func newDeleteCall(ctx context.Context, u *Uploader, what string) *deleteCall {
	c := &deleteCall{u: u, what: what, budget: u.newBudget()}
	c.ctx, c.cancel = context.WithCancel(ctx)
	// The service has answered: it listed the objects. A refusal by a stranger is therefore
	// not believed.
	c.budget.Reached.Store(true)
	c.breaker = batch.NewBreaker(c.budget.Progress)
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

// try calls do with an exchanger for spec, unless the call has ended or the service is down. It records the outcome
// for the other deletions.
func (d *deleter) try(spec Spec, do func(*engine.Exchanger) error) error {
	switch why := d.breaker.Err(spec.Bucket); {
	case d.u.invalid != nil:
		return d.u.invalid
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
		d.breaker.Succeeded(spec.Bucket)
	case d.ctx.Err() != nil:
		return callInterrupted(d.ctx, "delete")
	default:
		d.breaker.Failed(spec.Bucket, err)
	}
	return err
}
