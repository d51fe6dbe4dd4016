package parts

import (
	"context"
	"fmt"
	"slices"

	"gcsup/chunk"
	"gcsup/internal/bucket"
	"gcsup/internal/checksum"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// composer is the joiner for upload.ByCompose. It uploads each part as a temporary object, through a
// session of its own, and composes these objects.
type composer struct{ file *dividedFile }

// span is a temporary object: of one part, or composed from several.
type span struct {
	bucket.Component
	size   int64
	crc32c uint32
	parts  int64              // how many it was composed from, as in Object.ComponentCount
	from   []bucket.Component // nil if it is a part
}

// madeSize returns the size of the temporary object of a finished part. What an earlier process left of a stream does
// not have it.
func (c *composer) madeSize(ctx context.Context, p *filePart) (int64, error) {
	if c.file.size > 0 {
		return p.rng.Len(), nil
	}
	a, err := p.Ask(ctx, decide.Request{}, p.Stat)
	if err != nil || a.Object == nil {
		return 0, err
	}
	return a.Object.Size, nil
}

// next returns the multipart upload to the next temporary object of a stream, without parts, or nil if there is none.
func (c *composer) next() *multipartUpload {
	if c.file.common().Upload.IsZero() {
		return nil
	}
	return &multipartUpload{file: c.file.multipartTo(len(c.file.parts), c.file.common().Upload)}
}

// multipartTo returns what a multipart upload to the temporary object i sends.
func (f *dividedFile) multipartTo(i int, uri session.URI) *dividedFile {
	spec := f.temporary(f.partName(i))
	spec.IfGenerationMatch = nil // which a multipart upload does not support
	d := f.Division
	d.Wire, d.Journal, d.Expect = f.Wire.To(spec), &saved.Journal{}, engine.Expectation{}
	d.Journal.Begin(chunk.Identity{}, &state.Parts{Size: chunk.Granularity, Upload: uri})
	return &dividedFile{Division: d, size: -1}
}

// begin does nothing: each part has its own session, which its record saves.
func (c *composer) begin(context.Context) (*session.Object, error) { return nil, nil }

// join composes the object at the destination from the temporary objects. If one
// request cannot compose all of them, it first composes groups.
func (c *composer) join(ctx context.Context) (*session.Object, error) {
	level, err := c.reduce(c.spans(), func(g span) (span, error) { return c.composeTemporary(ctx, g) })
	if err != nil {
		return nil, err
	}
	return c.composeLast(ctx, level)
}

// spans returns the temporary objects of the parts.
func (c *composer) spans() (level []span) {
	for _, p := range c.file.parts {
		s := p.state()
		level = append(level, span{bucket.Component{Name: c.file.partName(p.i), Generation: s.Generation}, p.rng.Len(), s.CRC32C, 1, nil})
	}
	return level
}

// composed returns the object with a name that is composed from spans.
func composed(name string, spans []span) (g span) {
	g.Name = name
	for _, s := range spans {
		g.crc32c = checksum.Combine(g.crc32c, s.crc32c, s.size)
		g.size, g.parts = g.size+s.size, g.parts+s.parts
		g.from = append(g.from, s.Component)
	}
	return g
}

// reduce replaces groups of the temporary objects of level by what f makes of each group, until one request can
// compose the rest.
func (c *composer) reduce(level []span, f func(span) (span, error)) ([]span, error) {
	for depth := 1; len(level) > bucket.ComposeMax; depth++ {
		var above []span
		for spans := range slices.Chunk(level, bucket.ComposeMax) {
			s, err := f(composed(fmt.Sprintf("%sc%d-%04d", c.file.common().Prefix, depth, len(above)), spans))
			if err != nil {
				return nil, err
			}
			above = append(above, s)
		}
		level = above
	}
	return level, nil
}

// matches reports whether o has the bytes of s, composed from as many parts.
func (s *span) matches(o *session.Object) bool {
	return o.Size == s.size && o.HasCRC32C && o.CRC32C == s.crc32c && o.ComponentCount == s.parts
}

// composeTemporary composes a group into a temporary object, unless an earlier
// request has made it.
func (c *composer) composeTemporary(ctx context.Context, g span) (span, error) {
	spec := c.file.temporary(g.Name)
	by := &joining{
		file: c.file, spec: spec, state: decide.Join{Temporary: true}, made: g.matches, inspect: c.inspect, size: g.size, crc32c: g.crc32c,
		join: func(ctx context.Context) session.Reply {
			return compose(ctx, c.file.Wire.To(spec), g, false)
		},
	}
	o, err := by.hold(ctx)
	if err == nil {
		g.Generation = o.Generation
	}
	return g, err
}

// composeLast composes the object at the destination. The precondition is that of the
// caller. If there is none, it is that the object at the destination has not changed. If
// another client changed it, it is replaced, as by any upload without a precondition.
func (c *composer) composeLast(ctx context.Context, level []span) (*session.Object, error) {
	spec := c.file.Wire.Spec
	g := composed(spec.Object, level)
	pinned := spec.IfGenerationMatch != nil
	by := &joining{
		file: c.file, spec: spec, state: decide.Join{Seen: c.file.common().Seen, Pinned: pinned, MayExist: c.file.common().Joining},
		made: c.file.made, inspect: c.inspect, size: c.file.size, crc32c: g.crc32c,
		join: func(ctx context.Context) session.Reply {
			if !pinned {
				spec.IfGenerationMatch = new(c.file.common().Seen)
			}
			return compose(ctx, c.file.Wire.To(spec), g, c.file.common().DeleteSources)
		},
	}
	return by.hold(ctx)
}

// compose makes the object of x from those of g.
func compose(ctx context.Context, x *engine.Requester, g span, deleteSources bool) session.Reply {
	return x.Plain(ctx, bucket.OpCompose, func(ctx context.Context, c *session.Client) session.Reply {
		return bucket.Compose(ctx, c, x.Spec, g.from, g.crc32c, deleteSources)
	})
}

// inspect reads the metadata of the temporary objects of the parts, and resets the parts that
// have none. The error is then errPartMissing. A second answer must confirm that one is missing
// or differs.
func (c *composer) inspect(ctx context.Context) (err error) {
	var gone []*filePart
	for _, p := range c.file.parts {
		generation := p.state().Generation
		a, err := c.file.Wire.Ask(ctx, decide.Request{Known: true}, func(ctx context.Context) session.Reply {
			r := c.file.Wire.To(p.Spec).Stat(ctx)
			r.Differs = r.Object != nil && r.Object.Generation != generation
			return r
		})
		switch {
		case err != nil:
			return err
		case a.Step == decide.Absent:
			gone = append(gone, p)
		case a.Object.Generation != generation:
			return fmt.Errorf("%w: another client wrote %s", session.ErrUnexpectedData, p.Spec.URL())
		}
	}
	for _, p := range gone {
		p.forget()
		err = errPartMissing
	}
	return err
}

// committed asks the service for the committed offset of each part.
func (c *composer) committed(ctx context.Context) (all engine.Held, err error) {
	all.State = engine.HeldGone
	for _, p := range c.file.parts {
		s, held := p.state(), engine.Held{State: engine.HeldFinished}
		if !s.Finished() {
			if s.URI.IsZero() {
				continue
			}
			if held, err = engine.Inquire(ctx, c.file.Wire, s.URI, true); err != nil {
				return engine.Held{}, err
			}
		}
		switch held.State {
		case engine.HeldOpen:
			all.State, all.Committed = engine.HeldOpen, all.Committed+held.Committed
		case engine.HeldFinished:
			n, err := c.madeSize(ctx, p)
			if err != nil {
				return engine.Held{}, err
			}
			all.State, all.Committed = engine.HeldOpen, all.Committed+n
		}
	}
	if next := c.next(); next != nil {
		held, err := next.committed(ctx)
		if err != nil {
			return engine.Held{}, err
		}
		if held.State == engine.HeldOpen {
			all.State, all.Committed = engine.HeldOpen, all.Committed+held.Committed
		}
	}
	return all, nil
}
