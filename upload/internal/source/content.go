// Package source has the bytes of an upload, their checksums and their identity. A
// [File] can be read again, a [Stream] cannot, a [Gzip] compresses a file while it is
// sent, and a [FileThenStream] is a file whose end is the start of a stream.
//
// It knows nothing of requests, retries, events and saved uploads. Its errors are those
// of a source: [session.ErrSourceChanged], [chunk.ErrRead], and the cause of a context.
package source

import (
	"context"
	"fmt"
	"io"

	"gcsup/chunk"
)

// Content is the content of one object, as its sender needs it.
type Content interface {
	// Next returns the body of the next request, from offset. A body that is not the last
	// one ends at a multiple of 256 KiB and has at least 256 KiB. It has at most limit
	// bytes, or 256 KiB more if offset is between two multiples. Next blocks until the
	// body is known. Before it returns the last body, it checks that the source is
	// unchanged.
	Next(ctx context.Context, offset, limit int64) (Body, error)

	// Committed records that the server has committed all bytes before offset.
	Committed(offset int64)

	// Total returns the size, or -1 while it is not known.
	Total() int64

	// Replayable reports whether Next can still return the bytes from offset 0.
	Replayable() bool

	Checksums
}

// Checksums compares a content with what the server reports.
type Checksums interface {
	// Whole returns the size and the CRC32C of all bytes. It reads them if necessary. The
	// error of a stream that has not ended wraps [session.ErrUnexpectedData].
	Whole(ctx context.Context) (chunk.Checkpoint, error)

	// Compare compares a checksum with that of the content. With reread it reads any
	// number of bytes again. Otherwise the verdict is Unknown if that would take long.
	Compare(ctx context.Context, p Prefix, reread bool) (Verdict, error)

	// Changed returns an error if the source is the reason why its first n bytes are not
	// those of the server: it has changed, or it is a copy that differs.
	Changed(ctx context.Context, n int64) error
}

// Resumable is the content of a file, plain or compressed. Another process can continue
// to send it.
type Resumable interface {
	Content

	// CompareAll compares the file with all that an earlier process recorded of it, and
	// CompareLast with the bytes between the last two checkpoints.
	CompareAll(ctx context.Context, s Saved) error
	CompareLast(ctx context.Context, s Saved) error

	// Adopt continues the content that an earlier process sent, and Seek continues at its
	// committed offset, after it has read the bytes since the last checkpoint.
	Adopt(s Saved)
	Seek(ctx context.Context, offset int64) error

	// Restart makes Next start at offset 0 again, for a new session.
	Restart()

	// Newest returns the checkpoint to record before the bytes from sent to to are sent, or
	// zero. For a plain file it is one of bytes that were sent, not only read, because they
	// may differ in a copy. For a compressed file it is the one at to: a resume compares
	// every committed byte, because another version may compress differently.
	Newest(sent, to int64) chunk.Checkpoint

	// Compression returns the size of all compressed bytes, 0 while it is not known, and the
	// bytes of the file that are in those before to. Both are zero for a plain file.
	Compression(to int64) (size int64, source chunk.Checkpoint)

	// Identity and Copied are those of the file.
	Identity() chunk.Identity
	Copied() bool

	// Equal reads the file and reports whether the content has a size and a CRC32C. If the
	// file changes meanwhile, the error is the same as for an upload.
	Equal(ctx context.Context, c chunk.Checkpoint) (bool, error)

	// Close stops reading the file, and closes it.
	Close()
}

// Body is the body of one request.
type Body struct {
	chunk.Range
	io.Reader
	Last   bool
	CRC32C uint32 // of the whole content, with Last

	finish func() error // nil if there is nothing to finish
}

// Finish stops reading the body. It returns the error of the source.
func (b Body) Finish() error {
	if b.finish == nil {
		return nil
	}
	return b.finish()
}

// Loaded is a content whose bytes are all in memory.
type Loaded struct {
	Size   int64
	CRC32C uint32
	Open   func() io.Reader // returns a new reader of all bytes
}

// Saved is what an earlier process recorded of the content that it sent.
type Saved struct {
	Checkpoints []chunk.Checkpoint // ascending
	Sent        int64              // up to which bytes may have been sent
	Compression *Compression       // nil if the content is plain
}

// Compression describes a file that is compressed.
type Compression struct {
	Size   int64            // of all compressed bytes; 0 if it is not known
	Source chunk.Checkpoint // of the bytes of the file that are in the compressed bytes before an offset
}

// last returns the last checkpoint at or before offset, or zero.
func (s Saved) last(offset int64) (last chunk.Checkpoint) {
	for _, c := range s.Checkpoints {
		if c.Offset <= offset {
			last = c
		}
	}
	return last
}

// Prefix has the checksum that the server reports of the bytes before Offset.
type Prefix struct {
	Offset int64
	CRC32C *uint32   // nil if it is not reported
	MD5    *[16]byte // nil if it is not reported; not used with CRC32C
}

// String describes the prefix in an error.
func (p Prefix) String() string {
	kind := "MD5"
	if p.CRC32C != nil {
		kind = "CRC32C"
	}
	return fmt.Sprintf("%s of the first %d bytes", kind, p.Offset)
}

// Verdict is the result of a comparison with a checksum.
type Verdict int

const (
	Unknown Verdict = iota // the content cannot tell, or only by reading many bytes
	Same
	Different
)

func verdict(same bool) Verdict {
	if same {
		return Same
	}
	return Different
}
