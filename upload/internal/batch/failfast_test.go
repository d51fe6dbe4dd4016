package batch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/session"
)

// TestFailFastNeedsTheTimeOfTheFirstFailure checks that an upload which has used up its retries
// ends a batch only if no other one succeeded since its first failure. The error of a store
// does not have that time: it says nothing about the uploads.
func TestFailFastNeedsTheTimeOfTheFirstFailure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		since time.Duration // the first failure, after the start of the batch; 0 if the error does not have it
		ends  bool
	}{
		{"of a store", 0, false},
		{"before a success", time.Second, false},
		{"after a success", 3 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, start := NewFailFast(func() time.Time { return time.Time{} }), time.Now()
			time.Sleep(2 * time.Second)
			b.Succeeded("bkt")
			time.Sleep(2 * time.Second)
			err := &session.Error{Kind: session.ErrRetriesExhausted}
			if tt.since > 0 {
				err.Since = start.Add(tt.since)
			}
			b.Failed("bkt", err)
			if got := b.Err("bkt"); errors.Is(got, session.ErrRetriesExhausted) != tt.ends {
				t.Errorf("failure %s: %v, want the end of the batch: %t", tt.name, got, tt.ends)
			}
		})
	}
}
