package engine

import (
	"context"
	"errors"
	"math"
	"time"

	"gcsup/session"
)

// Held is what the service holds of a session, or of a file in parts.
type Held struct {
	State     HeldState
	Committed int64           // HeldOpen: bytes that are durable
	Object    *session.Object // HeldFinished: the object that was created
}

// HeldState is the state of a session at the service. The zero value means that it is not known.
type HeldState int

// The states of a session.
const (
	HeldOpen     HeldState = iota + 1 // it can be continued
	HeldFinished                      // the object was created
	HeldGone                          // the service no longer has it
	HeldCanceled                      // a client canceled it
)

// Inquire requests the state of a session from the service, and changes nothing. temporary is
// as in [session.State]. The conversation ends as soon as the decision for an upload would
// show what the session holds.
func Inquire(ctx context.Context, x *Requester, uri session.URI, temporary bool) (held Held, err error) {
	query := func(ctx context.Context) session.Reply {
		return Bounded(ctx, func(ctx context.Context) session.Reply { return x.Query(ctx, uri) })
	}
	state := session.State{Size: -1, Sent: math.MaxInt64, Replayable: true, Temporary: temporary}
	_, err = x.Converse(ctx, question{query, func(r session.Reply) (a session.Action) {
		state, a = session.Decide(state, r)
		switch {
		case a.Step == session.Query:
			return a
		case a.Step == session.Done:
			held = Held{State: HeldFinished, Object: a.Object}
		case a.Step == session.Begin:
			held.State = HeldGone
		case a.Step != session.Fail:
			held = Held{State: HeldOpen, Committed: state.Committed}
		case errors.Is(a.Err, session.ErrCanceled):
			held.State = HeldCanceled
		default:
			return a
		}
		return session.Action{Step: session.Done}
	}}, session.Action{Step: session.Query})
	return held, err
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
