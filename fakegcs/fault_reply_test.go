package fakegcs

import (
	"testing"
	"time"

	"gcsup/fakegcs/faults"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 2, 29, 23, 59, 58, 0, time.UTC)
	for given, want := range map[string]string{"": "", "3": "3", "soon": "soon", "+5s": "Fri, 01 Mar 2024 00:00:03 GMT"} {
		a := &faults.Action{RetryAfter: given}
		if got := retryAfter(a, now); got != want {
			t.Errorf("RetryAfter %q = %q, want %q", given, got, want)
		}
	}
}
