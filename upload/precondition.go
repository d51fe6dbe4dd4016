package upload

import (
	"context"
	"errors"

	"gcsup/session"
)

// precondition compares an upload's preconditions with the object at the destination
// before the first byte is sent. The service does that only after the last byte.
// precondition reads the object once. If it cannot be read, the service decides at
// the end.
//
// A nil *precondition is always met.
type precondition struct {
	t       *transfer
	looked  bool
	missing error // a *session.Error: an object is required, and there is none
}

// check checks the destination. If the object is missing, the bucket may be missing
// too, which only the start of a session shows. check then returns nil, and the
// caller must call unmet when a session is open.
func (p *precondition) check(ctx context.Context) error {
	if p == nil || p.looked || !p.t.wire.spec.Conditional() {
		return nil
	}
	a, err := p.t.ask(ctx, p.t.wire.stat)
	if err != nil && !refusal(err) {
		return err
	}
	p.looked = true
	switch a.Step {
	case session.Done:
		return p.compare(a.Object)
	case session.Absent:
		p.missing = p.compare(nil)
	}
	return nil
}

// compare compares the preconditions with the object at the destination. The error
// has the same type as for a 412 of the service.
func (p *precondition) compare(o *session.Object) error {
	err := p.t.wire.spec.Unmet(o)
	if e, ok := errors.AsType[*session.Error](err); ok {
		e.Offset = p.t.pos.committed.Load()
		return p.t.retry.failure(e, nil)
	}
	return err
}

// absent records that a listing showed no object at the destination. check then makes
// no request if the preconditions allow that. The service decides at the end.
func (p *precondition) absent() {
	if p.t.wire.spec.Unmet(nil) == nil {
		p.looked = true
	}
}

// unmet returns the error that check postponed.
func (p *precondition) unmet() error {
	if p == nil {
		return nil
	}
	return p.missing
}
