package upload

import (
	"context"
	"errors"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// transfer sends one range of a source to one object. It has the state that outlives
// single requests and sessions. A job has one transfer. A file that is sent in parts
// also has one for each part.
type transfer struct {
	wire    *exchanger
	content source.Content
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

// drive holds a conversation that makes an object, and returns the object.
func (t *transfer) drive(ctx context.Context, c conversation, first session.Action) (*session.Object, error) {
	a, err := t.retry.converse(ctx, c, first)
	switch {
	case err != nil:
		return nil, t.stopped(ctx, err, a.Err)
	case a.Step == session.Done:
		return a.Object, nil
	}
	return nil, t.retry.failure(a.Err, nil)
}

// ask makes a request until its outcome is known, see [retrier.ask]. An interruption and a
// refusal are errors. The object of the action is nil if it is absent.
func (t *transfer) ask(ctx context.Context, exchange func(context.Context) session.Reply) (session.Action, error) {
	return t.asked(ctx)(t.retry.ask(ctx, exchange))
}

// askKnown is ask for something that the service has, or had, see [retrier.askKnown].
func (t *transfer) askKnown(ctx context.Context, exchange func(context.Context) session.Reply) (session.Action, error) {
	return t.asked(ctx)(t.retry.askKnown(ctx, exchange))
}

// asked returns a function that turns what ended a conversation into an error, unless that
// is an answer.
func (t *transfer) asked(ctx context.Context) func(session.Action, error) (session.Action, error) {
	return func(a session.Action, err error) (session.Action, error) {
		switch {
		case err != nil:
			return a, t.stopped(ctx, err, a.Err)
		case a.Step == session.Fail:
			return a, t.retry.failure(a.Err, nil)
		}
		return a, nil
	}
}

// refusal reports whether err, from ask, is a refusal of the service. The service was reached
// then, and the context is not done.
func refusal(err error) bool {
	e, ok := err.(*session.Error)
	return ok && !errors.Is(e, session.ErrRetriesExhausted) && !errors.Is(e, ErrPermanent)
}

// stopped returns err, the error of a wait, or the error of an interrupted upload if
// ctx is done. last is the last failure before that.
func (t *transfer) stopped(ctx context.Context, err error, last *session.Error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case last == nil || last.Err == nil && last.Status == 0:
		return t.interrupted(ctx, nil)
	}
	return t.interrupted(ctx, last)
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
	ours, err := t.content.Whole(ctx)
	if err != nil {
		return session.Reply{}, t.sourceFailed(ctx, err)
	}
	r := t.wire.statOf(ctx, t.wire.spec)
	if o := r.Object; o != nil {
		r.Ours = o.Size == ours.Offset && o.HasCRC32C && o.CRC32C == ours.CRC32C && !t.known(o.Generation)
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
