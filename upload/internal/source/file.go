package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/upload/internal/content"
)

// File is a source that can be read again. It is the content that is sent unless the
// file is compressed.
type File struct {
	original
	data    []byte // all bytes, if they are in memory; otherwise nil
	buffer  *small // has data; nil if the caller has it
	sum     *chunk.PrefixCRC
	saved   Saved // of the session being resumed
	adopted bool  // an earlier process sent the first bytes, perhaps of another file

	released int64 // offset up to which the bytes were released
}

var _ Resumable = (*File)(nil)

// NewFile returns the file src. name is for an error.
func NewFile(src *sourcefile.File, name string, reread Reread) (*File, error) {
	identity, err := src.Opened()
	switch {
	case err != nil:
		return nil, err
	case identity.Size != src.Size():
		return nil, fmt.Errorf("%w: %s is being written to", session.ErrSourceChanged, name)
	}
	return newFile(src, identity, reread), nil
}

func newFile(src *sourcefile.File, identity chunk.Identity, reread Reread) *File {
	return &File{original: original{readable: readable{src, reread}, identity: identity}, sum: chunk.NewPrefixCRC(chunk.Checkpoint{})}
}

// FromReaderAt returns the first size bytes of r as a file.
func FromReaderAt(r io.ReaderAt, size int64, reread Reread) *File {
	return newFile(sourcefile.FromReaderAt(r, size), chunk.Identity{Size: size}, reread)
}

// FromBytes returns data as a file. Load does not copy it.
func FromBytes(data []byte, reread Reread) *File {
	f := FromReaderAt(bytes.NewReader(data), int64(len(data)), reread)
	f.data = data
	return f
}

// Section returns a range of the file as a file of its own. It does not detect changes.
// [File.Unchanged] does that for the whole file.
func (f *File) Section(rng chunk.Range) *File {
	return newFile(f.src.Section(rng), chunk.Identity{Size: rng.Len()}, f.reread)
}

// Close closes the file. No reader of [File.Load] may be used afterwards.
func (f *File) Close() {
	if f.buffer != nil {
		smalls.Put(f.buffer)
		f.buffer, f.data = nil, nil
	}
	_ = f.src.Close()
}

// Head returns the first bytes, as far as they can be read. It reads a small file whole, so
// that Load does not read it again.
func (f *File) Head() []byte {
	if f.Total() <= int64(len(small{})) && f.read() == nil {
		return f.data[:min(len(f.data), content.HeadSize)]
	}
	head := make([]byte, min(f.Total(), content.HeadSize))
	n, _ := f.src.ReadAt(head, 0)
	return head[:n]
}

func (f *File) Replayable() bool { return true }

func (f *File) Committed(n int64) {
	f.sum.Forget(n)
	if n > f.released {
		f.src.Release(chunk.Range{From: f.released, To: n})
		f.released = n
	}
}

// Release is called when no byte will be read again soon, see [sourcefile.File.Release].
func (f *File) Release() { f.src.Release(chunk.Range{To: f.Total()}) }

// Next returns one long body up to the last multiple of 256 KiB, and then a tail of
// at most 256 KiB, which is sent in a separate request. The checksum of all bytes is
// then known, and the service can compare it before the object exists.
func (f *File) Next(ctx context.Context, offset, limit int64) (content.Body, error) {
	if offset == 0 {
		f.Restart()
	}
	tail := chunk.LastBoundary(f.Total())
	if offset >= tail {
		return f.tail(ctx, offset)
	}
	to := min(chunk.Floor(offset+limit), tail)
	if to-offset < chunk.Granularity {
		// The bytes from an unaligned offset to the next boundary are less than the service
		// accepts in a request that is not the last.
		if to += chunk.Granularity; to > tail {
			return f.tail(ctx, offset)
		}
	}
	return f.body(chunk.Range{From: offset, To: to}), nil
}

