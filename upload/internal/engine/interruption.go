package engine

import (
	"context"
	"errors"

	"gcsup/internal/decide"
	"gcsup/session"
)

// Interruption is the error of requests, or of a read, that ended because their context was done.
// It wraps only the error of the context, or the one in [Stopped]: the cause of the context and the
// last failure may be errors of another upload.
type Interruption struct {
	Err   error
	Text  string
	cause error // of the context
}

// Stopped is the cause of the context of an upload that another call ended. It has no
// Unwrap: an error of a request that has this cause is not the service's answer.
type Stopped struct{ By error }

func (s *Stopped) Error() string { return s.By.Error() }

// NewInterruption returns the error of what ctx ended. last is the last failure before that, or nil.
func NewInterruption(ctx context.Context, last error) *Interruption {
	cause := context.Cause(ctx)
	e := &Interruption{ctx.Err(), cause.Error(), cause}
	if s, ok := cause.(*Stopped); ok {
		e.Err = s.By
	}
	if last != nil && !errors.Is(last, cause) && !errors.Is(last, e.Err) {
		text := last.Error()
		if failed, ok := last.(*session.Error); ok {
			text = decide.Text(failed)
		}
		e.Text += " (before that: " + text + ")"
	}
	return e
}

// Of reports whether ctx ended it. A cleanup has a context of its own, with another cause.
func (e *Interruption) Of(ctx context.Context) bool { return errors.Is(e.cause, context.Cause(ctx)) }

func (e *Interruption) Error() string { return e.Err.Error() + ": " + e.Text }

func (e *Interruption) Unwrap() error { return e.Err }
