package upload

import (
	"context"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// compress sets whether the file is compressed while it is sent. It returns the
// compressed content, or nil.
func (j *job) compress(on bool) *source.Gzip {
	zipped, _ := j.source.(*source.Gzip)
	switch {
	case on && zipped == nil:
		zipped = source.NewGzip(j.file, j.u.compressor, j.u.memory, j.u.opts.Window)
		j.source = zipped
		j.progress.source.Store(zipped.Offsets())
		j.requests.pos.size.Store(-1)
		j.expect.size = nil // it is the size of the file, which was checked
	case !on && zipped != nil:
		zipped.Stop()
		j.source = j.file
		j.progress.source.Store(nil)
		j.requests.pos.size.Store(j.file.Total())
		return nil
	}
	return zipped
}

// freshGzip compresses and uploads the file from byte 0, in a single request if the
// compressed size is small enough.
func (j *job) freshGzip(ctx context.Context, zipped *source.Gzip) error {
	zipped.Restart()
	j.setSpec(withMetadata(j.spec, session.UncompressedSizeKey, j.file.Total()))
	if err := j.precondition.look(ctx, j.wire()); err != nil {
		return err
	}
	if j.precondition.unmet() != nil {
		// Start a session: its reply also shows whether the bucket is missing.
		return j.uploadRun(ctx, j.newTransfer(zipped, unrecorded{}), -1)
	}
	load := zipped.Load
	if !j.small() {
		if err := j.settle(ctx, j.file); err != nil {
			return err
		}
		load = zipped.LoadWindow
	}
	loaded, err := load(ctx)
	if err != nil {
		return j.requests.sourceFailed(ctx, err)
	}
	if loaded.Open != nil && j.u.single(loaded.Size) {
		return j.insert(ctx, zipped, loaded)
	}
	if err := j.settle(ctx, j.file); err != nil {
		return err
	}
	return j.uploadNew(ctx, -1)
}
