package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"gcsup/backoff"
	"gcsup/session"
)

// The states of the session of a saved upload, as the service reported them.
const (
	sessionOpen      = "open"      // it can be resumed
	sessionFinished  = "finished"  // the object was created
	sessionGone      = "gone"      // the service does not know it any more
	sessionCancelled = "cancelled" // a client canceled it
)

// holding is what the service holds of a session.
type holding struct {
	state  string
	stored int64           // the committed offset if the session is open
	object *session.Object // if it is finished and the reply describes the object
}

// gone reports whether the session cannot be resumed and made no object that is
// known.
func (h holding) gone() bool { return h.state == sessionGone || h.state == sessionCancelled }

// askTimeout bounds one small request. The transport has no timeout, because an
// upload detects stalls itself.
const askTimeout = 30 * time.Second

// asker asks the service about sessions.
type asker struct {
	client *session.Client
	policy backoff.Policy
	budget backoff.Budget
}

func (c *connection) asker() (*asker, error) {
	client, err := session.NewClient(c.client.HTTP(), c.endpoint)
	if err != nil {
		return nil, kindError{err, errConfig}
	}
	return &asker{client: client}, nil
}

// ask queries the session of token. As in an upload, [session.Decide] judges the
// replies: two answers of the service itself must agree that a session is gone.
// The caller must hold the lock of the upload, because a session must not have two
// requests at a time.
func (a *asker) ask(ctx context.Context, token *session.Token) (holding, error) {
	if err := a.client.Adopt(token); err != nil {
		return holding{}, err
	}
	state := session.State{
		Size: token.Source.Size, Committed: token.Committed, Sent: token.HighWater,
		Replayable: true, Adopted: true, MayExist: token.HighWater == token.Source.Size,
	}
	waiter := backoff.Waiter{Policy: a.policy, Budget: a.budget}
	defer waiter.Close()
	for {
		reply := a.bounded(ctx, func(ctx context.Context) session.Reply { return a.client.Query(ctx, token.URI) })
		if ctx.Err() != nil {
			return holding{}, context.Cause(ctx)
		}
		switch {
		case reply.Status == 308 && reply.Redirect == "" && reply.Committed >= 0:
			return holding{state: sessionOpen, stored: reply.Committed}, nil
		case (reply.Status == 200 || reply.Status == 201) && reply.Object != nil:
			return holding{state: sessionFinished, stored: reply.Object.Size, object: reply.Object}, nil
		}
		var action session.Action
		state, action = session.Decide(state, reply)
		switch action.Step {
		case session.Query:
		case session.Begin, session.Check:
			return holding{state: sessionGone}, nil
		case session.Fail:
			if errors.Is(action.Err, session.ErrCanceled) {
				return holding{state: sessionCancelled}, nil
			}
			return holding{}, action.Err
		default: // the committed offset is 0
			return holding{state: sessionOpen, stored: state.Committed}, nil
		}
		if !action.Wait {
			continue
		}
		if err := waiter.Wait(ctx, backoff.Failure{RetryAfter: action.RetryAfter}); err != nil {
			return holding{}, exhausted(ctx, action.Err, reply)
		}
	}
}

// bounded makes one small request, for at most askTimeout.
func (a *asker) bounded(ctx context.Context, do func(context.Context) session.Reply) session.Reply {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return do(ctx)
}

// exhausted returns the error of a request that is not retried any more.
func exhausted(ctx context.Context, err *session.Error, reply session.Reply) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		err = reply.Refusal()
	}
	e := *err
	e.Kind = session.ErrRetriesExhausted
	return &e
}

// repeat makes a request that changes nothing, and retries it as long as that may
// help. The error is that of the last try, or why ctx is done.
func (a *asker) repeat(ctx context.Context, do func(context.Context) session.Reply) (session.Reply, error) {
	waiter := backoff.Waiter{Policy: a.policy, Budget: a.budget}
	defer waiter.Close()
	for refreshed := false; ; {
		reply := a.bounded(ctx, do)
		switch {
		case ctx.Err() != nil:
			return reply, context.Cause(ctx)
		case reply.Status == http.StatusUnauthorized && !refreshed:
			refreshed = true
			continue
		case !reply.Retryable():
			return reply, nil
		}
		if err := waiter.Wait(ctx, backoff.Failure{RetryAfter: reply.RetryAfter}); err != nil {
			return reply, exhausted(ctx, nil, reply)
		}
	}
}

// list reads a page of a listing. The page is nil if the reply has none.
func (a *asker) list(ctx context.Context, query session.ListQuery) (page *session.ObjectPage, reply session.Reply, err error) {
	reply, err = a.repeat(ctx, func(ctx context.Context) (reply session.Reply) {
		page, reply = a.client.List(ctx, query)
		return reply
	})
	return page, reply, err
}

// notFound returns the error of a reply that means that there is no such bucket or
// no such service.
func notFound(reply session.Reply) error {
	e := *reply.Refusal()
	e.Kind = session.ErrNotFound
	return &e
}
