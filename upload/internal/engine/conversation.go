package engine

import (
	"context"
	"errors"

	"gcsup/backoff"
	"gcsup/internal/decide"
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

// Converse holds a conversation that begins with the action first, until it ends. An interruption
// and a refusal are errors.
func (q *Requester) Converse(ctx context.Context, c Conversation, first session.Action) (session.Action, error) {
	retries := q.Retry.Retries
	a, err := q.loop(ctx, c, first)
	if q.Retry.Retries > retries {
		q.yieldTurn(err == nil && a.Step != session.Fail)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		if a.Err == nil || a.Err.Err == nil && a.Err.Status == 0 {
			return a, NewInterruption(ctx, nil)
		}
		return a, NewInterruption(ctx, a.Err)
	case err == nil && a.Step == session.Fail:
		err = q.Retry.Failure(a.Err, nil)
	}
	return a, err
}

// yieldTurn ends the turn at the circuit breaker that a retry may have had. Other uploads would wait for the outcome of the next
// request, and there may be none: the parts of a file have turns of their own.
func (q *Requester) yieldTurn(succeeded bool) {
	if succeeded {
		q.Retry.Succeeded()
	} else {
		q.Retry.Close()
	}
}

// loop is the only loop that makes and repeats requests: it performs an action, and gets the next one
// from the decision table, until the conversation ends. If ctx is done, the error is its
// cause, and the action has the last failure.
func (q *Requester) loop(ctx context.Context, c Conversation, a session.Action) (session.Action, error) {
	defer q.beginDecision()()
	for {
		if a.Wait {
			if err := q.Retry.Wait(ctx, a.Err, a.RetryAfter); err != nil {
				return a, err
			}
		}
		if decide.Ends(a.Step) {
			return a, nil
		}
		if ctx.Err() != nil {
			return a, context.Cause(ctx)
		}
		reply, err := c.Perform(ctx, a)
		if err == nil && ctx.Err() != nil && !decide.Answers(&reply) {
			a.Err, err = &session.Error{Op: reply.Op, Err: reply.Err}, context.Cause(ctx)
		}
		if err != nil {
			return a, err
		}
		if a, err = c.HandleReply(ctx, reply); err != nil {
			return a, err // a local error
		}
		q.decided(&a)
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

// Ask makes the request of s until its outcome is known. The errors are those of
// [Requester.Converse]. The object of the action is nil if it is absent.
func (q *Requester) Ask(ctx context.Context, s decide.Request, exchange func(context.Context) session.Reply) (session.Action, error) {
	return q.Converse(ctx, question{exchange, func(r session.Reply) (a session.Action) {
		s, a = s.Decide(r)
		return a
	}}, session.Action{Step: decide.Repeat})
}

// Refusal reports whether err, from [Requester.Ask], is a refusal of the service. The service was reached
// then, and the context is not done.
func Refusal(err error) bool {
	e, ok := err.(*session.Error)
	return ok && !errors.Is(e, session.ErrRetriesExhausted) && !errors.Is(e, backoff.ErrPermanent)
}
