package engine

import (
	"context"
	"errors"
	"math"
	"time"

	"gcsup/session"
)

// Held is what the service holds of a session. If all fields are false, it no longer has the
// session.
type Held struct {
	Open      bool  // the session can be continued
	Committed int64 // Open: bytes that are durable

	Finished bool            // the object was created
	Object   *session.Object // Finished: that object

	Canceled bool // a client canceled the session
}

// Inquire requests the state of a session from the service. temporary is as in
// [session.State].
func Inquire(ctx context.Context, x *Exchanger, uri session.URI, temporary bool) (Held, error) {
	q := &inquiry{state: session.State{Size: -1, Sent: math.MaxInt64, Replayable: true, Temporary: temporary}, exchange: func(ctx context.Context) session.Reply {
		return Bounded(ctx, func(ctx context.Context) session.Reply { return x.Query(ctx, uri) })
	}}
	_, err := x.Hold(ctx, q, session.Action{Step: session.Query})
	return q.held, err
}

// inquiry is the conversation that finds out what a session holds, and changes nothing.
type inquiry struct {
	exchange func(context.Context) session.Reply
	state    session.State
	held     Held
}

func (q *inquiry) Perform(ctx context.Context, _ session.Action) (session.Reply, error) {
	return q.exchange(ctx), nil
}

// HandleReply ends the conversation as soon as the decision for an upload would show what
// the session holds.
func (q *inquiry) HandleReply(_ context.Context, r session.Reply) (a session.Action, _ error) {
	q.state, a = session.Decide(q.state, r)
	switch {
	case a.Step == session.Query:
		return a, nil
	case a.Step == session.Done:
		q.held = Held{Finished: true, Object: a.Object}
	case a.Step == session.Begin:
		q.held = Held{}
	case a.Step != session.Fail:
		q.held = Held{Open: true, Committed: q.state.Committed}
	case errors.Is(a.Err, session.ErrCanceled):
		q.held = Held{Canceled: true}
	default:
		return a, nil
	}
	return session.Action{Step: session.Done}, nil
}

// queryTimeout bounds a request that sends no data. The stall detection would allow
// more time.
const queryTimeout = 30 * time.Second

// Bounded makes one request that sends no data, with a time limit of 30 s.
func Bounded(ctx context.Context, do func(context.Context) session.Reply) session.Reply {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return do(ctx)
}
