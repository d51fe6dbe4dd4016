package engine

import (
	"context"
	"sync/atomic"

	"gcsup/internal/decide"
	"gcsup/internal/ownconn"
	"gcsup/session"
	"gcsup/upload/internal/netconn"
)

// Requester makes the requests of an upload, or of one part of a file, about one object. [Requester.Converse]
// repeats them until their outcome is known. It is for one goroutine.
type Requester struct {
	Spec   session.Spec // the object; see To
	Part   int          // the number of the part, from 1; 0 for the whole file
	Retry  *Retry
	Pos    *Position
	uplink *Uplink
	memory *memory
}

// memory is what a requester remembers of its requests: it outlives sessions.
type memory struct {
	sizer  *requestSizer
	aim    intention
	socket atomic.Pointer[netconn.Socket] // of the request that sends object data; nil if it is not known
	stale  atomic.Bool                    // a request failed on a reused connection since the last progress
	made   *[]*Exchange                   // exchanges whose decision is not known yet; nil outside of a conversation
}

// NewRequester returns a requester for a part of a file, with a number from 1, or for a whole
// file if part is 0. It reports its progress in pos. The caller must close its Retry.
func NewRequester(u *Uplink, part int, pos *Position) *Requester {
	q := &Requester{Part: part, Pos: pos, uplink: u, memory: &memory{sizer: newRequestSizer(u.ChunkSize)}}
	q.Retry = newRetry(u, q.Post)
	return q
}

// To returns q for the object of spec.
func (q *Requester) To(spec session.Spec) *Requester {
	other := *q
	other.Spec = spec
	return &other
}

// Post reports something that happened to the part.
func (q *Requester) Post(n Note) {
	n.Part = q.Part
	q.uplink.Notes.Note(n)
}

// Progressed records that the server committed more bytes, or has answered with more.
func (q *Requester) Progressed() {
	q.Retry.Progressed()
	q.memory.stale.Store(false)
}

// Handed records that a request handed the bytes between two offsets to the network.
func (q *Requester) Handed(from, to int64) {
	q.uplink.Tally.Resent.Add(max(0, min(to, q.Pos.Handed)-from))
	q.Pos.Handed = max(q.Pos.Handed, to)
	q.Pos.Sent.Store(to)
}

// client returns the client for a request, and its context. After a request failed on a reused
// connection, each request gets a connection of its own until the upload progresses:
// the peer may close each connection shortly after a reply.
func (q *Requester) client(ctx context.Context) (context.Context, *session.Client) {
	if q.memory.stale.Load() {
		ctx = ownconn.With(ctx)
	}
	return ctx, q.uplink.Client.WithEncryptionKey(q.Spec.EncryptionKey).WithIntention(q.memory.aim.current())
}

// answered records the reply to a request.
func (q *Requester) answered(r session.Reply) {
	q.uplink.Tally.Requests.Add(1)
	if load := decide.LoadOf(&r); q.uplink.Place != nil && (load == decide.LoadTooFast || load == decide.LoadUnavailable) {
		q.uplink.Place.Refused()
	}
	q.Retry.attempts++
	q.memory.aim.learn(r)
	if r.Reused && decide.Lost(&r) {
		q.memory.stale.Store(true)
	}
}
