package gcs_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"gcsup/backoff"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/upload/gcs"
)

// TestClassify checks errors that the official library returns.
func TestClassify(t *testing.T) {
	srv, endpoint := emulator(t, nil)
	c := newClient(t, &gcs.Options{Endpoint: endpoint, Anonymous: true})
	sc, err := c.Storage(t.Context())
	require.NoError(t, err)
	object := sc.Bucket("bkt").Object("o").Retryer(storage.WithPolicy(storage.RetryNever))
	for _, tt := range []struct {
		do   faults.Action
		want backoff.Verdict
	}{
		{faults.Action{Effect: faults.EffectStatus, Status: 503}, backoff.Transient},
		{faults.Action{Effect: faults.EffectStatus, Status: 429, RetryAfter: "7"}, backoff.Transient},
		{faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "rateLimitExceeded"}, backoff.Transient},
		{faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}, backoff.Permanent},
		{faults.Action{Effect: faults.EffectStatus, Status: 401}, backoff.Credentials},
		{faults.Action{Effect: faults.EffectStatus, Status: 404}, backoff.Permanent},
		{faults.Action{Effect: faults.EffectStatus, Status: 412}, backoff.Permanent},
	} {
		require.NoError(t, srv.AddFaults(faults.Fault{Do: tt.do}))
		_, err := object.Attrs(t.Context())
		if got := gcs.Classify(err); got != tt.want {
			t.Errorf("%+v: Classify(%v) = %v, want %v", tt.do, err, got, tt.want)
		}
		status, ok := errors.AsType[*backoff.StatusError](gcs.StatusError(err))
		if !ok || status.Code != tt.do.Status || tt.do.RetryAfter != "" && status.RetryAfter != 7*time.Second {
			t.Errorf("%+v: StatusError(%v) has %+v", tt.do, err, status)
		}
		if _, ok := errors.AsType[*googleapi.Error](gcs.StatusError(err)); !ok || gcs.StatusError(err).Error() != err.Error() {
			t.Errorf("%+v: StatusError(%v) does not wrap err", tt.do, err)
		}
	}
	unavailable := &googleapi.Error{Code: 503}
	for _, tt := range []struct {
		err  error
		want backoff.Verdict
	}{
		{nil, backoff.Permanent}, {io.EOF, backoff.Transient}, {storage.ErrObjectNotExist, backoff.Permanent},
		{backoff.Permanent.Mark(unavailable), backoff.Permanent}, {fmt.Errorf("x: %w", unavailable), backoff.Transient},
	} {
		if got := gcs.Classify(tt.err); got != tt.want {
			t.Errorf("Classify(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}
