package upload

import (
	"context"
	"fmt"
	"path/filepath"

	"gcsup/session"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// maxObject is the service's limit: https://cloud.google.com/storage/quotas#objects.
const maxObject = 5 << 40

func (j *job) uploadFile(ctx context.Context, path string) error {
	if err := j.validate(); err != nil {
		return err
	}
	if err := j.open(path, ""); err != nil {
		return err
	}
	return j.uploadUnlisted(ctx, path, "")
}

// uploadSource uploads a source that has no path. identity is the one that the caller
// gave; "" if the upload is not saved.
func (j *job) uploadSource(ctx context.Context, file *source.File, identity string) error {
	if err := j.validate(); err != nil {
		return err
	}
	if err := j.use(file, "the source"); err != nil {
		return err
	}
	return j.uploadUnlisted(ctx, "", identity)
}

// uploadUnlisted uploads the open source, unless the rule of the call skips it.
func (j *job) uploadUnlisted(ctx context.Context, path, identity string) error {
	defer j.closeSource()
	j.detect(j.file.Head)
	if j.rule != SkipNothing {
		j.skipAgain = func(ctx context.Context) (bool, error) { return j.skipped(ctx, false, nil) }
		if skipped, err := j.skipAgain(ctx); skipped || err != nil {
			return j.thenRemove(ctx, err)
		}
	}
	return j.thenRemove(ctx, j.uploadOpen(ctx, path, identity))
}

// uploadListed uploads a file of a batch, unless it is skipped.
func (j *job) uploadListed(ctx context.Context, b *filesCall, job Job) error {
	j.result.label.set(func(n *names) { n.path = job.Path }) // it may end before it is opened
	if err := j.validate(); err != nil {
		return err
	}
	if !b.undecided(job) {
		// The limiter counts the time in which the file is read, too. It then finds how many
		// files a slow source needs.
		if err := j.awaitTurn(ctx); err != nil {
			return err
		}
	}
	if err := j.open(job.Path, job.Below); err != nil {
		return err
	}
	defer j.closeSource()
	if b.opts.PreservePOSIX {
		j.spec = withPOSIX(j.spec, j.file.Info())
	}
	j.detect(j.file.Head)
	if b.comparison != nil {
		return j.compare(ctx, b, job.Listed, job.Object)
	}
	skipped, err := j.skipped(ctx, job.Listed, job.Object)
	switch {
	case err != nil || skipped && b.opts.DryRun:
		return err
	case b.opts.DryRun:
		return j.plan(ctx)
	case skipped:
		return j.thenRemove(ctx, nil)
	}
	j.listed, j.skipAgain = job.Listed, func(ctx context.Context) (bool, error) { return j.skipped(ctx, false, nil) }
	if err := j.awaitTurn(ctx); err != nil {
		return err
	}
	// All files wait for their turn before they wait for memory. If one waited for them in the
	// other order, each could have what the other waits for.
	release, err := j.holdMemory(ctx, b)
	if err != nil {
		return err
	}
	defer release()
	path := job.Path
	if j.small() && len(b.saved) == 0 {
		path = "" // nothing is saved
	}
	return j.thenRemove(ctx, j.uploadOpen(ctx, path, ""))
}

// holdMemory waits for the memory of a small file, and returns a function that releases it.
func (j *job) holdMemory(ctx context.Context, b *filesCall) (release func(), err error) {
	if !j.small() {
		return func() {}, nil
	}
	size := j.file.Total()
	if j.turn != nil {
		size += connectionMemory(size)
	}
	size = min(size, b.opts.Memory)
	if err := b.memory.Acquire(ctx, size); err != nil {
		return nil, engine.NewInterruption(ctx, nil)
	}
	return func() { b.memory.Release(size) }, nil
}

// uploadOpen uploads the open source. If there is a store, the upload is saved, unless the
// source has neither a path nor an identity.
func (j *job) uploadOpen(ctx context.Context, path, identity string) error {
	switch {
	case j.u.opts.Store == nil || path == "" && identity == "":
		j.want = j.spec.Resolved()
		j.setSpec(j.want)
		return j.newUpload().run(ctx)
	case identity != "":
		return j.uploadSavable(ctx, j.u.hashID(j.spec, "identity", identity), "", identity)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	id, err := j.u.ID(path, j.spec)
	if err != nil {
		return err
	}
	return j.uploadSavable(ctx, id, abs, "")
}

// plan ends the job of a dry run: it checks the precondition and sends nothing.
func (j *job) plan(ctx context.Context) error {
	if err := j.precondition.Look(ctx, j.wire()); err != nil {
		return err
	}
	if err := j.precondition.Unmet(); err != nil {
		return err
	}
	j.result.update(func(r *Result) { r.Planned = true })
	return nil
}

// open opens the file at path. below is that of a Job.
func (j *job) open(path, below string) error {
	j.result.label.set(func(n *names) { n.path = path })
	if j.u.removal.wanted {
		if err := refuseLink(path); err != nil {
			return err
		}
	}
	src, err := j.u.openSource(path, below)
	if err != nil {
		return err
	}
	file, err := source.NewFile(src, path, j.reread)
	if err == nil && j.u.accept != nil {
		err = j.u.accept(path, file.Info())
	}
	if err == nil {
		err = j.use(file, path)
	}
	if err != nil {
		_ = src.Close()
	}
	return err
}

// use makes file the source of the job. name is for errors.
func (j *job) use(file *source.File, name string) error {
	size := file.Total()
	if size > maxObject {
		return fmt.Errorf("%w: %s has %d bytes, an object at most %d (5 TiB)", session.ErrInvalid, name, size, int64(maxObject))
	}
	if err := j.expect.Sized(size); err != nil {
		return err
	}
	j.file, j.source = file, file
	j.result.update(func(r *Result) { r.Source = file.Identity() })
	j.requests.Pos.Size.Store(size)
	j.requests.Retry.Stake(size)
	return nil
}

// settle settles a file, see [source.File.Settle]. An event reports that it takes long.
func (j *job) settle(ctx context.Context, file *source.File) error {
	if err := file.Settle(ctx, func() { j.events.post(Event{Kind: Settling}) }); err != nil {
		return j.requests.SourceFailed(ctx, err)
	}
	return nil
}

// closeSource ends what reads the source, and closes it.
func (j *job) closeSource() { j.source.Close() }

// reread notes that bytes of the source were read only for their checksum. The
// step that reaches the end is not reported: another event follows at once.
func (j *job) reread(n, offset, end int64) {
	j.result.tally.Reread.Add(n)
	if offset < end {
		j.events.comparing(offset, end)
	}
}
