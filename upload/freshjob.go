package upload

import (
	"context"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// smallLimit is the maximum size of a file that is sent in one request. The request
// cannot be resumed, but carries the checksum.
const smallLimit = 8 << 20

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
			if done, err := parts.engine.send(ctx, j); done || err != nil {
				return err
			}
		}
		return j.uploadNew(ctx, size)
	}
	// A single request is not saved and not resumed.
	loaded, err := j.file.Load(ctx)
	if err != nil {
		return j.requests.sourceFailed(ctx, err)
	}
	if err := j.precondition.look(ctx, j.wire()); err != nil {
		return err
	}
	if j.precondition.unmet() != nil {
		// Start a session: its reply also shows whether the bucket is missing.
		return j.uploadRun(ctx, j.newTransfer(j.source, unrecorded{}), size)
	}
	return j.insert(ctx, j.file, loaded)
}

// uploadNew uploads the file through a new session. size is -1 if it is not known.
func (j *job) uploadNew(ctx context.Context, size int64) error {
	var kept record = unrecorded{}
	if j.journal != nil {
		kept = j.journal.recordFile(j.file, j.source)
	}
	return j.uploadRun(ctx, j.newTransfer(j.source, kept), size)
}

// insert uploads the whole of src, which is in memory, in a single request.
func (j *job) insert(ctx context.Context, src source.Content, c source.Loaded) error {
	if err := expectCRC32C(j.spec, c.CRC32C); err != nil {
		return err
	}
	if err := expectMD5(j.spec, c.Open(), c.Size); err != nil {
		return err
	}
	i := newInsertion(j.newTransfer(src, unrecorded{}), c, j.seen, func() {
		j.result.update(func(r *Result) { r.Skipped = SkipIdentical })
	})
	return j.upload(ctx, i.transfer, i, session.Action{Step: session.Begin})
}
