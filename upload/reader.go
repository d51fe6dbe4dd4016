package upload

import (
	"context"
	"fmt"
	"io"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

func (j *job) uploadReader(ctx context.Context, r io.Reader) error {
	if j.rule != SkipNothing && j.rule != SkipExisting {
		return fmt.Errorf("%w: a stream cannot be compared with an object to skip it", session.ErrInvalid)
	}
	if err := j.validate(); err != nil {
		return err
	}
	if j.u.opts.Spool.used() {
		return j.sendSpooled(ctx, r)
	}
	newStream := source.NewStream
	if j.spec.Gzip {
		newStream = j.u.compressor.NewStream
		r = j.expect.Reader(r)
		j.expect.Size = nil // it is the size before compression
	}
	stream, err := newStream(r, j.u.memory, j.u.opts.Window)
	if err != nil {
		return err
	}
	defer stream.Close()
	if err := j.uploadStream(ctx, stream); err != nil {
		return err
	}
	j.progress.source.Store(stream.Offsets()) // for the Result
	return nil
}

func (j *job) uploadStream(ctx context.Context, stream *source.Stream) error {
	// Check the precondition first: nothing is read if it does not hold. The run reports
	// that, or a missing bucket.
	if err := j.precondition.Look(ctx, j.wire()); err != nil {
		return err
	}
	var whole bool
	if j.precondition.Unmet() == nil {
		first, all, err := stream.Head(ctx)
		if err != nil {
			return j.requests.SourceFailed(ctx, err)
		}
		j.detect(func() []byte { return first })
		whole = all
	}
	j.setSpec(j.spec.Resolved())
	if !whole {
		return j.uploadOnce(ctx, stream)
	}
	// All bytes are in memory. Send them in one request, like a small file.
	loaded, err := stream.Load(ctx)
	if err != nil {
		return j.requests.SourceFailed(ctx, err)
	}
	j.requests.Pos.Size.Store(loaded.Size)
	return j.insert(ctx, stream, loaded)
}

// uploadWritten uploads the content of a Writer: first, a file and the bytes after
// it, or the bytes of r if first is nil.
func (j *job) uploadWritten(ctx context.Context, first *firstFile, r io.Reader) error {
	if j.rule != SkipNothing {
		return fmt.Errorf("%w: a Writer cannot be skipped, because Write would fail: set Spec.IfGenerationMatch", session.ErrInvalid)
	}
	if first == nil {
		return j.uploadReader(ctx, r)
	}
	if err := j.validate(); err != nil {
		return err
	}
	file, err := source.NewFile(first.src, "the file", j.reread)
	if err != nil {
		return err
	}
	stream, err := source.NewStream(r, j.u.memory, j.u.opts.Window)
	if err != nil {
		return err
	}
	defer stream.Close()
	j.detect(file.Head)
	j.setSpec(j.spec.Resolved())
	content := source.NewFileThenStream(file, stream, first.tail)
	if err := j.precondition.Look(ctx, j.wire()); err != nil {
		return err
	}
	if j.precondition.Unmet() == nil { // otherwise the file is not read
		if err := j.settle(ctx, file); err != nil {
			return err
		}
	}
	return j.uploadOnce(ctx, content)
}
