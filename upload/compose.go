package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// maxForeign bounds how often the last compose is tried if other clients keep replacing the
// object at the destination.
const maxForeign = 3

// span is a temporary object: of one part, or composed from several.
type span struct {
	session.Component
	size   int64
	crc32c uint32
	parts  int64 // how many it was composed from, as in Object.ComponentCount
}

// composer is the joiner for ByCompose. It uploads each part as a temporary object, through a
// session of its own, and composes these objects.
type composer struct{ *parallel }

var _ joiner = (*composer)(nil)

// plan checks whether the bucket allows temporary objects to be deleted, and what
// they cost. If the bucket has soft delete, the compose request itself will delete
// them, so that the bucket keeps no copies.
func (p *composer) plan(ctx context.Context) (why string, err error) {
	if why := p.j.u.whyUndivided(); why != "" {
		return why, nil
	}
	p.parts.Prefix = temporaryPrefix(p.j.result.known.ID)
	err = p.askBucket(ctx, func(f *bucketFacts) {
		why = f.forbidden()
		costs := f.costs(p.j.spec.StorageClass)
		switch {
		case why != "":
		case p.j.u.opts.Parallel.auto:
			why = cmp.Or(f.unknown(), costs)
		case costs != "" && !f.warned[costs]:
			f.warned[costs] = true
			p.warn(costs)
		}
		if f.config != nil && f.config.SoftDelete > 0 {
			p.parts.DeleteSources = true
			p.parts.Size = max(p.parts.Size, chunk.Ceil((p.size+session.ComposeMax-1)/session.ComposeMax)) // one compose
		}
	})
	return cmp.Or(why, p.j.u.whyUndivided()), err // the replies to the checks show the round-trip time
}

// begin does nothing: each part has its own session, which its record saves.
func (p *composer) begin(context.Context) (*session.Object, error) { return nil, nil }

// unsuitable returns the reason why the object cannot be composed, or "".
func (p *composer) unsuitable() string {
	s := p.j.spec
	switch {
	case !s.EncryptionKey.IsZero():
		return "it has a customer-supplied encryption key"
	case s.MD5 != nil:
		return "a composed object has no MD5"
	case s.IfGenerationNotMatch != nil || s.IfMetagenerationNotMatch != nil:
		return "a compose has no not-match conditions"
	}
	return ""
}

// temporaryPrefix returns a new prefix for the names of temporary objects. id is the
// ID of the upload, or "" if the upload is not saved.
func temporaryPrefix(id string) string {
	if id == "" {
		id = "upload"
	}
	return "gcsup-parts/" + id + "-" + rand.Text() + "/"
}

// temporary returns the Spec of a temporary object. Its custom time is for lifecycle
// rules. Its storage class is that of the object, because a compose requires the same
// class.
func (p *composer) temporary(name string) Spec {
	s := p.j.spec
	return Spec{
		Bucket: s.Bucket, Object: name, IfGenerationMatch: new(int64), CustomTime: p.j.result.began.UTC().Truncate(time.Second),
		StorageClass: s.StorageClass, KMSKeyName: s.KMSKeyName, UserProject: s.UserProject,
		ContentType: "application/octet-stream",
	}
}

