package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestInterruption checks that the error of an interruption is that of the context, or of the call that ended it, and has the last failure
// before that only as a text.
func TestInterruption(t *testing.T) {
	t.Parallel()
	enough, lease := errors.New("enough"), errors.New("lease lost")
	failed := &session.Error{Op: session.OpPut, Status: 503, Kind: session.ErrNotFound}
	for _, tt := range []struct {
		cause, last error
		is          error
		text        string
	}{
		{enough, nil, context.Canceled, "context canceled: enough"},
		{enough, failed, context.Canceled, "context canceled: enough (before that: destination not found: 503 Service Unavailable)"},
		{enough, io.EOF, context.Canceled, "context canceled: enough (before that: EOF)"},
		{enough, fmt.Errorf("read: %w", enough), context.Canceled, "context canceled: enough"},
		{enough, context.Canceled, context.Canceled, "context canceled: enough"},
		{&engine.Stopped{By: lease}, nil, lease, "lease lost: lease lost"},
		{&engine.Stopped{By: lease}, fmt.Errorf("put: %w", lease), lease, "lease lost: lease lost"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tt.cause)
		e := engine.NewInterruption(ctx, tt.last)
		if !errors.Is(e, tt.is) || errors.Is(e, enough) || errors.Is(e, session.ErrNotFound) || e.Error() != tt.text || !e.Of(ctx) || e.Of(t.Context()) {
			t.Errorf("%v after %v: %v", tt.cause, tt.last, e)
		}
	}
}
