package upload

import (
	"bytes"
	"context"
	"io"

	"gcsup/session"
)

// compress sets whether the file is compressed while it is sent.
func (j *job) compress(on bool) {
	switch {
	case on && j.gzip == nil:
		j.gzip = newGzipContent(j.file, j.u, &j.progress.source)
		j.requests.pos.size.Store(-1)
		j.expect.size = nil // it is the size of the file, which was checked
	case !on && j.gzip != nil:
		j.gzip.close()
		j.gzip = nil
		j.progress.source.disable()
		j.requests.pos.size.Store(j.file.src.Size())
	}
}

// freshGzip compresses and uploads the file from byte 0, in a single request if the
// compressed size is small enough.
func (j *job) freshGzip(ctx context.Context) error {
	j.gzip.restart()
	j.setSpec(withMetadata(j.spec, session.UncompressedSizeKey, j.file.src.Size()))
	if err := j.precondition.look(ctx, j.spec); err != nil {
		return err
	}
	if j.precondition.unmet() != nil {
		// Start a session: its reply also shows whether the bucket is missing.
		return j.uploadRun(ctx, j.newTransfer(j.gzip, unrecorded{}), -1)
	}
	body, err := j.compressWhole(ctx)
	if err != nil {
		return err
	}
	if body != nil && j.u.single(j.gzip.size) {
		return j.insert(ctx, j.gzip, body, j.gzip.size, j.gzip.crc32c)
	}
	if err := j.settle(ctx); err != nil {
		return err
	}
	return j.uploadNew(ctx, -1)
}

// compressWhole compresses the file in memory, and returns a function that returns a
// new reader of the compressed bytes at each call. The function is nil if they do not
// fit in memory.
func (j *job) compressWhole(ctx context.Context) (body func() io.Reader, err error) {
	if j.small() {
		j.file.racy = j.file.src.Racy(j.file.identity)
		data, err := j.gzip.load(ctx)
		if err != nil {
			return nil, j.requests.sourceFailed(ctx, err)
		}
		return func() io.Reader { return bytes.NewReader(data) }, nil
	}
	if err := j.settle(ctx); err != nil {
		return nil, err
	}
	body, err = j.gzip.alone(ctx)
	if err == nil && body != nil {
		err = j.gzip.unchanged(ctx)
	}
	if err != nil {
		return nil, j.requests.sourceFailed(ctx, err)
	}
	return body, nil
}

// compressAgain starts over because this version of the program compresses the file
// differently. It uses the options of the first run, as after the loss of a session, whose URI
// is uri.
func (j *job) compressAgain(ctx context.Context, uri session.URI, why *otherCompressor) error {
	j.want = j.spec
	j.unresume()
	return j.startOver(ctx, why.Error(), uri)
}
