package backoff_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
)

// TestZeroValues checks that the zero value of each type works, and that nil
// means the default.
func TestZeroValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context) (int, error) { return 0, status(503) }
		for name, opts := range map[string]*backoff.Options{"nil": nil, "zero": {}, "zero breaker": {Breaker: new(backoff.Breaker), Counters: new(backoff.Counters)}} {
			start := time.Now()
			_, err := backoff.Retry(t.Context(), backoff.Policy{}, fails, opts)
			if !errors.Is(err, backoff.ErrRetriesExhausted) {
				t.Errorf("%s options: error %v, want ErrRetriesExhausted", name, err)
			}
			if took := time.Since(start); took < 31*time.Second || took > 36*time.Second {
				t.Errorf("%s options: 5 retries took %v, want 31 s to 36 s", name, took)
			}
		}
		var w backoff.Waiter
		w.Succeeded()
		w.Progress()
		w.Close()
	})
	if got := (*backoff.Counters)(nil).Counts(); !reflect.DeepEqual(got, backoff.Counts{}) {
		t.Errorf("nil Counters: %+v, want zero", got)
	}
	for name, got := range map[string]error{"Progress": backoff.Progress(nil), "Mark": backoff.Transient.Mark(nil)} {
		if got != nil {
			t.Errorf("%s(nil) = %v, want nil", name, got)
		}
	}
	if got := backoff.Classify(nil); got != backoff.Permanent {
		t.Errorf("Classify(nil) = %v, want permanent", got)
	}
	for _, err := range []error{new(backoff.Error), new(backoff.StatusError), new(backoff.ProxyError)} {
		if err.Error() == "" || errors.Is(err, backoff.ErrPermanent) {
			t.Errorf("zero %T: %q", err, err)
		}
	}
}
