package upload

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/parts"
)

// Parts sends large files in parts: see [InParts] and [AutoParts].
type Parts struct {
	options parts.Options
	way     JoinBy
	engine  partsEngine
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

// partsEngine has the functions that send files in parts. They are fields, so that a
// program that never calls InParts or AutoParts does not link this code.
type partsEngine struct {
	// send sends a new upload in parts. done is false if the file must be sent over one
	// connection.
	send func(context.Context, *job) (done bool, err error)

	// resume continues a saved upload. The Spec is the one with which it was started.
	resume func(context.Context, *job, *state.Token, Spec) error

	// remove removes everything that the service stores for a saved upload. The error
	// describes what is left.
	remove func(context.Context, *job, *state.Token) error

	// abandon is remove for a job that starts over. What cannot be removed is saved under an
	// ID of its own, for Prune.
	abandon func(context.Context, *job, *state.Token) error

	// query requests the state of a saved upload from the service.
	query func(context.Context, *job, *state.Token) (Holding, error)
}

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
	p := Parts{engine: partsEngine{
		send: sendInParts, resume: resumeParts, remove: removeParts, abandon: abandonParts, query: queryParts,
	}}
	partsOfSaved.Store(new(p))
	p.options = parts.Options{Connections: connections, Min: cmp.Or(minPart, parts.DefaultMin)}
	return &p
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
	p := InParts(cmp.Or(maxConnections, parts.MaxConnections), parts.AutoMin)
	p.options.Auto, p.options.MinFile = true, parts.AutoMinFile
	return p
}

// partsOfSaved is what an Uploader without Options.Parallel uses for a saved upload in
// parts. It is nil until the program calls InParts or AutoParts. A program that never does
// does not link the code that it needs, which would make the core a quarter larger.
var partsOfSaved atomic.Pointer[Parts]

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
	case p.options.Connections < 0 || p.options.Connections > parts.MaxConnections || p.options.Min < 0:
		return fmt.Errorf("parts of at least %d bytes over %d connections: want a size that is not negative and 0 to %d connections", p.options.Min, p.options.Connections, parts.MaxConnections)
	case p.way < ByEither || p.way > ByMultipart:
		return fmt.Errorf("parts joined by %d: want ByEither, ByCompose or ByMultipart", p.way)
	}
	return nil
}

// checkSpec returns an error if s has a precondition, which p does not support.
func (p *Parts) checkSpec(s Spec) error {
	if p != nil && p.options.Connections > 1 && p.way == ByMultipart && s.Conditional() {
		return fmt.Errorf("%w: a multipart upload does not support preconditions: join the parts by compose", session.ErrInvalid)
	}
	return nil
}

// partsOf returns the functions for a saved upload in parts, which return an error if the program
// does not link their code. The job then has a value for Options.Parallel.
func (j *job) partsOf(token *state.Token) partsEngine {
	if j.u.opts.Parallel == nil {
		own := *j.u
		if own.opts.Parallel = partsOfSaved.Load(); own.opts.Parallel == nil {
			err := fmt.Errorf("%w: upload %s is in parts, and this program has no code for parts: set Options.Parallel, for example to InParts(1, 0)", session.ErrInvalid, token.ID)
			refuse := func(context.Context, *job, *state.Token) error { return err }
			return partsEngine{
				resume: func(context.Context, *job, *state.Token, Spec) error { return err },
				remove: refuse, abandon: refuse,
				query: func(context.Context, *job, *state.Token) (Holding, error) { return Holding{}, err },
			}
		}
		j.u = &own
	}
	return j.u.opts.Parallel.engine
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
