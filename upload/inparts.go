package upload

import (
	"cmp"
	"context"
	"fmt"

	"gcsup/session"
)

// Parts sends large files in parts: see [InParts] and [AutoParts].
type Parts struct {
	connections int
	least       int64
	way         JoinBy
	auto        bool  // connections is the most, see AutoParts
	from        int64 // auto: the least size of a file that is divided
	engine      partsEngine
}

// JoinBy is a way to make one object of the parts of a file.
type JoinBy int

// The ways to make one object of parts.
const (
	// ByEither is ByMultipart if the object can be made in that way and the service
	// allows it, and otherwise ByCompose.
	ByEither JoinBy = iota

	// ByCompose makes each part a temporary object below gcsup-parts/ in the bucket of the
	// destination, and composes them. That needs the permission to delete objects.
	ByCompose

	// ByMultipart uses a multipart upload of the XML API. It has no preconditions: with
	// one, the error is [session.ErrInvalid]. Parts have at least 5 MiB.
	ByMultipart
)

// partsEngine are the functions of package parallel.go that the rest of the package
// calls. They are values, so that a program that never calls InParts does not link what
// they call.
type partsEngine struct {
	// plan returns the function that sends a new upload, or nil if the file is sent
	// over one connection.
	plan func(context.Context, *job) (func(context.Context) error, error)

	// resume continues a saved upload, which was started with a Spec.
	resume func(context.Context, *job, *session.Token, Spec) error

	// abandon removes from the service what it has of a saved upload.
	abandon func(context.Context, *job, *session.Token) error

	// query asks what the service holds of a saved upload.
	query func(context.Context, *job, *session.Token) (Holding, error)
}

// InParts sends each large file in parts over a number of connections, see [Parts.By]. A
// file whose settings no way supports is sent over one connection, see the event [Warning].
//
// least is the least size of a part, in bytes; 0 is 8 MiB. Parts are larger if the file
// would have more than 4 for each connection. With 0 or 1 connections, new uploads are not
// sent in parts, but saved ones continue. The files of a batch have these connections each.
func InParts(connections int, least int64) *Parts {
	return &Parts{connections: connections, least: cmp.Or(least, minPart), engine: partsEngine{
		plan: planParallel, resume: resumeParts, abandon: abandonParts, query: queryParts,
	}}
}

// By returns p with a way to join the parts of new uploads. A saved upload continues by the
// way it began with.
func (p *Parts) By(way JoinBy) *Parts {
	by := *p
	by.way = way
	return &by
}

// check returns an error if the numbers are not valid.
func (p *Parts) check() error {
	if p != nil && (p.connections < 0 || p.connections > maxConnections || p.least < 0) {
		return fmt.Errorf("parts of at least %d bytes over %d connections: want 0 to %d connections", p.least, p.connections, maxConnections)
	}
	if p != nil && (p.way < ByEither || p.way > ByMultipart) {
		return fmt.Errorf("parts joined by %d: want ByEither, ByCompose or ByMultipart", p.way)
	}
	return nil
}

// allows returns an error if an object with a precondition cannot be made.
func (p *Parts) allows(s Spec) error {
	if p != nil && p.connections > 1 && p.way == ByMultipart && s.Conditional() {
		return fmt.Errorf("%w: a multipart upload has no preconditions: join the parts by compose", session.ErrInvalid)
	}
	return nil
}

// partsOf returns the engine for a saved upload in parts.
func (u *Uploader) partsOf(token *session.Token) (partsEngine, error) {
	if u.opts.Parallel == nil {
		return partsEngine{}, fmt.Errorf("%w: upload %s is sent in parts, for which this program needs the option Parallel", session.ErrInvalid, token.ID)
	}
	return u.opts.Parallel.engine, nil
}
