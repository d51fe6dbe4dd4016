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
		j.source, j.transfer.content = zipped, zipped
		j.transfer.pos.source.Store(zipped.Offsets())
		j.transfer.pos.size.Store(-1)
		j.transfer.expect.size = nil // it is the size of the file, which was checked
	case !on && zipped != nil:
		zipped.Stop()
		j.source, j.transfer.content = j.file, j.file
		j.transfer.pos.source.Store(nil)
		j.transfer.pos.size.Store(j.file.Total())
		return nil
	}
	return zipped
}

// freshGzip compresses and uploads the file from byte 0, in a single request if the
// compressed size is small enough.
func (j *job) freshGzip(ctx context.Context, zipped *source.Gzip) error {
	zipped.Restart()
	j.setSpec(withMetadata(j.spec, session.UncompressedSizeKey, j.file.Total()))
	if err := j.precondition.check(ctx); err != nil {
		return err
	}
	if j.precondition.unmet() != nil {
		// Start a session: its reply also shows whether the bucket is missing.
		return j.upload(ctx, j.newRun(session.State{Size: -1}), session.Action{Step: session.Begin})
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
		return j.transfer.sourceFailed(ctx, err)
	}
	if loaded.Open != nil && j.u.single(loaded.Size) {
		return j.insert(ctx, loaded)
	}
	if err := j.settle(ctx, j.file); err != nil {
		return err
	}
	return j.uploadNew(ctx, -1)
}

// compressAgain starts over because this version of the program compresses the file
// differently. It uses the options of the first run, as after the loss of a session.
func (j *job) compressAgain(ctx context.Context, c conversation, why *source.OtherCompressor) error {
	var uri session.URI
	if r, ok := c.(*run); ok {
		uri = r.uri
	}
	j.want = j.spec
	j.unresume()
	return j.startOver(ctx, why.Error(), uri)
}
