// Package blob holds the bytes of objects and of unfinished uploads: in memory, in a
// file, or as a list of other blobs. A discarding blob only counts them. The package
// also computes checksums of the bytes as they arrive.
package blob

import (
	"errors"
	"io"
	"sync/atomic"
)

// Granularity is the unit in which the service commits the bytes of an upload.
const Granularity = 256 << 10

// ErrDiscarded is the error of a read from a blob of [NewDiscarding].
var ErrDiscarded = errors.New("fakegcs: the server runs in discard mode and keeps no object bytes")

// ErrSpill is the error of an append for which neither the memory nor the temporary file has space.
var ErrSpill = errors.New("write to a temporary file")

// storage stores the bytes of a blob. Only the owner, an upload, calls Append,
// Truncate and Close. When the blob belongs to an object, any number of readers read
// it.
type storage interface {
	// Append adds p. If keep is set, the blob may keep p itself instead of a copy. If it
	// did, kept is true, and the caller must not change p.
	Append(p []byte, keep bool) (kept bool, err error)
	// Truncate removes the bytes after size.
	Truncate(size int64) error
	// Size returns the number of bytes.
	Size() int64
	// Section reads the bytes [from, to). The caller closes it.
	Section(from, to int64) (io.ReadCloser, error)
	// Close releases the resources for writing. The bytes stay.
	Close() error
}

// Blob is a sequence of bytes that only grows, except by Truncate. It counts
// the objects and uploads that refer to it, so that a copy of an object costs
// nothing. The last Release removes the bytes. A new blob has no references.
type Blob struct {
	storage
	id     string
	refs   atomic.Int32
	remove func() error // nil: there is nothing to do
}

// ID returns the name of the blob in the directory. It is "" for other blobs.
func (b *Blob) ID() string { return b.id }

// Retain adds a reference and returns b.
func (b *Blob) Retain() *Blob {
	b.refs.Add(1)
	return b
}

// Release drops one reference. A failure to remove the file only costs disk
// space, which the next start of the server reclaims.
func (b *Blob) Release() {
	if b.refs.Add(-1) == 0 && b.remove != nil {
		_ = b.remove()
	}
}

// NewDiscarding returns a blob that counts bytes and drops them.
func NewDiscarding() *Blob { return &Blob{storage: &discarding{}} }

// discarding counts the bytes.
type discarding struct{ n int64 }

func (b *discarding) Size() int64                                 { return b.n }
func (b *discarding) Append(p []byte, _ bool) (bool, error)       { b.n += int64(len(p)); return false, nil }
func (b *discarding) Truncate(size int64) error                   { b.n = min(b.n, size); return nil }
func (b *discarding) Section(int64, int64) (io.ReadCloser, error) { return nil, ErrDiscarded }
func (b *discarding) Close() error                                { return nil }
