package session

import (
	"context"
	"errors"
	"net/url"
	"os"
)

// transportError returns the cause of ctx if ctx is done, and otherwise err
// without the URL, which has the secret of the session, and without what scrub
// removes. It is [context.Canceled] only if ctx is: a transport that cancels a request
// for its own reasons has failed like any other.
func transportError(ctx context.Context, scrub func(string) string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	canceled := errors.Is(err, context.Canceled)
	if text := err.Error(); scrub(text) != text || canceled {
		// A transport of the caller has put a secret into its message, or has
		// canceled the request.
		timeout, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err)
		return &scrubbed{
			text:    scrub(text),
			is:      func(target error) bool { return target != context.Canceled && errors.Is(err, target) },
			timeout: canceled || ok && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded),
		}
	}
	return err
}

// scrubbed replaces an error whose text has the secret of the session, or that is
// context.Canceled although the context of the request is not done.
// errors.Is works on it, but it does not unwrap to the original error.
type scrubbed struct {
	text    string
	is      func(target error) bool // a function, because fmt cannot print what it captures
	timeout bool                    // another try may succeed, even at first contact
}

func (e *scrubbed) Error() string { return e.text }

func (e *scrubbed) Is(target error) bool { return e.is(target) }

func (e *scrubbed) Timeout() bool { return e.timeout }
