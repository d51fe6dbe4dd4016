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
	requests *requester
	looked   bool
	missing  error // a *session.Error: an object is required, and there is none
}

// look compares the preconditions of spec with the destination, once. If the object is missing, the bucket may be missing
// too, which only the start of a session shows. look then returns nil, and the
// caller must call unmet when a session is open.
func (p *precondition) look(ctx context.Context, spec Spec) error {
	if p == nil || p.looked || !spec.Conditional() {
		return nil
	}
	a, err := p.requests.ask(ctx, p.requests.to(spec).stat)
	if err != nil && !refusal(err) {
		return err
	}
	p.looked = true
	switch a.Step {
	case session.Done:
		return p.compare(spec, a.Object)
	case session.Absent:
		p.missing = p.compare(spec, nil)
	}
	return nil
}

// compare compares the preconditions with the object at the destination. The error
// has the same type as for a 412 of the service.
func (p *precondition) compare(spec Spec, o *session.Object) error {
	err := spec.Unmet(o)
	if e, ok := errors.AsType[*session.Error](err); ok {
		e.Offset = p.requests.pos.committed.Load()
		return p.requests.retry.failure(e, nil)
	}
	return err
}

// absent records that a listing showed no object at the destination. look then makes
// no request if the preconditions allow that. The service decides at the end.
func (p *precondition) absent(spec Spec) {
	if spec.Unmet(nil) == nil {
		p.looked = true
	}
}

// unmet returns the error that look postponed.
func (p *precondition) unmet() error {
	if p == nil {
		return nil
	}
	return p.missing
}
