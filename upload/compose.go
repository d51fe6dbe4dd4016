package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"gcsup/chunk"
	"gcsup/session"
)

// errPartMissing means that a temporary object does not exist any more.
var errPartMissing = errors.New("a temporary object is missing")

// maxForeign bounds how often an object that another client put at the destination is
// replaced.
const maxForeign = 3

// span is a temporary object, or several that were composed.
type span struct {
	session.Component
	size   int64
	crc32c uint32
	parts  int64 // components, as the service counts them
}

// compose makes the object at the destination from the temporary objects, through a tree
// of temporary objects if they are many.
func (p *parallel) compose(ctx context.Context) (*session.Object, error) {
	if err := p.confirm(ctx); err != nil {
		return nil, err
	}
	level := p.spans()
	for depth := 1; len(level) > session.ComposeMax; depth++ {
		var above []span
		for _, group := range p.groups(level, depth) {
			made, err := p.composeTemporary(ctx, group.name, group.spans)
			if err != nil {
				return nil, err
			}
			above = append(above, made)
		}
		level = above
	}
	return p.composeLast(ctx, level)
}

// group are the spans that become one temporary object.
type group struct {
	name  string
	spans []span
}

// spans returns the parts.
func (p *parallel) spans() (level []span) {
	for _, c := range p.pieces {
		level = append(level, span{session.Component{Name: c.name(), Generation: c.object}, c.rng.Len(), c.crc32c, 1})
	}
	return level
}

// groups divides a level of the tree.
func (p *parallel) groups(level []span, depth int) (groups []group) {
	for spans := range slices.Chunk(level, session.ComposeMax) {
		groups = append(groups, group{fmt.Sprintf("%sc%d-%04d", p.parts.Prefix, depth, len(groups)), spans})
	}
	return groups
}

// is reports whether an object has the bytes of s, and was composed as s is.
func (s *span) is(o *session.Object) bool {
	return o.Size == s.size && o.HasCRC32C && o.CRC32C == s.crc32c && o.ComponentCount == s.parts
}

// confirm checks what must hold before the object is there.
func (p *parallel) confirm(ctx context.Context) error {
	j := p.j
	if err := j.transfer.expect.ended(ctx, p.size); err != nil {
		return err
	}
	whole := func() chunk.Checkpoint { return chunk.Checkpoint{Offset: p.size, CRC32C: p.crc32c()} }
	if err := j.file.unchangedFrom(ctx, whole); err != nil {
		return j.transfer.sourceFailed(ctx, err)
	}
	return j.transfer.expected(p.crc32c())
}

// join returns the span of a group.
func join(name string, group []span) (whole span, components []session.Component) {
	whole.Name = name
	for _, s := range group {
		whole.crc32c = chunk.Combine(whole.crc32c, s.crc32c, s.size)
		whole.size, whole.parts = whole.size+s.size, whole.parts+s.parts
		components = append(components, s.Component)
	}
	return whole, components
}

// composeTemporary composes a group to a temporary object. If it exists, an earlier
// request made it.
func (p *parallel) composeTemporary(ctx context.Context, name string, group []span) (span, error) {
	whole, components := join(name, group)
	spec := p.temporary(name)
	o, err := p.request(ctx, spec, components, whole, false)
	if err != nil {
		return span{}, err
	}
	if o == nil {
		return span{}, fmt.Errorf("%w: another client wrote %s", session.ErrUnexpectedData, spec.URL())
	}
	whole.Generation = o.Generation
	return whole, nil
}

// composeLast makes the object at the destination. It replaces only the object that was
// seen there, unless the caller has a condition.
func (p *parallel) composeLast(ctx context.Context, level []span) (*session.Object, error) {
	spec := p.j.spec
	whole, components := join(spec.Object, level)
	for range maxForeign {
		if p.j.spec.IfGenerationMatch == nil {
			spec.IfGenerationMatch = new(p.parts.Seen)
		}
		o, err := p.request(ctx, spec, components, whole, p.parts.DeleteSources)
		if o != nil || err != nil {
			return o, err
		}
		if p.j.spec.Conditional() {
			return nil, p.failure(session.Reply{Op: session.OpCompose, Status: http.StatusPreconditionFailed, FromService: true}, session.ErrPrecondition, nil)
		}
		// Another client wrote the object meanwhile. As with any upload, the last one
		// wins.
		if ok, err := p.look(ctx); !ok || err != nil {
			return nil, errors.Join(err, fmt.Errorf("%w: the object at %s cannot be read", session.ErrOutcomeUnknown, spec.URL()))
		}
	}
	return nil, fmt.Errorf("%w: other clients keep writing %s", session.ErrOutcomeUnknown, spec.URL())
}

