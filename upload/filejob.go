package upload

import (
	"context"
	"fmt"

	"gcsup/chunk"
	"gcsup/session"
)

// maxObject is the service's limit: https://cloud.google.com/storage/quotas#objects.
const maxObject = 5 << 40

// uploadFile uploads a file.
func (j *job) uploadFile(ctx context.Context, path string) error {
	if err := j.validate(); err != nil {
		return err
	}
	if err := j.open(path); err != nil {
		return err
	}
	defer j.closeSource()
	j.detectSource(j.file.src)
	if skipped, err := j.skipped(ctx); skipped || err != nil {
		return err
	}
	want := j.spec
	if j.u.opts.Store == nil {
		j.identify("", want.Resolved())
		return j.fresh(ctx)
	}
	return j.uploadSavableFile(ctx, path)
}

// uploadListed uploads a file of a batch, unless it is skipped.
func (j *job) uploadListed(ctx context.Context, b *filesCall, job Job) error {
	if err := j.validate(); err != nil {
		return err
	}
	if err := j.open(job.Path); err != nil {
		return err
	}
	defer j.closeSource()
	src := j.file.src
	if b.opts.PreservePOSIX {
		j.spec = withPOSIX(j.spec, src.Info())
	}
	j.detectSource(j.file.src)
	j.writeTime()
	want := j.spec
	j.identify("", want.Resolved())
	if skipped, err := j.skip(ctx, b.opts.Skip, job.Listed, job.Object); skipped || err != nil {
		return err
	}
	if b.opts.DryRun {
		return j.plan(ctx)
	}
	if j.small() {
		size := min(src.Size(), b.opts.Memory)
		if err := b.memory.Acquire(ctx, size); err != nil {
			return j.transfer.interrupted(ctx, nil)
		}
		defer b.memory.Release(size)
		if len(b.saved) == 0 {
			return j.fresh(ctx)
		}
	}
	if j.u.opts.Store == nil {
		return j.fresh(ctx)
	}
	j.spec = want
	return j.uploadSavableFile(ctx, job.Path)
}

// timed reports whether the upload writes the modification time of its file.
func (j *job) timed() bool { return j.batch != nil && j.batch.Skip == SkipSameTime }

// plan ends the job of a dry run: it checks the precondition and sends nothing.
func (j *job) plan(ctx context.Context) error {
	if err := j.precondition.check(ctx); err != nil {
		return err
	}
	if err := j.precondition.unmet(); err != nil {
		return err
	}
	j.result.update(func(r *Result) { r.Planned = true })
	return nil
}

// open opens the source.
func (j *job) open(path string) error {
	j.result.update(func(r *Result) { r.Path = path })
	j.events.source(path)
	src, err := chunk.Open(path)
	if err != nil {
		return err
	}
	if err := j.use(src, path); err != nil {
		_ = src.Close()
		return err
	}
	return nil
}

// use makes src the source of the job, and notes what it is before a byte of it is
// read. name is for errors.
func (j *job) use(src *chunk.Source, name string) error {
	identity, err := src.Identity()
	switch {
	case err != nil:
		return err
	case identity.Size != src.Size():
		return fmt.Errorf("%w: %s is being written to", session.ErrSourceChanged, name)
	case src.Size() > maxObject:
		return fmt.Errorf("%w: %s has %d bytes, an object at most %d (5 TiB)", session.ErrInvalid, name, src.Size(), int64(maxObject))
	}
	if err := j.transfer.expect.sized(src.Size()); err != nil {
		return err
	}
	j.file = &fileContent{src: src, identity: identity, sum: chunk.NewPrefixCRC(chunk.Checkpoint{}), reread: j.reread}
	j.transfer.content = j.file
	j.result.update(func(r *Result) { r.Source = identity })
	j.transfer.pos.size.Store(src.Size())
	j.transfer.retry.stake(src.Size())
	return nil
}

// closeSource ends what reads the source, and closes it.
func (j *job) closeSource() {
	if j.gzip != nil {
		j.gzip.close()
	}
	_ = j.file.src.Close()
}

// reread notes that bytes of the source were read only for their checksum. The
// step that reaches the end is not reported: another event follows at once.
func (j *job) reread(n, offset, end int64) {
	j.result.tally.reread.Add(n)
	if offset < end {
		j.events.comparing(offset, end)
	}
}
