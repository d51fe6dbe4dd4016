package upload

import (
	"bytes"
	"context"

	"gcsup/chunk"
)

// Bytes uploads data, which must not change before Bytes has returned. Up to 8 MiB
// are sent in one request. More bytes get a session, which no other call can resume,
// because it is not saved in [Options.Store].
func (u *Uploader) Bytes(ctx context.Context, data []byte, spec Spec) (*Result, error) {
	j := u.newJob(ctx, spec, u.newBudget())
	return j.finish(ctx, j.uploadBytes(ctx, data))
}

// uploadBytes uploads data.
func (j *job) uploadBytes(ctx context.Context, data []byte) error {
	src := chunk.FromReaderAt(bytes.NewReader(data), int64(len(data)))
	if j.spec.Gzip || !j.u.single(src.Size()) {
		return j.uploadSource(ctx, src, "")
	}
	// Without a copy of data.
	if err := j.validate(); err != nil {
		return err
	}
	if err := j.use(src, "the source"); err != nil {
		return err
	}
	j.detectSource(src)
	if skipped, err := j.skipped(ctx); skipped || err != nil {
		return err
	}
	j.identify("", j.spec.Resolved())
	if _, err := j.file.sum.Write(data); err != nil {
		return j.transfer.sourceFailed(ctx, err)
	}
	return j.freshSmall(ctx, data)
}
