package upload

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
	"gcsup/session"
)

// uploadReader uploads a stream.
func (j *job) uploadReader(ctx context.Context, r io.Reader) error {
	if err := j.skipsStream(); err != nil {
		return err
	}
	if err := j.validate(); err != nil {
		return err
	}
	var zipped *gzipReader
	if j.spec.Gzip {
		zipped = j.u.compressor.reader(j.expect.reader(r))
		j.expect.size = nil // it is the size before compression
		r = zipped
	}
	stream, err := j.u.memory.NewStream(r, j.u.opts.Window)
	if err != nil {
		return err
	}
	content := &streamContent{stream: stream}
	defer content.close()
	if zipped != nil {
		defer zipped.stop() // before close, which waits for Read
	}
	err = j.uploadStream(ctx, content, zipped)
	if zipped != nil && err == nil {
		j.progress.source.reset(zipped.read, sourceMark{made: zipped.made, read: zipped.read}) // for the Result
	}
	return err
}

// uploadStream uploads a stream. The stream is compressed if zipped is not nil.
func (j *job) uploadStream(ctx context.Context, content *streamContent, zipped *gzipReader) error {
	// Check the precondition first: nothing is read if it does not hold. The run reports
	// that, or a missing bucket.
	if err := j.precondition.look(ctx, j.spec); err != nil {
		return err
	}
	var whole bool
	if j.precondition.unmet() == nil {
		first, all, err := content.stream.Head(ctx)
		if err != nil {
			return j.requests.sourceFailed(ctx, err)
		}
		if zipped != nil {
			first = zipped.first()
		}
		if j.detects() {
			j.detect(first[:min(len(first), chunk.HeadSize)])
		}
		whole = all
	}
	j.setSpec(j.spec.Resolved())
	if whole {
		return j.uploadShort(ctx, content)
	}
	return j.uploadRun(ctx, j.newTransfer(content, unrecorded{}), -1)
}

// uploadShort uploads a stream whose bytes are all in memory, in one request, like a
// small file.
func (j *job) uploadShort(ctx context.Context, content *streamContent) error {
	p, err := content.stream.Next(ctx)
	if err != nil {
		return j.requests.sourceFailed(ctx, err)
	}
	content.cur = &p
	j.requests.pos.size.Store(p.To)
	body := func() io.Reader { return p.Reader(0, p.To) }
	return j.insert(ctx, content, body, p.To, p.CRC32C)
}

// uploadWritten uploads the content of a Writer: first, a file and the bytes after
// it, or the bytes of r if first is nil.
func (j *job) uploadWritten(ctx context.Context, first *fileThenStream, r io.Reader) error {
	if j.u.skip != nil {
		return fmt.Errorf("%w: a Writer cannot be skipped, because Write would fail: set Spec.IfGenerationMatch", session.ErrInvalid)
	}
	if first == nil {
		return j.uploadReader(ctx, r)
	}
	if err := j.validate(); err != nil {
		return err
	}
	stream, err := j.u.memory.NewStream(r, j.u.opts.Window)
	if err != nil {
		return err
	}
	content := &streamContent{stream: stream}
	defer content.close()
	first.stream, first.file.reread = content, j.reread
	j.detectSource(first.file.src)
	j.setSpec(j.spec.Resolved())
	if err := first.settle(ctx, j); err != nil {
		return err
	}
	return j.uploadRun(ctx, j.newTransfer(first, unrecorded{}), -1)
}
