package main

import (
	"context"
	"net/http"
	"time"

	"gcsup/backoff"
	"gcsup/internal/bucket"
	"gcsup/internal/cli/exit"
	"gcsup/session"
)

// askTimeout bounds one small request. The transport has no timeout, because an
// upload detects stalls itself.
const askTimeout = 30 * time.Second

// asker makes requests that upload nothing.
type asker struct {
	client *session.Client
	policy backoff.Policy
	budget backoff.Budget
}

func (c *connection) asker() (*asker, error) {
	client, err := session.NewClient(c.client.HTTP(), c.endpoint)
	if err != nil {
		return nil, exit.WithKind(err, exit.ErrConfig)
	}
	return &asker{client: client}, nil
}

// bounded makes one small request, for at most askTimeout.
func (a *asker) bounded(ctx context.Context, do func(context.Context) session.Reply) session.Reply {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return do(ctx)
}

// exhausted returns the error of a request that is no longer retried.
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

// repeat makes a request that changes nothing, and retries it after temporary
// failures. The error is that of the last try, or the cause of ctx.
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
func (a *asker) list(ctx context.Context, query bucket.Query) (page *bucket.Page, reply session.Reply, err error) {
	reply, err = a.repeat(ctx, func(ctx context.Context) (reply session.Reply) {
		page, reply = bucket.List(ctx, a.client, query)
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
