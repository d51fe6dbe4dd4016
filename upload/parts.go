package upload

import (
	"cmp"
	"fmt"

	"gcsup/session"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/parts"
)

// Parts sends large files in parts, each over a connection of its own. A file that cannot be sent in
// parts is sent over one connection, and an event has the reason: [Warning], or [Undivided] with Auto.
//
// A stream of Reader or a Writer is sent in the parts of multipart uploads, if it is longer than its first window
// ([Options].Window) and there is a Store. For a stream in a spool, see [Spool]. The parts of another stream are in
// memory until the service has them. They use at most its share of [Options].Memory. Each multipart upload makes a
// temporary object, of up to 0.25 TiB with the default memory, and these are composed. If [ByCompose] is not
// possible, or temporary objects cost more than their requests, see [ByEither], Auto uses one connection. Without
// Auto, there is then one multipart upload to the object. A stream that is too long for it fails with
// [session.ErrInvalid]; a [Warning] at the beginning has the maximum. If the first window takes more than 10 s, or
// with Auto more than 1 s for 16 MiB, the stream is sent over one connection. With Auto, up to three
// more windows are then read, for at most 250 ms. A stream that ends meanwhile is also sent over one connection,
// because the requests of parts would take longer. For a stream, Auto begins with one connection and does not measure
// its rate. With [Options].ChunkSize, it sends streams over one connection.
//
// A file that is compressed, see [Spec].Gzip, is sent in parts if it is large enough for parts before compression,
// the upload is saved, and its compressed bytes meet the conditions for a stream. It is one multipart upload to the
// object. It is therefore sent over one connection with [ByCompose], with an option that [ByMultipart] does not
// support, or if it may have more bytes than such an upload can have. A resume compresses the file again, and
// compares the parts that the service has. It needs memory for at least one part, of the size with which the upload
// began, whatever [Options].Memory is. An upload whose parts cannot be saved ends, and can be resumed.
type Parts struct {
	// Connections is the maximum number of connections that send a file, 2 to 256. Their number grows
	// as parts are committed. Each file of a batch has its own. With Auto, the maximum is for all
	// files of the Uploader together, 0 means 256, and there is at most one connection for each 512
	// KiB of [Options].Memory.
	Connections int

	// Auto sends a file in parts if several connections may be faster than one. The file begins in a
	// session, which shows the rate of one connection within 250 ms. If that rate is low, the bytes
	// that were sent are discarded, and the file is sent in parts. The number of connections rises as
	// long as the total rate does. All files of an Uploader share the connections, and the measured
	// rate of a single one. The buffers of each connection take about 1 MiB in addition to
	// [Options].Memory. A multipart upload also keeps the parts that fit into [Options].Memory.
	//
	// A file is sent over one connection if
	//
	//   - the file has less than 150 MiB (no event reports this),
	//   - its first 16 MiB are sent at 512 MiB/s or more, or at 64 MiB/s or more if the service
	//     answers within 3 ms,
	//   - a request failed while this rate was measured, and the session has more than about 16 MiB by then,
	//   - the rate limit is at most 16 MiB/s, and uploads are not paused,
	//   - several connections were no faster for a file in the last ten minutes,
	//   - the caller has no permission to read the object at the destination, or
	//   - no [JoinBy] supports its settings. For [ByCompose], the bucket and the permissions must
	//     also be readable and suit temporary objects.
	Auto bool

	// MinPart is the minimum size of a part in bytes; 0 is 8 MiB, and 5 MiB with Auto. A file that is
	// not larger is sent over one connection. Parts are larger if the file would have more than 4 for
	// each connection. Parts of a multipart upload are smaller if one part for each connection would
	// not fit in [Options].Memory, or would exceed the bound of [AtRisk].
	MinPart int64

	// Join is how the parts of new uploads become one object. A saved upload keeps the way with which
	// it was started.
	Join JoinBy

	minFile  int64 // with Auto, of a file in parts; 0 is 150 MiB
	maxParts int   // of a multipart upload of a stream; 0 is 10,000
}

// JoinBy is a way to make one object from the parts of a file.
type JoinBy int

// The ways to make one object from parts.
const (
	// ByEither, the default, uses ByMultipart if it supports the settings of the object and the
	// service allows it, and otherwise ByCompose. ByCompose comes first if its temporary objects
	// cost nothing but their requests (their storage class has no minimum duration, and the
	// bucket sends no notification about them), and one of these is true: more than 12
	// connections, a file of more than 625 GiB, or Auto and a service that answers after 100 ms
	// or later. A multipart upload would then be slow, or have many parts at risk.
	ByEither JoinBy = iota

	// ByCompose is a parallel composite upload: it uploads each part as a temporary object below
	// gcsup-parts/ in the bucket of the destination, and composes them. It needs the permission to
	// delete objects. If only a managed folder around the destination grants it, the temporary
	// objects are gcsup-parts-… in that folder. In a bucket with hierarchical namespace they have
	// such names, too, so that no folder is left.
	ByCompose

	// ByMultipart uses a multipart upload of the XML API. It does not support
	// preconditions: an upload with one fails with [session.ErrInvalid]. Parts have at
	// least 5 MiB.
	ByMultipart
)

// check returns an error if a field of p is out of range.
func (p *Parts) check() error {
	switch {
	case p == nil:
	case p.Connections < 2 && (!p.Auto || p.Connections != 0) || p.Connections > connections.Max:
		return fmt.Errorf("parts over %d connections: want 2 to %d, or 0 with Auto", p.Connections, connections.Max)
	case p.MinPart < 0:
		return fmt.Errorf("parts of at least %d bytes: want a size that is not negative", p.MinPart)
	case p.Join < ByEither || p.Join > ByMultipart:
		return fmt.Errorf("parts joined by %d: want ByEither, ByCompose or ByMultipart", p.Join)
	}
	return nil
}

// checkSpec returns an error if s has a precondition, which p does not support.
func (p *Parts) checkSpec(s Spec) error {
	if p != nil && p.Join == ByMultipart && len(s.Conditions()) > 0 {
		return fmt.Errorf("%w: a multipart upload does not support preconditions: join the parts by compose", session.ErrInvalid)
	}
	return nil
}

// options returns the options of p. If p is nil, they are those for saved uploads in parts, over one
// connection.
func (p *Parts) options() parts.Options {
	switch {
	case p == nil:
		return parts.Options{Connections: 1, Min: parts.DefaultMin}
	case p.Auto:
		return parts.Options{
			Auto: true, Connections: cmp.Or(p.Connections, connections.Max),
			Min: cmp.Or(p.MinPart, parts.AutoMin), MinFile: cmp.Or(p.minFile, parts.AutoMinFile), MaxParts: p.maxParts,
		}
	}
	return parts.Options{Connections: p.Connections, Min: cmp.Or(p.MinPart, parts.DefaultMin), MaxParts: p.maxParts}
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
