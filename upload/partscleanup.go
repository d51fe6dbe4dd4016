package upload

import (
	"context"
	"errors"

	"gcsup/session"
	"gcsup/upload/internal/saved"
)

// conclude ends an upload with err. It cleans up after success. After a failure it keeps the
// saved upload and all that the service stores, unless no later call can use them.
func (p *parallel) conclude(ctx context.Context, err error) error {
	p.result.update(func(r *Result) {
		for _, part := range p.parts {
			retry := part.transfer.retry
			r.ResumedFrom, r.Retries, r.Waited = r.ResumedFrom+part.resumed, r.Retries+retry.retries, r.Waited+retry.waited()
		}
	})
	_, unexpected := errors.AsType[*unexpectedBytes](err)
	unmet, _ := errors.AsType[*session.Error](err)
	hopeless := unexpected || errors.Is(err, session.ErrPrecondition) && (!unmet.Early || p.spec.NoClobber)
	switch {
	case err == nil:
		p.finish(ctx)
		return nil
	case p.journal.Lease() == nil:
		p.leave(p.abandon(ctx))
	case !p.journal.Saved():
		p.disown(ctx) // nothing was sent yet, or another process has the lease
	case hopeless:
		if left := p.abandon(ctx); left != nil {
			p.leave(left)
			p.journal.Keep()
			return err
		}
		return errors.Join(err, p.journal.Discard())
	default:
		p.journal.Keep()
	}
	return err
}

// disown abandons an upload whose Token was deleted by another process while this one had
// the lease. That process may not have known what the service stores.
func (p *parallel) disown(ctx context.Context) {
	if p.journal.LeaseLost() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonGrace)
	defer cancel()
	if !p.journal.Deleted(ctx) {
		return // the other process finishes the work
	}
	p.uplink.needLease(nil)
	p.leave(p.joiner.clean(ctx, false))
}

// cleaning calls clean, which removes what the service stores, with a context that outlives
// ctx, and ends when the lease is lost: the other process then finishes the work.
func cleaning(ctx context.Context, u *uplink, clean func(context.Context) error) error {
	ctx, end := saved.Outliving(ctx, abandonGrace)
	defer end()
	if u.lease == nil {
		return clean(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := u.lease.Context()
	defer context.AfterFunc(lost, func() { cancel(context.Cause(lost)) })()
	return clean(ctx)
}

// abandoning is cleaning for an upload that will not be resumed. If clean fails after the lease
// was lost, the error is that of the lease.
func abandoning(ctx context.Context, u *uplink, clean func(context.Context) error) error {
	err := cleaning(ctx, u, clean)
	if lease := u.lease; err != nil && lease != nil {
		if lost := context.Cause(lease.Context()); lost != nil {
			return lost
		}
	}
	return err
}

// finish cleans up after a finished upload and deletes its Token. If something cannot be removed
// from the service, the Token stays, so that Prune or the next call tries again.
func (p *parallel) finish(ctx context.Context) {
	left := cleaning(ctx, p.uplink, func(ctx context.Context) error {
		err := p.joiner.clean(ctx, true)
		if err != nil {
			p.markOver(ctx)
		}
		return err
	})
	switch {
	case left != nil:
		p.leave(left)
		if p.journal.Saved() {
			p.journal.Keep()
		}
	case p.journal.Saved():
		if err := p.journal.Discard(); err != nil {
			p.warn(err.Error())
		}
	}
}

// abandon removes everything that the service stores for an upload that will not be
// resumed. The error describes what is left. The Token then says that it must be removed.
func (p *parallel) abandon(ctx context.Context) error {
	return abandoning(ctx, p.uplink, func(ctx context.Context) error {
		p.markOver(ctx)
		return p.joiner.clean(ctx, false)
	})
}

// leave reports what is left at the service, if err is not nil.
func (p *parallel) leave(err error) {
	if err == nil {
		return
	}
	p.result.update(func(r *Result) { r.Leftover = err })
	p.warn(err.Error())
}
