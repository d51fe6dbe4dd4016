package parts

import (
	"cmp"

	"gcsup/chunk"
	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/upload/internal/atrisk"
)

// MaxObject is the service's limit: https://cloud.google.com/storage/quotas#objects.
const MaxObject = 5 << 40

const (
	// DefaultMin is the default minimum size of a part. The requests of a smaller part
	// cost more than a further connection gains.
	DefaultMin = 8 << 20

	// perConnection is how many parts each connection gets if the file is large
	// enough. With several, a slow connection does not delay the end of the upload.
	perConnection = 4

	// most bounds the parts of a file, and thereby the size of its saved upload. A multipart
	// upload may have more, see [multipartSize].
	most = 1024

	// AutoMinFile is the minimum size of a file that is sent in parts with Options.Auto. On most
	// links a smaller file takes only seconds, and parts cost further requests and need further
	// permissions. Google's command divides files of this size, too.
	AutoMinFile = 150 << 20

	// AutoMin is the minimum size of a part with Options.Auto. A file then has enough parts
	// for the connections of a link that is slow because it loses packets.
	AutoMin = multipart.MinPart

	// autoMultipart is the size of the parts of a large file in a multipart upload with
	// Options.Auto. On a long link, the bytes of a smaller part take less time than its request. All of a
	// part is at risk: with larger ones, fewer connections may begin before the first commits.
	autoMultipart = multipart.MinPart

	// autoParts is how many parts Options.Auto makes of a large file. A multipart upload may
	// have more, see [multipartSize].
	autoParts = 128

	// large is the size of a part beyond which more parts are better than one compose.
	large = 64 << 20
)

const (
	// streamGrowth is how the parts of a stream grow, because its size is not known: a part has this fraction of the
	// bytes before it. Smaller parts need less memory, so that more connections can send them. With larger ones,
	// the parts that the service allows hold more. See DESIGN.md.
	streamGrowth = 1700

	// spooledGrowth is streamGrowth for a stream on disk. 10,000 of its parts hold 5 TiB.
	spooledGrowth = 500

	// spooledLargest is the largest part of a stream on disk. It is beyond 375 GiB that the parts have this size.
	spooledLargest = 768 << 20

	// streamConnections is the number of parts for which a stream needs memory: two are sent, and one is read.
	streamConnections = 3
)

// Options are the caller's choice of connections and sizes.
type Options struct {
	Connections int   // at a time, at most [connections.Max]; a maximum if Auto is set
	Min         int64 // size of a part in bytes
	Auto        bool  // Link chooses the number of connections
	MinFile     int64 // Auto: smaller files, in bytes, are sent over one connection
	MaxParts    int   // of a multipart upload of a stream; 0 is [multipart.MaxParts]
}

// most returns how many parts a multipart upload of a stream, or of a compressed file, may have.
func (o Options) most() int { return cmp.Or(o.MaxParts, multipart.MaxParts) }

// risky reports whether a part of a multipart upload for each connection would be more than may be at risk
// over a slow link.
func (o Options) risky(size int64) bool {
	connections := 1
	if !o.Auto {
		connections = o.Connections
	}
	return max(int64(connections)*multipart.MinPart, size/multipart.MaxParts) > atrisk.Least
}

// Size returns the size of the parts of a file of size bytes: a multiple of
// chunk.Granularity, or 0 if the file is not divided.
func (o Options) Size(size int64) int64 {
	if o.Connections < 2 || size < o.MinFile || o.Min >= size {
		return 0
	}
	n := min(int64(o.Connections)*perConnection, most)
	part := max((size+n-1)/n, o.Min, 1)
	if o.Auto {
		// Make parts that one compose can join, unless they would be very large.
		part = max(size/autoParts, min(size/bucket.ComposeMax, large), o.Min)
	}
	if part = chunk.Ceil(part); part >= size {
		return 0
	}
	return part
}

// multipartSize returns the size of the parts of a multipart upload of a file of size bytes,
// within the limits of the service. want is the size that suits the connections. limit is what one part may
// have of the memory and of the bytes at risk; 0 means no limit.
func multipartSize(size, want, limit int64) int64 {
	if limit > 0 {
		want = min(want, chunk.Floor(limit))
	}
	return max(min(want, multipart.MaxPart), multipart.MinPart, chunk.Ceil((size+multipart.MaxParts-1)/multipart.MaxParts))
}

// streamPart returns the size of the part of a stream that begins at offset. base is that of the first one. A part has
// at most the budget of the memory, because its bytes are in memory until the service has them; 0 means no limit.
func streamPart(base, offset, budget int64) int64 {
	size := chunk.Ceil(max(base, offset/streamGrowth))
	if budget > 0 {
		size = min(size, max(chunk.Floor(budget), base))
	}
	return min(size, chunk.Floor(multipart.MaxPart))
}

// zippedPart returns the size that the part of a compressed file must have that begins at offset. At most left bytes
// follow, in at most n parts. The part must be larger than that of a stream if the others, with all of the memory each,
// could not hold the rest. If no parts that fit in the memory hold it, because the upload began with more, they are
// about equal.
func zippedPart(offset, left int64, n int, budget int64) int64 {
	largest := int64(multipart.MaxPart)
	if budget > 0 {
		largest = min(largest, max(chunk.Floor(budget), multipart.MinPart))
	}
	parts := int64(n)
	largest = max(largest, chunk.Ceil((left+parts-1)/parts))
	return max(streamPart(0, offset, budget), left-(parts-1)*largest)
}

// spooledPart returns the size of the part of a stream that begins at offset, in a spool of limit bytes. base is that
// of the first one. It leaves a quarter of the spool for the next part, and for the segments around it.
func spooledPart(base, offset, limit int64) int64 {
	return min(chunk.Ceil(max(base, offset/spooledGrowth)), max(chunk.Floor(min(spooledLargest, limit/4*3)), base))
}

// SpoolLimit returns how many bytes the parts of a stream hold that is in a spool of limit bytes.
func (o Options) SpoolLimit(limit int64) (n int64) {
	base := o.streamBase(limit)
	for range o.most() {
		n += spooledPart(base, n, limit)
	}
	return n
}

// overlapping returns the largest part of a stream of which several fit in its share of the memory, so that the next
// ones are read while it is sent; 0 means no limit. With the default memory, a multipart upload of such parts holds
// 0.25 TiB.
func overlapping(share int64) int64 { return share / 4 }

// streamBase returns the size of the first part of a stream. One for each connection fits in the share of the memory
// and in what may be at risk, as the parts of a file do.
func (o Options) streamBase(share int64) int64 {
	connections := int64(o.Connections)
	limit := atrisk.First / connections
	if share > 0 {
		limit = min(limit, share/(connections+1))
	}
	return chunk.Ceil(max(min(o.Min, limit), multipart.MinPart))
}

// StreamLimit returns how many bytes the parts of a stream hold. It has a share of the budget of the memory at its
// beginning; 0 means no limit.
func (o Options) StreamLimit(share, budget int64) (n int64) {
	base := o.streamBase(share)
	for range o.most() {
		n += streamPart(base, n, budget)
	}
	return n
}