// body returns a body that is not the last one.
func (f *File) body(rng chunk.Range) content.Body {
	f.sum.Rewind(rng.From)
	body := f.src.Body(rng, f.sum)
	return content.Body{Range: rng, Reader: body, Stop: body.Finish}
}

func (f *File) tail(ctx context.Context, offset int64) (content.Body, error) {
	b := f.body(chunk.Range{From: offset, To: f.Total()})
	data := make([]byte, b.Len())
	_, err := io.ReadFull(b, data)
	if finished := b.Finish(); err == nil {
		err = finished
	}
	if err == nil {
		err = f.Unchanged(ctx, f.hashed)
	}
	return content.Body{Range: b.Range, Reader: bytes.NewReader(data), Last: true, CRC32C: f.sum.Sum()}, err
}

// hashed returns the checksum of the bytes that sum has hashed. While a file is being
// compressed, bytes are still written to sum.
func (f *File) hashed() chunk.Checkpoint {
	c, _ := f.sum.Nearest(f.sum.Offset())
	return c
}

// Restart makes the checksum start at byte 0 if it started at a checkpoint. The server
// has no bytes that could differ from those of a copy.
func (f *File) Restart() {
	if _, ok := f.sum.Nearest(0); !ok {
		f.sum = chunk.NewPrefixCRC(chunk.Checkpoint{})
	}
	f.copied = false
}

// Adopt makes the checksum start at the last checkpoint. That is enough to check an
// object that is already finished.
func (f *File) Adopt(s Saved) {
	f.adopted, f.saved, f.sum = true, s, chunk.NewPrefixCRC(s.last(f.Total()))
}

// Seek makes the checksum start at offset.
func (f *File) Seek(ctx context.Context, offset int64) error {
	to, err := f.hash(ctx, f.saved.last(offset), offset, offset)
	if err != nil {
		return err
	}
	f.sum = chunk.NewPrefixCRC(to)
	return nil
}

func (f *File) Newest(sent, _ int64) chunk.Checkpoint {
	c, _ := f.sum.Nearest(min(f.sum.Offset(), sent))
	return c
}

func (f *File) Compression(int64) (int64, chunk.Checkpoint) { return 0, chunk.Checkpoint{} }

// Load reads a small file whole. A racy file is read twice, which is faster than waiting
// until it is no longer racy.
func (f *File) Load(ctx context.Context) (content.Loaded, error) {
	if err := f.read(); err != nil {
		return content.Loaded{}, err
	}
	f.sum = chunk.NewPrefixCRC(chunk.Checkpoint{})
	if _, err := f.sum.Write(f.data); err != nil {
		return content.Loaded{}, err
	}
	return loaded(f.data, f.sum.Sum()), f.Unchanged(ctx, f.hashed)
}

// small is the memory of a file of at most 64 KiB. The files of a batch use it in turn: new
// memory for each of them would be a quarter of what a small upload allocates.
type small [64 << 10]byte

var smalls = sync.Pool{New: func() any { return new(small) }}

// read reads all bytes into memory, once.
func (f *File) read() error {
	if f.data != nil {
		return nil
	}
	f.noteRacy() // before the bytes are read
	data, n := []byte(nil), f.Total()
	var buffer *small
	if n <= int64(len(small{})) {
		buffer = smalls.Get().(*small)
		data = buffer[:n]
	} else {
		data = make([]byte, n)
	}
	if err := f.src.ReadFull(data, 0); err != nil {
		if buffer != nil {
			smalls.Put(buffer)
		}
		return err
	}
	f.data, f.buffer = data, buffer
	return nil
}

func (f *File) LoadWindow(context.Context) (content.Loaded, error) { return content.Loaded{}, nil }

func loaded(data []byte, crc32c uint32) content.Loaded {
	return content.Loaded{Size: int64(len(data)), CRC32C: crc32c, Open: func() io.Reader { return bytes.NewReader(data) }}
}
