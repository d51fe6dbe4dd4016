package upload

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// TestEndedByOther checks that an upload whose context ended does not return the interruption of
// another call, such as a Query that the caller made to confirm the source.
func TestEndedByOther(t *testing.T) {
	other, stop := context.WithDeadline(t.Context(), time.Time{})
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := fmt.Errorf("the source is not confirmed: %w", engine.NewInterruption(other, nil))
	got := endedBy(ctx, err, &saved.Journal{})
	if !errors.Is(got, context.Canceled) || errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("got %v, want only the error of the context of the upload", got)
	}

	err = fmt.Errorf("part 1: %w", engine.NewInterruption(ctx, errors.New("503")))
	if got, want := endedBy(ctx, err, &saved.Journal{}).Error(), "context canceled: context canceled (before that: 503)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
