package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// showEarlier makes the progress of a compressed file begin with what earlier calls sent of the file.
func (f *dividedFile) showEarlier() {
	read := f.Journal.Doc().Gzip.Source.Offset
	if f.size >= 0 {
		read = f.Zipped.Offsets().Size()
	}
	f.Zipped.Offsets().Resume(f.growth.end(), read)
}

// compress begins to make parts of a compressed file. Those that are known keep their sizes, so that the ones that the
// service has can be compared. If it has all of them, the file is not compressed again.
func (p *Upload) compress() error {
	if p.Zipped == nil {
		return nil
	}
	if p.complete = p.size >= 0 && p.Journal.Finished() == len(p.parts); p.complete {
		return nil
	}
	base, budget, most := p.common().Size, p.Memory.Budget(), p.Zipped.Most()
	return p.Zipped.Divide(multipart.MinPart, func(offset int64) (want, must int64) {
		before, size := p.partAt(offset)
		if size > 0 {
			return size, size
		}
		return streamPart(base, offset, budget), zippedPart(offset, most-offset, max(p.Options.most()-before, 1), budget)
	})
}

// partAt returns the size of the part of a compressed file that begins at offset, 0 if it is a new one, and the number
// of parts before it.
func (p *Upload) partAt(offset int64) (before int, size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, _ = slices.BinarySearch(p.ends, offset+1)
	switch {
	case before < len(p.ends):
		size = p.ends[before] - offset
	case p.end() < offset:
		before++ // it is compressed, and not added yet
	}
	return before, size
}

// nextCompressed returns part i of a compressed file, with its bytes unless the service has them. It is nil if there is
// none. The parts are made in their order. If they are not those of an earlier call, the error is that of differ.
func (p *Upload) nextCompressed(ctx context.Context, i int) (*filePart, error) {
	if p.complete {
		return nil, nil
	}
	body, rng, err := p.Zipped.NextPart(ctx)
	switch known := i < len(p.parts); {
	case err == io.EOF && (known || p.size >= 0 && p.size != p.end()):
		return nil, p.differ(ctx, p.end())
	case err == io.EOF:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.size = p.end()
		p.Wire.Pos.Size.Store(p.size)
		p.Journal.Compressed(func(g *state.GzipState) { g.Size = p.size })
		return nil, nil
	case err != nil:
		return nil, engine.SourceFailed(ctx, err)
	case known:
		return p.again(ctx, p.parts[i], body, rng)
	case p.size >= 0:
		body.Free()
		return nil, p.differ(ctx, p.end())
	}
	part, err := p.grow(i, rng)
	if err != nil {
		body.Free()
		return nil, err
	}
	part.body = body
	return part, nil
}

// again gives a part that is known its bytes, which were compressed again. If the service has it, they are only compared.
func (p *Upload) again(ctx context.Context, part *filePart, body *source.Part, rng chunk.Range) (*filePart, error) {
	crc32c, _ := body.CRC32C()
	if rng != part.rng || part.finished() && crc32c != part.state().CRC32C {
		body.Free()
		return nil, p.differ(ctx, rng.To)
	}
	if part.finished() {
		body.Free()
		p.Zipped.Skip(rng, p.end())
	} else {
		part.body = body
	}
	return part, nil
}

// differ returns the error for parts that are not those of an earlier call before an offset, see [source.Gzip.Differ].
func (p *Upload) differ(ctx context.Context, offset int64) error {
	return engine.SourceFailed(ctx, p.Zipped.Differ(ctx, offset))
}

// grow adds part i of a compressed file.
func (p *Upload) grow(i int, rng chunk.Range) (*filePart, error) {
	if i >= p.Options.most() {
		return nil, fmt.Errorf("%w: the compressed file has more than the %d bytes that its %d parts hold: start over (--restart)", session.ErrInvalid, rng.From, i)
	}
	_, read := p.Zipped.Compression(rng.To)
	p.Journal.Change(func(parts *state.Parts) { parts.List = append(parts.List, state.Part{Size: rng.Len()}) })
	p.Journal.Compressed(func(g *state.GzipState) { g.Source = read })
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.part(i, rng)
	p.parts, p.ends = append(p.parts, part), append(p.ends, rng.To)
	return part, nil
}

// savePart saves the size of part i of a compressed file before it is sent, so that no process finds parts at the service
// whose ranges it does not know. A save for another part may have included it. Unlike for other saves, the store must
// not keep an earlier saved upload: a resume would choose other sizes, and could not use more parts than it has.
func (f *dividedFile) savePart(ctx context.Context, i int) error {
	if f.Zipped == nil || f.Journal.Lists(i) {
		return nil
	}
	switch err := f.Journal.Persist(ctx); {
	case err == nil || errors.Is(err, state.ErrInUse):
		return err
	case ctx.Err() != nil:
		return engine.NewInterruption(ctx, nil)
	default:
		return fmt.Errorf("%w: %w", saved.ErrUnsaved, err)
	}
}
