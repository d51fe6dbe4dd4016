package batch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/bucket"
	"gcsup/session"
)

// TestFailFastOfABucket checks which failures end the files of a bucket, and never those of another one.
func TestFailFastOfABucket(t *testing.T) {
	fails := func(kind error, permission string) error {
		return &session.Error{Kind: kind, Message: permission, FromService: true}
	}
	denied := fails(session.ErrPermission, "")
	for _, tt := range []struct {
		name     string
		outcomes []error // nil is a success
		want     error
	}{
		{"nothing", nil, nil},
		{"no bucket", []error{fails(session.ErrNotFound, "")}, session.ErrNotFound},
		{"no credentials", []error{fails(session.ErrCredentials, "")}, session.ErrCredentials},
		{"two objects denied", []error{denied, denied}, nil},
		{"three objects denied", []error{denied, denied, denied}, session.ErrPermission},
		{"some objects denied", []error{denied, denied, nil, denied, denied}, nil},
		{"a success after it", []error{denied, denied, denied, nil}, nil},
		{"a success after there was no bucket", []error{fails(session.ErrNotFound, ""), nil}, session.ErrNotFound},
		{"existing objects may not be deleted", []error{fails(session.ErrPermission, bucket.PermissionDelete), fails(session.ErrPermission, bucket.PermissionDelete), fails(session.ErrPermission, bucket.PermissionDelete)}, nil},
		{"checksums", []error{fails(session.ErrChecksum, ""), fails(session.ErrChecksum, ""), fails(session.ErrChecksum, "")}, nil},
		{"no replies", []error{session.ErrNotFound, context.Canceled}, nil},
	} {
		b := NewFailFast(func() time.Time { return time.Time{} })
		for _, err := range tt.outcomes {
			if err == nil {
				b.Succeeded("bkt")
			} else {
				b.Failed("bkt", err)
			}
		}
		if got := b.Err("bkt"); !errors.Is(got, tt.want) || got != nil && !strings.Contains(got.Error(), "bucket bkt: ") {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if got := b.Err("other"); got != nil {
			t.Errorf("%s: another bucket: %v", tt.name, got)
		}
	}
}

// TestFailFastInAnOutage checks that an upload which has used up its retries ends a batch only if the service
// answered no other one since its first failure, and none progressed. The error of a store does not have that
// time: it says nothing about the uploads. Times are in minutes after the start of the batch.
func TestFailFastInAnOutage(t *testing.T) {
	t.Parallel()
	const never = -1
	success, refusal, proxy := error(nil), error(&session.Error{Kind: session.ErrChecksum, FromService: true}), error(&session.Error{Kind: session.ErrChecksum})
	for _, tt := range []struct {
		name      string
		answer    error // of another upload
		answered  int   // when
		progress  int   // when another upload progressed
		since     int   // the first failure
		status    int   // of the last one
		then      int   // when another upload progresses after the failure; the question comes two minutes later
		exhausted bool
	}{
		{"first failure after a success", success, 2, never, 3, 503, never, true},
		{"before a success", success, 2, never, 1, 503, never, false},
		{"before a refusal", refusal, 2, never, 1, 503, never, false},
		{"before a reply of a proxy", proxy, 2, never, 1, 503, never, true},
		{"another one progressed", success, 0, 3, 1, 503, never, false},
		{"another one progressed before", success, 0, 1, 3, 503, never, true},
		{"of a store", success, 2, never, never, 0, never, false},
		{"of one object", success, 0, never, 1, 404, never, false},
		{"of an object that is changed too often", success, 0, never, 1, 429, never, false},
		{"another one progresses later", success, 0, never, 1, 503, 5, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, progress := time.Now(), never
			at := func(minute int) time.Time {
				if minute == never {
					return time.Time{}
				}
				return start.Add(time.Duration(minute) * time.Minute)
			}
			progress = tt.progress
			b := NewFailFast(func() time.Time { return at(progress) })
			time.Sleep(time.Until(at(tt.answered)))
			if tt.answer == nil {
				b.Succeeded("bkt")
			} else {
				b.Failed("bkt", tt.answer)
			}
			time.Sleep(time.Until(at(4)))
			b.Failed("bkt", &session.Error{
				Kind: session.ErrRetriesExhausted, Status: tt.status, FromService: true, Since: at(tt.since), Reason: "rateLimitExceeded",
				Message: "The object bkt/0 exceeded the rate limit for object mutation operations (create, update, and delete).",
			})
			if tt.then != never {
				if b.Err("other") == nil {
					t.Errorf("%s: the batch goes on before that", tt.name)
				}
				progress = tt.then
			}
			time.Sleep(time.Until(at(6)))
			for _, bucket := range []string{"bkt", "other"} {
				if got := b.Err(bucket); errors.Is(got, session.ErrRetriesExhausted) != tt.exhausted {
					t.Errorf("%s: bucket %s: %v, want the end of the batch: %t", tt.name, bucket, got, tt.exhausted)
				}
			}
			if tt.exhausted {
				if want := at(4).Sub(at(tt.since)).String(); !strings.Contains(b.Err("bkt").Error(), "no upload has succeeded for "+want) {
					t.Errorf("%s: %v, want %s", tt.name, b.Err("bkt"), want)
				}
				if b.Succeeded("bkt"); b.Err("bkt") != nil {
					t.Errorf("%s: after a success: %v", tt.name, b.Err("bkt"))
				}
			}
		})
	}
}
