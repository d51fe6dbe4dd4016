package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

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
	p.parts.Prefix = temporaryPrefix(p.j.result.label.get().id)
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

// temporaryDir is the beginning of the names of all temporary objects.
const temporaryDir = "gcsup-parts/"

// temporaryPrefix returns a new prefix for the names of temporary objects. id is the
// ID of the upload, or "" if the upload is not saved.
func temporaryPrefix(id string) string {
	if id == "" {
		id = "upload"
	}
	return temporaryDir + id + "-" + rand.Text() + "/"
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
	c := &joining{
		p: p.parallel, spec: spec, state: session.JoinState{Temporary: true}, made: whole.matches, whole: chunkSum{whole.size, whole.crc32c},
		join: func(ctx context.Context, _ int64) session.Reply {
			return p.j.wire().compose(ctx, spec, components, whole.crc32c, false)
		},
	}
	o, err := c.hold(ctx)
	if err == nil {
		whole.Generation = o.Generation
	}
	return whole, err
}

// composeLast composes the object at the destination. The precondition is that of the
// caller. If there is none, it is that the object at the destination has not changed. If
// another client changed it, it is replaced, as by any upload without a precondition.
func (p *composer) composeLast(ctx context.Context, level []span) (*session.Object, error) {
	spec := p.j.spec
	whole, components := total(spec.Object, level)
	pinned := spec.IfGenerationMatch != nil
	c := &joining{
		p: p.parallel, spec: spec, state: session.JoinState{Seen: p.parts.Seen, Pinned: pinned}, made: p.made, whole: chunkSum{p.size, whole.crc32c},
		join: func(ctx context.Context, seen int64) session.Reply {
			if !pinned {
				p.parts.Seen, spec.IfGenerationMatch = seen, &seen
			}
			return p.j.wire().compose(ctx, spec, components, whole.crc32c, p.parts.DeleteSources)
		},
	}
	return c.hold(ctx)
}

// made reports whether o is composed from the parts, and newer than the object that it
// replaces.
func (p *composer) made(o *session.Object) bool {
	older := p.parts.Seen
	if g := p.j.spec.IfGenerationMatch; g != nil {
		older = *g
	}
	whole := span{size: p.size, crc32c: p.crc32c(), parts: int64(len(p.pieces))}
	return whole.matches(o) && o.Generation > older
}

// inspect reads the metadata of the temporary objects of the parts, and resets the parts that
// have none. A second answer must confirm that one is missing or differs.
func (p *composer) inspect(ctx context.Context) (missing bool, err error) {
	var gone []*piece
	for _, c := range p.pieces {
		spec := p.temporary(p.name(c))
		a, err := p.j.requests.askKnown(ctx, func(ctx context.Context) session.Reply {
			r := p.j.wire().statOf(ctx, spec)
			r.Differs = r.Object != nil && r.Object.Generation != c.done.Generation
			return r
		})
		switch {
		case err != nil:
			return false, err
		case a.Step == session.Absent:
			gone = append(gone, c)
		case a.Object.Generation != c.done.Generation:
			return false, fmt.Errorf("%w: another client wrote %s", session.ErrUnexpectedData, spec.URL())
		}
	}
	p.forget(gone)
	return len(gone) > 0, nil
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
		held, err := p.j.inquire(ctx, part.URI, true)
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
