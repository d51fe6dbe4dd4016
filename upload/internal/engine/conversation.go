package engine

import (
	"context"

	"gcsup/session"
)

// Conversation makes the requests about one thing, such as an object, a part or a
// deletion. A table of package session decides what follows each reply.
type Conversation interface {
	// Perform makes the exchange of an action. Its error is a local one: of the source,
	// of the store, or of a precondition.
	Perform(ctx context.Context, a session.Action) (session.Reply, error)

	// HandleReply returns the action after a reply.
	HandleReply(ctx context.Context, r session.Reply) (session.Action, error)
}

// Converse is the loop of every conversation: it performs an action, and gets the next one
// from the decision table, until the conversation ends. If ctx is done, the error is its
// cause, and the action has the last failure.
func (r *Retrier) Converse(ctx context.Context, c Conversation, a session.Action) (session.Action, error) {
	for {
		if a.Wait {
			if err := r.Wait(ctx, a.Err, a.RetryAfter); err != nil {
				return a, err
			}
		}
		if a.Step.Ends() {
			return a, nil
		}
		if ctx.Err() != nil {
			return a, context.Cause(ctx)
		}
		made := new(madeExchanges)
		deciding := context.WithValue(ctx, undecidedKey{}, made)
		reply, err := c.Perform(deciding, a)
		if err == nil && ctx.Err() != nil && !reply.Answers() {
			a.Err, err = &session.Error{Op: reply.Op, Err: reply.Err}, context.Cause(ctx)
		}
		if err != nil {
			made.report(nil)
			return a, err
		}
		a, err = c.HandleReply(deciding, reply)
		if _, lost := err.(*sessionLost); err == nil || lost {
			made.report(&a)
		} else {
			made.report(nil) // a local error ends the upload
		}
		if err != nil {
			return a, err
		}
	}
}

// question is a conversation that has only one kind of exchange.
type question struct {
	exchange func(context.Context) session.Reply
	decide   func(session.Reply) session.Action
}

func (q question) Perform(ctx context.Context, _ session.Action) (session.Reply, error) {
	return q.exchange(ctx), nil
}

func (q question) HandleReply(_ context.Context, r session.Reply) (session.Action, error) {
	return q.decide(r), nil
}
