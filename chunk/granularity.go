package chunk

import "fmt"

// Granularity is the chunk granularity of resumable uploads: 256 KiB, in bytes. Every
// request except the last must carry a multiple of it. If a request is cut off, the
// service commits a multiple of it.
//
// https://cloud.google.com/storage/docs/performing-resumable-uploads#chunked-upload
const Granularity = 256 << 10

// Floor returns the greatest multiple of [Granularity] that is at most n.
func Floor(n int64) int64 { return n &^ (Granularity - 1) }

// Ceil returns the least multiple of [Granularity] that is at least n. The
// result must fit in an int64.
func Ceil(n int64) int64 { return Floor(n + Granularity - 1) }

// LastBoundary returns the greatest multiple of [Granularity] strictly below size, or 0
// if there is none. The tail of an object of that size starts there. It has 1 to
// Granularity bytes and is sent in a separate request with the checksum of the whole
// object, because the service reads the X-Goog-Hash header of the final request only.
// The tail of an empty object is empty.
func LastBoundary(size int64) int64 {
	return Floor(max(size-1, 0))
}

// Range is the half-open range of bytes [From, To) of an object.
//
// Invariant: 0 <= From <= To.
type Range struct{ From, To int64 }

// Len returns the number of bytes in the range.
func (r Range) Len() int64 { return r.To - r.From }

// String returns the range as "[From,To)".
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.From, r.To) }
