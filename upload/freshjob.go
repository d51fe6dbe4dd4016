package upload

import (
	"context"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// small reports whether the file is sent in a single request.
func (j *job) small() bool { return j.u.single(j.file.Total()) }

// single reports whether a file of that size is sent in a single request.
func (u *Uploader) single(size int64) bool {
	for _, limit := range []int64{u.opts.ChunkSize, u.opts.CommitEvery.Bytes} {
		if limit > 0 && size > limit {
			return false
		}
	}
	return size <= smallLimit
}

// fresh uploads a file from byte 0.
func (j *job) fresh(ctx context.Context) error {
	if zipped := j.compress(j.spec.Gzip); zipped != nil {
		return j.freshGzip(ctx, zipped)
	}
	size := j.file.Total()
	if !j.small() {
		if err := j.settleForNew(ctx, j.file); err != nil {
			return err
		}
		if parts := j.u.opts.Parallel; parts != nil {
			if send, err := parts.engine.plan(ctx, j); err != nil {
				return err
			} else if send != nil {
				return send(ctx)
			}
		}
		return j.uploadNew(ctx, size)
	}
	// A single request is not saved and not resumed.
	loaded, err := j.file.Load(ctx)
	if err != nil {
		return j.transfer.sourceFailed(ctx, err)
	}
	if err := j.precondition.check(ctx); err != nil {
		return err
	}
	if j.precondition.unmet() != nil {
		// Start a session: its reply also shows whether the bucket is missing.
		return j.upload(ctx, j.newRun(session.State{Size: size}), session.Action{Step: session.Begin})
	}
	return j.insert(ctx, loaded)
}

// uploadNew uploads the file through a new session. size is -1 if it is not known.
func (j *job) uploadNew(ctx context.Context, size int64) error {
	if j.journal != nil {
		j.journal.next.file, j.journal.next.source = j.file, j.source
		j.transfer.record = j.journal
	}
	return j.upload(ctx, j.newRun(session.State{Size: size}), session.Action{Step: session.Begin})
}

// insert uploads a content in a single request.
func (j *job) insert(ctx context.Context, c source.Loaded) error {
	if err := j.transfer.expected(c.CRC32C); err != nil {
		return err
	}
	if err := j.transfer.expectedMD5(c.Open(), c.Size); err != nil {
		return err
	}
	return j.upload(ctx, j.newInsertion(c.Open, c.Size, c.CRC32C), session.Action{Step: session.Begin})
}
