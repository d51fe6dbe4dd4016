package upload

import (
	"context"
	"fmt"
	"io"

	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

func uploadReader(ctx context.Context, c *call, r io.Reader) error {
	if c.rule != SkipNothing && c.rule != SkipExisting {
		return fmt.Errorf("%w: a stream cannot be compared with an object to skip it", session.ErrInvalid)
	}
	if err := c.validate(); err != nil {
		return err
	}
	if c.u.opts.Spool != nil {
		return sendSpooled(ctx, c, r)
	}
	newStream := source.NewStream
	if c.spec.Gzip {
		newStream = c.u.compressor.NewStream
		r = c.expect.Reader(r)
		c.expect.Size = nil // it is the size before compression
	}
	stream, err := newStream(r, c.u.memory, c.u.opts.Window)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := uploadStream(ctx, c, stream); err != nil {
		return err
	}
	c.progress.source.Store(stream.Offsets()) // for the Result
	return nil
}

func uploadStream(ctx context.Context, c *call, stream *source.Stream) error {
	// Check the precondition first: nothing is read if it does not hold. The run reports
	// that, or a missing bucket.
	if err := c.precondition.Look(ctx, c.wire()); err != nil {
		return err
	}
	var whole bool
	var noticed <-chan struct{}
	divisible, why := c.undivided()
	if c.precondition.Unmet() == nil {
		if divisible {
			noticed = holdStream(&c.u.opts, stream)
		}
		first, all, err := stream.Head(ctx)
		if err != nil {
			return engine.SourceFailed(ctx, err)
		}
		c.detect(func() []byte { return first })
		whole = all
	}
	c.setSpec(c.spec.Resolved())
	switch {
	case whole:
		return c.insertStream(ctx, stream)
	case c.precondition.Unmet() != nil:
	case !divisible:
		c.reportUndivided("stream", why)
	default:
		ctx := ctx
		if c.interrupt == nil { // for Cancel
			ctx, c.interrupt = context.WithCancelCause(ctx)
			defer c.interrupt(nil)
		}
		p, err := divideStream(ctx, c, stream, noticed)
		switch {
		case err != nil:
			return err
		case p != nil:
			return p.send(ctx)
		}
		stream.Continue()
	}
	return c.uploadOnce(ctx, stream)
}

// insertStream uploads a stream that ends within its first bytes.
func (c *call) insertStream(ctx context.Context, stream *source.Stream) error {
	// All bytes are in memory. Send them in one request, like a small file.
	loaded, err := stream.Load(ctx)
	if err != nil {
		return engine.SourceFailed(ctx, err)
	}
	c.requests.Pos.Size.Store(loaded.Size)
	return c.insert(ctx, stream, loaded, nil)
}

// uploadWritten uploads the content of a Writer: first, a file and the bytes after
// it, or the bytes of r if first is nil.
func uploadWritten(ctx context.Context, c *call, first *firstFile, r io.Reader) error {
	if c.rule != SkipNothing {
		return fmt.Errorf("%w: a Writer cannot be skipped, because Write would fail: set Spec.IfGenerationMatch", session.ErrInvalid)
	}
	if first == nil {
		return uploadReader(ctx, c, r)
	}
	if err := c.validate(); err != nil {
		return err
	}
	file, err := source.NewFile(first.src, "the file", c.reread)
	if err != nil {
		return err
	}
	stream, err := source.NewStream(r, c.u.memory, c.u.opts.Window)
	if err != nil {
		return err
	}
	defer stream.Close()
	c.detect(file.Head)
	c.setSpec(c.spec.Resolved())
	content := source.NewFileThenStream(file, stream, first.tail)
	if err := c.precondition.Look(ctx, c.wire()); err != nil {
		return err
	}
	if c.precondition.Unmet() == nil { // otherwise the file is not read
		if err := c.settled(ctx, file); err != nil {
			return err
		}
	}
	return c.uploadOnce(ctx, content)
}

// firstFile is a file at the beginning of the content of a Writer.
type firstFile struct {
	src  *sourcefile.File
	tail chan []byte // receives its last bytes when the bytes before are committed
}
