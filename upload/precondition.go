package upload

import (
	"context"
	"errors"

	"gcsup/session"
)

// precondition compares an upload's preconditions with the object at the
// destination before the first byte is sent, because the service does so only
// after the last. It looks once. If the object cannot be seen, the service will
// decide.
//
// A nil *precondition is always met.
type precondition struct {
	t       *transfer
	looked  bool
	missing error // a *session.Error: there is no object, and one is wanted
}

// check looks at the destination. An object that is missing may also mean that
// the bucket is missing. Opening a session shows it, so check leaves that case to
// unmet, to be called when a session is open.
func (p *precondition) check(ctx context.Context) error {
	if p == nil || p.looked || !p.t.wire.spec.Conditional() {
		return nil
	}
	r, err := p.t.retry.repeat(ctx, p.t.wire.stat)
	if err != nil {
		if ctx.Err() != nil {
			return p.t.interrupted(ctx, nil)
		}
		return err
	}
	p.looked = true
	switch {
	case r.Status == 200 && r.Object != nil:
		return p.compare(r.Object)
	case r.Status == 404:
		p.missing = p.compare(nil)
	}
	return nil
}

// compare compares the preconditions with the object at the destination. Its
// error has the type that a 412 of the service has.
func (p *precondition) compare(o *session.Object) error {
	err := p.t.wire.spec.Unmet(o)
	if e, ok := errors.AsType[*session.Error](err); ok {
		e.Offset = p.t.pos.committed.Load()
		return p.t.retry.failure(e, nil)
	}
	return err
}

// absent notes that a listing showed no object at the destination, so that check
// need not look if the preconditions allow that. The service will decide.
func (p *precondition) absent() {
	if p.t.wire.spec.Unmet(nil) == nil {
		p.looked = true
	}
}

// unmet returns the error that check left to it.
func (p *precondition) unmet() error {
	if p == nil {
		return nil
	}
	return p.missing
}
