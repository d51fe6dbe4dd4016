package engine

import (
	"context"
	"errors"

	"gcsup/internal/decide"
	"gcsup/session"
)

// Precondition compares an upload's preconditions with the object at the destination
// before the first byte is sent. The service does that only after the last byte.
// It reads the object once. If it cannot be read, the service decides at
// the end.
//
// A nil *Precondition is always met.
type Precondition struct {
	Looked  bool
	missing error // a *session.Error: an object is required, and there is none
}

// Look compares the preconditions of x with the destination, once. If the object is
// missing, the bucket may be missing too, which only the start of a session shows. It
// then returns nil, and the caller must call [Precondition.Unmet] when a session is open.
func (p *Precondition) Look(ctx context.Context, x *Requester) error {
	if p == nil || p.Looked || len(x.Spec.Conditions()) == 0 {
		return nil
	}
	a, err := x.Ask(ctx, decide.Request{Optional: true}, x.Stat)
	if err != nil && !Refusal(err) {
		return err
	}
	p.Looked = true
	switch a.Step {
	case session.Done:
		return p.compare(x, a.Object)
	case decide.Absent:
		p.missing = p.compare(x, nil)
	}
	return nil
}

// compare compares the preconditions with the object at the destination. The error
// has the same type as for a 412 of the service.
func (p *Precondition) compare(x *Requester, o *session.Object) error {
	err := x.Spec.Unmet(o)
	if e, ok := errors.AsType[*session.Error](err); ok {
		e.Offset = x.Pos.Committed.Load()
		return x.Retry.Failure(e, nil)
	}
	return err
}

// Absent records that a listing showed no object at the destination. [Precondition.Look]
// then makes no request if the preconditions allow that. The service decides at the end.
func (p *Precondition) Absent(spec session.Spec) {
	if spec.Unmet(nil) == nil {
		p.Looked = true
	}
}

// Unmet returns the error that [Precondition.Look] postponed.
func (p *Precondition) Unmet() error {
	if p == nil {
		return nil
	}
	return p.missing
}
