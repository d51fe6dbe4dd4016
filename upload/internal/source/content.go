package source

import (
	"context"

	"gcsup/chunk"
	"gcsup/upload/internal/content"
)

// Resumable is the content of a file, plain or compressed. Another process can continue
// to send it.
type Resumable interface {
	content.Source

	// CompareAll compares the file with all that an earlier process recorded of it, and
	// CompareLast with the bytes between the last two checkpoints.
	CompareAll(ctx context.Context, s Saved) error
	CompareLast(ctx context.Context, s Saved) error

	// Adopt continues the content that an earlier process sent, and Seek continues at its
	// committed offset, after it has read the bytes since the last checkpoint.
	Adopt(s Saved)
	Seek(ctx context.Context, offset int64) error

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

	// Load returns the content of a small file. LoadWindow returns that of any file if it
	// fits in a window of a stream. Otherwise Open is nil, as for a plain file.
	Load(ctx context.Context) (content.Loaded, error)
	LoadWindow(ctx context.Context) (content.Loaded, error)

	// Close stops reading the file, and closes it.
	Close()
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

func verdict(same bool) content.Verdict {
	if same {
		return content.Same
	}
	return content.Different
}
