package upload

import (
	"context"
	"errors"

	"gcsup/session"
)

// precondition compares an upload's preconditions with the object at the destination
// before the first byte is sent. The service does that only after the last byte.
// It reads the object once. If it cannot be read, the service decides at
// the end.
//
// A nil *precondition is always met.
type precondition struct {
	looked  bool
	missing error // a *session.Error: an object is required, and there is none
}

// look compares the preconditions of x with the destination, once. If the object is
// missing, the bucket may be missing too, which only the start of a session shows. It
// then returns nil, and the caller must call [precondition.unmet] when a session is open.
func (p *precondition) look(ctx context.Context, x *exchanger) error {
	if p == nil || p.looked || !x.spec.Conditional() {
		return nil
	}
	a, err := x.ask(ctx, x.stat)
	if err != nil && !refusal(err) {
		return err
	}
	p.looked = true
	switch a.Step {
	case session.Done:
		return p.compare(x, a.Object)
	case session.Absent:
		p.missing = p.compare(x, nil)
	}
	return nil
}

// compare compares the preconditions with the object at the destination. The error
// has the same type as for a 412 of the service.
func (p *precondition) compare(x *exchanger, o *session.Object) error {
	err := x.spec.Unmet(o)
	if e, ok := errors.AsType[*session.Error](err); ok {
		e.Offset = x.pos.committed.Load()
		return x.retry.failure(e, nil)
	}
	return err
}

// absent records that a listing showed no object at the destination. [precondition.look]
// then makes no request if the preconditions allow that. The service decides at the end.
func (p *precondition) absent(spec session.Spec) {
	if spec.Unmet(nil) == nil {
		p.looked = true
	}
}

// unmet returns the error that [precondition.look] postponed.
func (p *precondition) unmet() error {
	if p == nil {
		return nil
	}
	return p.missing
}
