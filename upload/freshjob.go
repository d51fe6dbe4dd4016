package upload

import (
	"bytes"
	"context"
	"io"

	"gcsup/session"
)

// small reports whether the file is sent in a single request.
func (j *job) small() bool { return j.u.single(j.file.src.Size()) }

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
	j.compress(j.spec.Gzip)
	if j.gzip != nil {
		return j.freshGzip(ctx)
	}
	size := j.file.src.Size()
	if !j.small() {
		if err := j.settleForNew(ctx); err != nil {
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
	// A single request is not saved and not resumed. A racy file is read twice, which is
	// faster than waiting.
	j.file.racy = j.file.src.Racy(j.file.identity)
	data, err := j.file.load(ctx)
	if err != nil {
		return j.requests.sourceFailed(ctx, err)
	}
	return j.freshSmall(ctx, data)
}

// freshSmall uploads data, the whole source, in a single request. data is already
// hashed.
func (j *job) freshSmall(ctx context.Context, data []byte) error {
	if err := j.precondition.check(ctx, j.spec); err != nil {
		return err
	}
	size := int64(len(data))
	if j.precondition.unmet() != nil {
		// Start a session: its reply also shows whether the bucket is missing.
		return j.uploadRun(ctx, j.newTransfer(j.content(), unrecorded{}), size)
	}
	return j.insert(ctx, j.file, func() io.Reader { return bytes.NewReader(data) }, size, j.file.sum.Sum())
}

// uploadNew uploads the file through a new session. size is -1 if it is not known.
func (j *job) uploadNew(ctx context.Context, size int64) error {
	var kept record = unrecorded{}
	if j.journal != nil {
		kept = j.journal.recordFile(j.file, j.gzip)
	}
	return j.uploadRun(ctx, j.newTransfer(j.content(), kept), size)
}

// insert uploads source, which has size bytes, in a single request. Each call of body
// returns a new reader of the bytes.
func (j *job) insert(ctx context.Context, source content, body func() io.Reader, size int64, crc32c uint32) error {
	if err := expectCRC32C(j.spec, crc32c); err != nil {
		return err
	}
	if err := expectMD5(j.spec, body(), size); err != nil {
		return err
	}
	t := j.newTransfer(source, unrecorded{})
	return j.upload(ctx, t, j.newInsertion(t, body, size, crc32c), session.Action{Step: session.Begin})
}
