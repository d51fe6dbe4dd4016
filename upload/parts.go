package upload

import (
	"cmp"
	"fmt"

	"gcsup/session"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/parts"
)

// Parts sends large files in parts: see [InParts] and [AutoParts].
type Parts struct {
	options parts.Options
	way     JoinBy
}

// JoinBy is a way to make one object from the parts of a file.
type JoinBy int

// The ways to make one object from parts.
const (
	// ByEither uses ByMultipart if it supports the settings of the object and the
	// service allows it, and otherwise ByCompose. ByCompose comes first if the bucket allows it, it
	// costs nothing, and many parts of a multipart upload would be at risk: with more than 12
	// connections, for files of more than 625 GiB, and with AutoParts if the service answers after 100
	// ms or later. It is the default.
	ByEither JoinBy = iota

	// ByCompose uploads each part as a temporary object below gcsup-parts/ in the
	// bucket of the destination, and composes them. It needs the permission to delete
	// objects. If only a managed folder of the destination grants it, the temporary objects
	// are gcsup-parts-… in that folder. They have such names in a bucket with hierarchical namespace,
	// too, so that no folder is left.
	ByCompose

	// ByMultipart uses a multipart upload of the XML API. It does not support
	// preconditions: an upload with one fails with [session.ErrInvalid]. Parts have at
	// least 5 MiB.
	ByMultipart
)

// InParts sends each file that is larger than minPart in parts, over the given number of
// connections, at most 256. [Parts.By] chooses how the parts become one object. A file that
// cannot be sent in that way is sent over one connection, and the event [Warning] has the
// reason.
//
// minPart is the minimum size of a part in bytes; 0 is 8 MiB. Parts are larger if the file
// would have more than 4 for each connection, and smaller in a multipart upload whose parts
// would not fit in [Options].Memory, or would be at risk together, see [AtRisk]. The number of
// connections is a maximum: they begin as parts are committed. With 0 or 1 connections, new uploads are not
// sent in parts, but saved ones are resumed. Each file of a batch has its own connections.
//
// [New] returns an error if a number is out of range.
func InParts(connections int, minPart int64) *Parts {
	return &Parts{options: parts.Options{Connections: connections, Min: cmp.Or(minPart, parts.DefaultMin)}}
}

// AutoParts sends a file in parts, like [InParts], if several connections may be
// faster than one. It begins in a session of its own, which shows the rate of one connection
// within 250 ms. If that rate is low, the bytes that were sent are discarded, and the file is sent in parts. The
// number of connections rises as long as the total rate does. All files of an Uploader share
// the connections, and the rate of one.
//
// maxConnections bounds their number, at most 256; 0 is 256. There is at most one for
// each 512 KiB of [Options].Memory. The buffers of each connection take about 1 MiB. A
// multipart upload also keeps the parts that fit into Memory.
//
// A file is sent over one connection, and the event [Undivided] has the reason, if
//
//   - the file has less than 150 MiB (without the event),
//   - its first 16 MiB are sent at 512 MiB/s or more, or at 64 MiB/s or more if the service
//     answers within 3 ms,
//   - a rate limit of at most 16 MiB/s is set, but not 0,
//   - several connections were no faster for a file in the last ten minutes,
//   - the caller has no permission to read the object at the destination, or
//   - no [JoinBy] supports its settings. For [ByCompose], the bucket and the permissions must
//     also be readable and suit temporary objects.
func AutoParts(maxConnections int) *Parts {
	p := InParts(cmp.Or(maxConnections, connections.Max), parts.AutoMin)
	p.options.Auto, p.options.MinFile = true, parts.AutoMinFile
	return p
}

// By returns a copy of p that joins the parts of new uploads in the given way. A saved
// upload keeps the way with which it was started.
func (p *Parts) By(way JoinBy) *Parts {
	by := *p
	by.way = way
	return &by
}

// check returns an error if a field of p is out of range.
func (p *Parts) check() error {
	switch {
	case p == nil:
	case p.options.Connections < 0 || p.options.Connections > connections.Max || p.options.Min < 0:
		return fmt.Errorf("parts of at least %d bytes over %d connections: want a size that is not negative and 0 to %d connections", p.options.Min, p.options.Connections, connections.Max)
	case p.way < ByEither || p.way > ByMultipart:
		return fmt.Errorf("parts joined by %d: want ByEither, ByCompose or ByMultipart", p.way)
	}
	return nil
}

// checkSpec returns an error if s has a precondition, which p does not support.
func (p *Parts) checkSpec(s Spec) error {
	if p != nil && p.options.Connections > 1 && p.way == ByMultipart && len(s.Conditions()) > 0 {
		return fmt.Errorf("%w: a multipart upload does not support preconditions: join the parts by compose", session.ErrInvalid)
	}
	return nil
}

// orOne returns the options of p. If p is nil, they are those for saved uploads in parts, over one
// connection.
func (p *Parts) orOne() parts.Options {
	if p == nil {
		p = InParts(1, 0)
	}
	return p.options
}

// lowLimit is a rate limit, in bytes per second, that a single connection reaches.
const lowLimit = 16 << 20

// low reports whether a single connection reaches the limit. A limit of 0 is not low,
// because the limit after the pause is not known.
func (l *RateLimit) low() bool {
	if l == nil {
		return false
	}
	limit := l.Limit()
	return limit > 0 && limit <= lowLimit
}
