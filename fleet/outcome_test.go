package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"testing"
	"time"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/errkind"
)

func TestJudge(t *testing.T) {
	exhausted := &session.Error{Kind: session.ErrRetriesExhausted}
	_, timeout := (&net.Dialer{Deadline: time.Now().Add(-time.Second)}).Dial("tcp", "127.0.0.1:1")
	for _, c := range []struct {
		err    error
		proven bool
		want   verdict
	}{
		{nil, true, finished},
		{&state.HeldError{}, true, inUse},
		{exhausted, true, failed},
		{exhausted, false, unreached},
		{&session.Error{Kind: session.ErrRetriesExhausted, Err: timeout}, false, unreached},
		{&session.Error{Kind: session.ErrRetriesExhausted, Err: timeout}, true, failed},
		{&session.Error{Kind: session.ErrCredentials, Err: context.DeadlineExceeded}, false, failed},
		{&session.Error{Kind: session.ErrPrecondition}, true, hopeless},
		{&session.Error{Kind: session.ErrInvalid}, true, hopeless},
		{session.ErrSourceChanged, true, hopeless},
		{fmt.Errorf("%w: %w", upload.ErrNotTried, session.ErrNotFound), true, failed},
		{&fs.PathError{Err: fs.ErrNotExist}, false, failed}, // the volume may be missing on this machine only
		{errors.New("disk"), true, failed},
	} {
		if got := judge(c.err, c.proven, false); got != c.want {
			t.Errorf("judge(%v, %v) = %v, want %v", c.err, c.proven, got, c.want)
		}
	}
	if got := judge(fmt.Errorf("x: %w", context.Canceled), true, true); got != handedOver {
		t.Errorf("interrupted: %v, want %v", got, handedOver)
	}
}

// TestAttempts checks that only failures without progress add up.
func TestAttempts(t *testing.T) {
	var a attempts
	for i, c := range []struct {
		committed int64
		want      int
	}{{0, 1}, {0, 2}, {100, 1}, {100, 2}, {50, 3}, {101, 1}, {101, 2}} {
		if a = a.after(failedDelivery{committed: c.committed, kind: "kind", reason: "reason", alone: true}); a.Failures != c.want || a.Total != i+1 {
			t.Errorf("delivery %d with %d bytes: %+v, want %d failures in a row", i, c.committed, a, c.want)
		}
	}
}

// TestAttemptsOfOneMachine checks that a failure of any kind counts only if another worker failed
// before, and that those of an unfit worker count only if no worker is fit.
func TestAttemptsOfOneMachine(t *testing.T) {
	var a attempts
	for i, c := range []struct {
		kind, worker string
		unfit, alone bool
		want         int
	}{
		{errkind.LocalIO, "x", true, false, 0},
		{errkind.NoInput, "a", false, false, 1},
		{errkind.NoInput, "a", false, false, 1}, // the same machine
		{"permission", "a", false, false, 1},
		{errkind.NoInput, "b", false, false, 2},
		{errkind.LocalIO, "b", false, false, 2},
		{errkind.LocalIO, "a", true, false, 2},
		{errkind.LocalIO, "b", false, false, 2}, // no failure counted in between
		{errkind.NoInput, "b", false, true, 3},  // there is no other machine
		{errkind.NoInput, "b", true, true, 4},
		{"permission", "a", false, false, 5},
	} {
		a = a.after(failedDelivery{kind: c.kind, worker: c.worker, unfit: c.unfit, alone: c.alone})
		if a.Failures != c.want || a.Total != i+1 {
			t.Errorf("delivery %d: %+v, want %d failures in a row", i, a, c.want)
		}
	}
}

func TestSum(t *testing.T) {
	ok := outcome{file: File{Size: 5}}
	skipped := outcome{file: File{Size: 5}, skipped: true}
	bad := outcome{err: errors.New("disk")}
	changed := outcome{err: session.ErrSourceChanged}
	stopped := outcome{err: context.Canceled}
	busy := outcome{err: &state.HeldError{}}
	for name, c := range map[string]struct {
		outcomes              []outcome
		files                 int
		verdict               verdict
		bytes                 int64
		failed, done, skipped int
	}{
		"all right":            {[]outcome{ok, skipped}, 2, finished, 10, 0, 2, 1},
		"one not reached":      {[]outcome{ok}, 2, handedOver, 5, 0, 1, 0},
		"one stopped":          {[]outcome{bad, stopped, ok}, 3, handedOver, 5, 1, 1, 0},
		"one failed":           {[]outcome{ok, bad}, 2, failed, 5, 1, 1, 0},
		"one hopeless":         {[]outcome{ok, changed}, 2, finished, 5, 1, 1, 0},
		"hopeless and failed":  {[]outcome{changed, bad}, 2, failed, 0, 2, 0, 0},
		"in use":               {[]outcome{busy}, 1, inUse, 0, 0, 0, 0},
		"stopped after in use": {[]outcome{busy, stopped}, 2, handedOver, 0, 0, 0, 0},
	} {
		got := sum(c.outcomes, true, true, c.files)
		if got.verdict != c.verdict || got.bytes != c.bytes || len(got.failed) != c.failed || len(got.finished) != c.done || got.skipped != c.skipped {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
