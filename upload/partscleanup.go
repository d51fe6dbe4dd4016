package upload

import (
	"context"
	"errors"

	"gcsup/session"
)

// conclude ends an upload with err. It cleans up after success. After a failure it keeps the
// saved upload and all that the service stores, unless no later call can use them.
func (p *parallel) conclude(ctx context.Context, err error) error {
	j := p.j
	j.result.update(func(r *Result) {
		for _, c := range p.pieces {
			retry := c.transfer.retry
			r.ResumedFrom, r.Retries, r.Waited = r.ResumedFrom+c.resumed, r.Retries+retry.retries, r.Waited+retry.waiter.Waited()
		}
	})
	_, unexpected := errors.AsType[*unexpectedBytes](err)
	unmet, _ := errors.AsType[*session.Error](err)
	hopeless := unexpected || errors.Is(err, session.ErrPrecondition) && (!unmet.Early || j.spec.NoClobber)
	switch {
	case err == nil:
		p.finish(ctx)
		return nil
	case j.journal == nil:
		p.leave(p.abandon(ctx))
	case !j.journal.saved():
		p.disown(ctx) // nothing was sent yet, or another process has the lease
	case hopeless:
		if left := p.abandon(ctx); left != nil {
			p.leave(left)
			j.journal.keep()
			return err
		}
		return errors.Join(err, j.journal.discard())
	default:
		j.journal.keep()
	}
	return err
}

// disown abandons an upload whose Token was deleted by another process while this one had
// the lease. That process may not have known what the service stores.
func (p *parallel) disown(ctx context.Context) {
	j := p.j
	if j.journal.leaseLost() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	if _, err := j.u.opts.Store.Load(ctx, j.journal.next.draft.ID); !errors.Is(err, session.ErrNoToken) {
		return // the other process finishes the work
	}
	j.uplink.needLease(nil)
	p.leave(p.joiner.clean(ctx, false))
}

// cleaning returns a context for the removal of what the service stores. It outlives ctx, and
// ends when the lease is lost: the other process then finishes the work.
func (p *parallel) cleaning(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := outliving(ctx, abandonTimeout)
	ctx, cancel := context.WithCancelCause(longer)
	stop := func() bool { return true }
	if lease := p.j.uplink.lease; lease != nil {
		lost := lease.Context()
		stop = context.AfterFunc(lost, func() { cancel(context.Cause(lost)) })
	}
	return ctx, func() {
		stop()
		cancel(nil)
		end()
	}
}

// finish cleans up after a finished upload and deletes its Token. If something cannot be removed
// from the service, the Token stays, so that Prune or the next call tries again.
func (p *parallel) finish(ctx context.Context) {
	ctx, stop := p.cleaning(ctx)
	defer stop()
	j := p.j
	if err := p.joiner.clean(ctx, true); err != nil {
		p.leave(err)
		if j.journal.saved() {
			p.markOver(ctx)
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

// abandonTimeout bounds a cleanup after the upload was cancelled, so that it can report
// leftovers before the call returns.
const abandonTimeout = abandonAfter * 3 / 4

// abandon removes everything that the service stores for an upload that will not be
// resumed. The error describes what is left. The Token then says that it must be removed.
func (p *parallel) abandon(ctx context.Context) error {
	ctx, stop := p.cleaning(ctx)
	defer stop()
	p.markOver(ctx)
	err := p.joiner.clean(ctx, false)
	if lease := p.j.uplink.lease; err != nil && lease != nil {
		if lost := context.Cause(lease.Context()); lost != nil {
			return lost
		}
	}
	return err
}

// leave reports what is left at the service, if err is not nil.
func (p *parallel) leave(err error) {
	if err == nil {
		return
	}
	p.j.result.update(func(r *Result) { r.Leftover = err })
	p.warn(err.Error())
}

func (p *parallel) warn(text string) { p.j.events.post(Event{Kind: Warning, Cause: text}) }
