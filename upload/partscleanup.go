package upload

import (
	"context"
	"errors"

	"gcsup/session"
)

// conclude ends an upload with err. It cleans up after success, abandons an upload that cannot be
// resumed, and otherwise keeps the saved upload.
func (p *parallel) conclude(ctx context.Context, err error) error {
	j := p.j
	j.result.update(func(r *Result) {
		for _, c := range p.pieces {
			retry := c.transfer.retry
			r.ResumedFrom, r.Retries, r.Waited = r.ResumedFrom+c.resumed, r.Retries+retry.retries, r.Waited+retry.waiter.Waited()
		}
	})
	switch {
	case err == nil:
		p.finish(ctx)
		return nil
	case j.journal != nil && !j.journal.saved():
		return err // nothing was sent yet, or another process has the lease
	case j.journal == nil || dead(err) && !errors.Is(err, session.ErrSessionLost) || j.spec.NoClobber && errors.Is(err, session.ErrPrecondition):
		// The upload cannot be resumed.
		switch left := p.abandon(ctx); {
		case j.journal.saved() && left == nil:
			return errors.Join(err, j.journal.discard())
		case !j.journal.saved() && left != nil:
			p.warn(p.joiner.leftovers() + ": " + left.Error())
		}
	}
	if j.journal.saved() {
		j.journal.keep()
	}
	return err
}

// leased returns a context that ends when the lease is lost. The other process then
// finishes the work.
func (p *parallel) leased(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if lease := p.j.transfer.wire.lease; lease != nil {
		lost := lease.Context()
		stop = context.AfterFunc(lost, func() { cancel(context.Cause(lost)) })
	}
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// finish cleans up after a finished upload and deletes its Token. If something cannot be removed
// from the service, the Token stays, so that Prune or the next call tries again.
func (p *parallel) finish(ctx context.Context) {
	ctx, stop := p.leased(ctx)
	defer stop()
	j := p.j
	left, err := p.joiner.clean(ctx, true)
	if err != nil {
		left = p.joiner.leftovers() + ": " + err.Error()
	}
	if left != "" {
		p.warn(left)
		if j.journal.saved() {
			j.journal.keep()
		}
		return
	}
	if j.journal.saved() {
		if err := j.journal.discard(); err != nil {
			p.warn(err.Error())
		}
	}
}

// markOver records in the Token that the upload has ended and only the cleanup is left.
func (p *parallel) markOver(ctx context.Context) {
	if j := p.j.journal; j.saved() {
		_ = j.saveVersion(ctx, j.change(func(t *session.Token) { t.Parts.Over = true })) // a failure is a warning
	}
}

// abandonTimeout bounds abandon after the upload was cancelled, so that it can report
// leftovers before the call returns.
const abandonTimeout = abandonAfter * 3 / 4

// abandon removes everything that the service stores for an upload that cannot be
// resumed. It warns of leftovers that the service refuses to remove. The error is
// that of a request that may succeed later.
func (p *parallel) abandon(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
		defer cancel()
	}
	ctx, stop := p.leased(ctx)
	defer stop()
	p.markOver(ctx)
	left, err := p.joiner.clean(ctx, false)
	if left != "" {
		p.warn(left)
	}
	return err
}

func (p *parallel) warn(text string) { p.j.events.post(Event{Kind: Warning, Cause: text}) }