// request makes one object from others, until its outcome is known. The object is nil if
// the precondition does not hold.
func (p *parallel) request(ctx context.Context, spec Spec, components []session.Component, whole span, deleteSources bool) (*session.Object, error) {
	t := p.j.transfer
	for refreshed := false; ; {
		r, err := t.retry.repeat(ctx, func(ctx context.Context) session.Reply {
			return described(t.wire.compose(ctx, spec, components, whole.crc32c, deleteSources))
		})
		switch {
		case err != nil:
			return nil, t.stopped(ctx, err, nil)
		case r.Status == http.StatusOK && r.Object != nil:
			t.retry.succeeded()
			return r.Object, nil
		case r.Status == http.StatusUnauthorized && !refreshed:
			refreshed = true
			continue
		case r.Status == http.StatusPreconditionFailed, r.Status == http.StatusNotFound:
			// An earlier request may have made it, and its reply was lost.
			o, err := p.ours(ctx, spec, whole)
			switch {
			case o != nil || err != nil:
				return o, err
			case r.Status == http.StatusNotFound:
				return nil, p.forgetMissing(ctx, r)
			}
			return nil, p.forgetReplaced(ctx)
		default:
			return nil, t.retry.failure(r.Refusal(), nil)
		}
	}
}

// stat looks at an object until the service answers.
func (p *parallel) stat(ctx context.Context, spec Spec) (session.Reply, error) {
	t := p.j.transfer
	return t.retry.repeat(ctx, func(ctx context.Context) session.Reply { return described(t.wire.statOf(ctx, spec)) })
}

// described returns r, without its status if it should describe an object and does not:
// it was cut, or is not from the service.
func described(r session.Reply) session.Reply {
	if r.Status == http.StatusOK && r.Object == nil {
		r.Status, r.Err = 0, errNoObject
	}
	return r
}

var errNoObject = errors.New("the reply does not describe the object")

// ours returns the object of spec if this upload made it.
func (p *parallel) ours(ctx context.Context, spec Spec, whole span) (*session.Object, error) {
	t := p.j.transfer
	r, err := p.stat(ctx, spec)
	if err != nil {
		return nil, t.stopped(ctx, err, nil)
	}
	o := r.Object
	switch {
	case r.Status == http.StatusNotFound:
		return nil, nil
	case r.Status != http.StatusOK:
		return nil, t.retry.failure(r.Refusal(), nil) // it may be there
	case !whole.is(o):
		return nil, nil
	}
	if spec.IfGenerationMatch != nil && o.Generation <= *spec.IfGenerationMatch {
		return nil, nil // it was there before
	}
	return o, nil
}

// composed returns the object at the destination if an earlier call composed it.
func (p *parallel) composed(ctx context.Context) (*session.Object, error) {
	spec := p.j.spec
	if spec.IfGenerationMatch == nil {
		spec.IfGenerationMatch = new(p.parts.Seen)
	}
	return p.ours(ctx, spec, span{size: p.size, crc32c: p.crc32c(), parts: int64(len(p.pieces))})
}

// forgetMissing notes which temporary objects do not exist, so that they are sent again.
// r is the reply that a component was not found.
func (p *parallel) forgetMissing(ctx context.Context, r session.Reply) error {
	t, missing := p.j.transfer, 0
	for _, c := range p.pieces {
		spec := p.temporary(c.name())
		s, err := p.stat(ctx, spec)
		switch {
		case err != nil:
			return t.stopped(ctx, err, nil)
		case s.Status == http.StatusOK && s.Object != nil && s.Object.Generation == c.object:
			continue
		case s.Status == http.StatusOK:
			return fmt.Errorf("%w: another client wrote %s", session.ErrUnexpectedData, spec.URL())
		case s.Status != http.StatusNotFound:
			return t.retry.failure(s.Refusal(), nil)
		}
		missing++
		c.forget()
	}
	if missing == 0 {
		refused := r.Refusal()
		refused.Kind = session.ErrNotFound
		return t.retry.failure(refused, nil)
	}
	return errPartMissing
}

// forgetReplaced looks whether a temporary object was replaced, which fails a
// precondition, too.
func (p *parallel) forgetReplaced(ctx context.Context) error {
	err := p.forgetMissing(ctx, session.Reply{Op: session.OpCompose, Status: http.StatusNotFound, FromService: true})
	if errors.Is(err, session.ErrNotFound) {
		return nil // it is the destination's
	}
	return err
}

// failure returns the error of a reply.
func (p *parallel) failure(r session.Reply, kind error, cause error) error {
	refused := r.Refusal()
	refused.Kind, refused.Offset = kind, p.size
	return p.j.transfer.retry.failure(refused, cause)
}

// verifyComposed compares the finished object with the source.
func (j *job) verifyComposed(object *session.Object, crc32c uint32) error {
	o, err := verifyObject(*object, j.spec, j.file.src.Size(), crc32c)
	if err != nil {
		return j.transfer.retry.failure(&session.Error{Op: session.OpCompose, Status: 200, Kind: session.ErrUnexpectedData}, err)
	}
	j.update(func(r *Result) { r.Object = o })
	j.events.progress()
	return nil
}