// join composes the object at the destination from the temporary objects. If one
// request cannot compose all of them, it first composes groups.
func (p *composer) join(ctx context.Context) (*session.Object, error) {
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

// group is a list of spans that are composed into one temporary object.
type group struct {
	name  string
	spans []span
}

// spans returns the temporary objects of the parts.
func (p *composer) spans() (level []span) {
	for _, c := range p.pieces {
		level = append(level, span{session.Component{Name: p.name(c), Generation: c.done.Generation}, c.rng.Len(), c.done.CRC32C, 1})
	}
	return level
}

// groups divides a level of the tree into groups. depth is 1 for the level of the
// parts.
func (p *composer) groups(level []span, depth int) (groups []group) {
	for spans := range slices.Chunk(level, session.ComposeMax) {
		groups = append(groups, group{fmt.Sprintf("%sc%d-%04d", p.parts.Prefix, depth, len(groups)), spans})
	}
	return groups
}

// matches reports whether o has the bytes of s, composed from as many parts.
func (s *span) matches(o *session.Object) bool {
	return o.Size == s.size && o.HasCRC32C && o.CRC32C == s.crc32c && o.ComponentCount == s.parts
}

// total returns the span that a group is composed into, and its components.
func total(name string, group []span) (whole span, components []session.Component) {
	whole.Name = name
	for _, s := range group {
		whole.crc32c = chunk.Combine(whole.crc32c, s.crc32c, s.size)
		whole.size, whole.parts = whole.size+s.size, whole.parts+s.parts
		components = append(components, s.Component)
	}
	return whole, components
}

// composeTemporary composes a group into a temporary object, unless an earlier
// request has made it.
func (p *composer) composeTemporary(ctx context.Context, name string, group []span) (span, error) {
	whole, components := total(name, group)
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

// composeLast composes the object at the destination. The precondition is that of the
// caller. If there is none, it is that the object at the destination has not changed.
func (p *composer) composeLast(ctx context.Context, level []span) (*session.Object, error) {
	spec := p.j.spec
	whole, components := total(spec.Object, level)
	for range maxForeign {
		if p.j.spec.IfGenerationMatch == nil {
			spec.IfGenerationMatch = new(p.parts.Seen)
		}
		o, err := p.request(ctx, spec, components, whole, p.parts.DeleteSources)
		if o != nil || err != nil {
			return o, err
		}
		if p.j.spec.Conditional() {
			return nil, p.failure(session.Reply{Op: session.OpCompose, Status: http.StatusPreconditionFailed, FromService: true}, session.ErrPrecondition)
		}
		// Another client wrote the object meanwhile. It is replaced, as by any upload
		// without a precondition.
		if ok, err := p.noteDestination(ctx); !ok || err != nil {
			return nil, errors.Join(err, fmt.Errorf("%w: the object at %s cannot be read", session.ErrOutcomeUnknown, spec.URL()))
		}
	}
	return nil, fmt.Errorf("%w: other clients keep writing %s", session.ErrOutcomeUnknown, spec.URL())
}

// request composes one object from others, and repeats the request until its outcome is known.
// The object is nil if the precondition fails.
func (p *composer) request(ctx context.Context, spec Spec, components []session.Component, whole span, deleteSources bool) (*session.Object, error) {
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
			// An earlier request may have made the object, if its reply was lost.
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

// described returns r. If r should describe an object and does not, because it was
// cut or is not from the service, described returns it as a lost reply.
func described(r session.Reply) session.Reply {
	if r.Status == http.StatusOK && r.Object == nil {
		r.Status, r.Err = 0, errNoObject
	}
	return r
}

var errNoObject = errors.New("the reply does not describe the object")

// ours returns the object of spec if this upload made it.
func (p *composer) ours(ctx context.Context, spec Spec, whole span) (*session.Object, error) {
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
		return nil, t.retry.failure(r.Refusal(), nil) // the object may exist
	case !whole.matches(o):
		return nil, nil
	}
	if spec.IfGenerationMatch != nil && o.Generation <= *spec.IfGenerationMatch {
		return nil, nil // it is older than this upload
	}
	return o, nil
}

// joined returns the object at the destination if an earlier request composed it.
func (p *composer) joined(ctx context.Context) (*session.Object, error) {
	spec := p.j.spec
	if spec.IfGenerationMatch == nil {
		spec.IfGenerationMatch = new(p.parts.Seen)
	}
	return p.ours(ctx, spec, span{size: p.size, crc32c: p.crc32c(), parts: int64(len(p.pieces))})
}

// forgetMissing resets the parts whose temporary objects do not exist, and returns
// errPartMissing. If all exist, the error is that of r, the reply that a component was not found.
func (p *composer) forgetMissing(ctx context.Context, r session.Reply) error {
	t, missing := p.j.transfer, 0
	for _, c := range p.pieces {
		spec := p.temporary(p.name(c))
		s, err := p.stat(ctx, spec)
		switch {
		case err != nil:
			return t.stopped(ctx, err, nil)
		case s.Status == http.StatusOK && s.Object != nil && s.Object.Generation == c.done.Generation:
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

// forgetReplaced is called after a precondition failed. It returns nil if all
// temporary objects are unchanged. The precondition that failed is then that of the
// destination.
func (p *composer) forgetReplaced(ctx context.Context) error {
	err := p.forgetMissing(ctx, session.Reply{Op: session.OpCompose, Status: http.StatusNotFound, FromService: true})
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// query asks the service for the committed offset of each part.
func (p *composer) query(ctx context.Context, token *session.Token) (Holding, error) {
	whole := Holding{State: SessionGone}
	for i, part := range token.Parts.List {
		n := token.Parts.Range(i, token.Source.Size).Len()
		switch {
		case part.Finished():
			whole.State, whole.Stored = SessionOpen, whole.Stored+n
			continue
		case part.URI.IsZero():
			continue
		}
		alone := *token
		alone.Parts, alone.URI, alone.Created = nil, part.URI, part.Created
		alone.Source.Size, alone.Committed, alone.HighWater = n, part.Committed, part.HighWater
		held, err := p.j.queryHolding(ctx, &alone)
		if err != nil {
			return Holding{}, err
		}
		switch held.State {
		case SessionOpen:
			whole.State, whole.Stored = SessionOpen, whole.Stored+held.Stored
		case SessionFinished:
			whole.State, whole.Stored = SessionOpen, whole.Stored+n
		}
	}
	return whole, nil
}
