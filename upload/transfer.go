package upload

import (
	"context"
	"errors"
	"time"

	"gcsup/session"
)

// transfer sends one range of a source to one object. It has the state that outlives
// single requests and sessions. A job has one transfer. A file that is sent in parts
// also has one for each part.
type transfer struct {
	wire    *exchanger
	content content
	retry   *retrier
	sizer   *requestSizer
	record  record
	events  *events
	tally   *tally
	expect  expectation
	pos     position
	part    int   // the number of the part, from 1; 0 if the transfer is not a part of a file
	slot    *slot // of the part; nil if it has none

	checkRate func(n int64, took time.Duration) error // checks the rate of the first request, which carried n bytes; may be nil
}

// conversation is a way to make the object: in a single request ([insertion]) or
// through a session ([run]).
type conversation interface {
	// perform makes the exchange of an action. Its error is a local one: of the source,
	// of the store, or of a precondition.
	perform(ctx context.Context, a session.Action) (session.Reply, error)

	// handleReply returns the action after a reply.
	handleReply(ctx context.Context, r session.Reply) (session.Action, error)
}

// drive is the loop of every upload: it performs an action, and gets the next one
// from the decision table, until the object exists.
func (t *transfer) drive(ctx context.Context, c conversation, action session.Action) (*session.Object, error) {
	for {
		switch action.Step {
		case session.Done:
			return action.Object, nil
		case session.Fail:
			return nil, t.retry.failure(action.Err, nil)
		}
		if action.Wait {
			if err := t.retry.Wait(ctx, action.Err, action.RetryAfter); err != nil {
				return nil, t.stopped(ctx, err, action.Err)
			}
		}
		if ctx.Err() != nil {
			return nil, t.interrupted(ctx, nil)
		}
		reply, err := c.perform(ctx, action)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, t.interrupted(ctx, reply.Err)
		}
		if action, err = c.handleReply(ctx, reply); err != nil {
			return nil, err
		}
	}
}

// stopped returns err, the error of a wait, or the error of an interrupted upload if
// ctx is done. last is the last failure before that.
func (t *transfer) stopped(ctx context.Context, err, last error) error {
	if ctx.Err() != nil {
		return t.interrupted(ctx, last)
	}
	return err
}

// interrupted returns the error of an upload whose context ended. last is the last
// failure before that, or nil.
func (t *transfer) interrupted(ctx context.Context, last error) error {
	if e, ok := errors.AsType[*InterruptedError](last); ok && e.of == t {
		return e
	}
	return newInterrupted(ctx, t, last)
}

// check checks whether this upload made the object at the destination.
func (t *transfer) check(ctx context.Context) (session.Reply, error) {
	ours, err := t.content.whole(ctx)
	if err != nil {
		return session.Reply{}, t.sourceFailed(ctx, err)
	}
	r := t.wire.look(ctx)
	if o := r.Object; o != nil {
		r.Ours = o.Size == t.content.total() && o.HasCRC32C && o.CRC32C == ours && !t.known(o.Generation)
	}
	return r, nil
}

// known reports whether the caller gave the generation in a precondition. The object
// with it is then older than the upload.
func (t *transfer) known(generation int64) bool {
	spec := t.wire.spec
	for _, named := range []*int64{spec.IfGenerationMatch, spec.IfGenerationNotMatch} {
		if named != nil && *named != 0 && *named == generation {
			return true
		}
	}
	return false
}

// sourceFailed returns the error of an upload whose source could not be read or has
// changed.
func (t *transfer) sourceFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return t.interrupted(ctx, nil)
	}
	return sourceError(err)
}

// dropTimeout bounds the cancellation of a session that is no longer needed.
// dropTimeoutCancelled is the bound after the upload was cancelled.
const (
	dropTimeout          = 10 * time.Second
	dropTimeoutCancelled = 2 * time.Second
)

// drop cancels a session that is no longer needed, even if ctx is done. This is
// optional, because an unused session expires.
func (t *transfer) drop(ctx context.Context, uri session.URI) {
	if uri.IsZero() {
		return
	}
	timeout := dropTimeout
	if ctx.Err() != nil {
		timeout = dropTimeoutCancelled
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	t.wire.cancel(ctx, uri)
}
