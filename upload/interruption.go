package upload

import (
	"context"
	"errors"
)

// interruption is the error of requests, or of a read, that ended because their context was done.
// It wraps only the error of the context, or the one in stopped: the cause of the context and the
// last failure may be errors of another upload.
type interruption struct {
	err  error
	text string
}

// stopped is the cause of the context of an upload that another call ended. It has no
// Unwrap: an error of a request that has this cause is not the service's answer.
type stopped struct{ by error }

func (s *stopped) Error() string { return s.by.Error() }

// newInterruption returns the error of what ctx ended. last is the last failure before that, or nil.
func newInterruption(ctx context.Context, last error) *interruption {
	cause := context.Cause(ctx)
	e := &interruption{ctx.Err(), cause.Error()}
	if s, ok := cause.(*stopped); ok {
		e.err = s.by
	}
	if last != nil && !errors.Is(last, cause) && !errors.Is(last, e.err) {
		e.text += " (before that: " + last.Error() + ")"
	}
	return e
}

func (e *interruption) Error() string { return e.err.Error() + ": " + e.text }

func (e *interruption) Unwrap() error { return e.err }
