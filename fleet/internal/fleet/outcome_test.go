package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"testing"
	"time"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
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
		{session.ErrSourceChanged, true, failed}, // another worker may have a file that no program writes to
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
		worker    string
		want      int
		workers   []string
	}{
		{0, "a", 1, []string{"a"}}, {0, "b", 2, []string{"a", "b"}}, {100, "a", 1, []string{"a"}}, {100, "a", 2, []string{"a"}},
		{50, "b", 3, []string{"a", "b"}}, {101, "c", 1, []string{"c"}}, {101, "c", 2, []string{"c"}},
	} {
		a = a.after(failedDelivery{committed: c.committed, kind: "kind", reason: "reason", worker: c.worker})
		if a.Failures != c.want || a.Total != i+1 || !slices.Equal(a.Workers, c.workers) {
			t.Errorf("delivery %d with %d bytes: %+v, want %d failures in a row of %v", i, c.committed, a, c.want, c.workers)
		}
		if wasProgress := a.Waited == 0; i > 0 && wasProgress != a.Progress {
			t.Errorf("delivery %d: waited %v, progress %t", i, a.Waited, a.Progress)
		}
		a.Waited += time.Second
	}
}

// TestFailingFiles checks that a file counts as failing only if it failed in each delivery, even after progress.
func TestFailingFiles(t *testing.T) {
	var a attempts
	for i, c := range []struct {
		committed     int64
		failing, want []int
	}{
		{0, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}}, // no files at all
		{10, []int{1, 2}, []int{1, 2}},
		{0, []int{0, 1, 2, 3}, []int{1, 2}},
		{11, []int{2, 3}, []int{2}},
		{11, []int{1}, []int{}},
		{11, []int{1}, []int{}},
	} {
		data, err := json.Marshal(a.after(failedDelivery{committed: c.committed, failing: c.failing}))
		if err == nil {
			a = attempts{}
			err = json.Unmarshal(data, &a)
		}
		if err != nil || !slices.Equal(a.Failing, c.want) || a.Failing == nil {
			t.Errorf("delivery %d: %v fail, want %v (%v)", i, a.Failing, c.want, err)
		}
	}
	if !a.exhausted(true, retryLimits{failures: 99, missingFor: time.Hour}, nil) {
		t.Error("a task whose files were all finished is tried again")
	}
}

// TestExhausted checks after which failures a task is not tried any more.
func TestExhausted(t *testing.T) {
	const missingFor = 10 * time.Minute
	abc := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		failures        int
		by, live        []string
		own             bool
		waited, watched time.Duration
		want            bool
	}{
		"too few failures":                            {2, abc, abc, false, time.Hour, time.Hour, false},
		"a failure of the service":                    {3, []string{"a", "b"}, abc, false, 0, 0, true},
		"a failure of the service at one of three":    {9, []string{"a"}, abc, false, time.Hour, time.Hour, false},
		"a failure of the service at the only worker": {3, []string{"a"}, []string{"a"}, false, 0, 0, true},
		"a missing file":                              {3, abc, abc, true, missingFor, missingFor, true},
		"missing at one of three":                     {99, []string{"a"}, abc, true, time.Hour, time.Hour, false},
		"missing at two of three":                     {99, []string{"a", "b"}, abc, true, time.Hour, time.Hour, false},
		"missing for a shorter time":                  {99, abc, abc, true, missingFor - 1, time.Hour, false},
		"missing at the first worker that started":    {99, []string{"a"}, []string{"a"}, true, time.Hour, missingFor - 1, false},
		"missing at the only worker":                  {3, []string{"a"}, []string{"a"}, true, missingFor, time.Hour, true},
		"the others have ended":                       {3, abc, []string{"a"}, true, missingFor, time.Hour, true},
		"another has started since":                   {9, abc, []string{"a", "d"}, true, time.Hour, time.Hour, false},
	} {
		a := attempts{Failures: c.failures, Workers: slices.Clone(c.by), Waited: c.waited, Failing: []int{0}}
		limits := retryLimits{failures: 3, missingFor: missingFor, watched: c.watched}
		live := func() []string { return c.live }
		if got := a.exhausted(c.own, limits, live); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestExhaustedForgetsWorkers checks that a record does not grow with the names of workers that have ended.
func TestExhaustedForgetsWorkers(t *testing.T) {
	a := attempts{Failures: 9, Workers: []string{"a", "b", "c"}, Failing: []int{0}}
	if a.exhausted(true, retryLimits{failures: 3}, func() []string { return []string{"c", "d"} }) || !slices.Equal(a.Workers, []string{"c"}) {
		t.Errorf("workers %v, want only the one that lives", a.Workers)
	}
}

func TestSum(t *testing.T) {
	ok := outcome{file: File{Size: 5}}
	skipped := outcome{file: File{Size: 5}, skipped: true}
	bad := outcome{err: errors.New("disk")}
	changed := outcome{err: &session.Error{Kind: session.ErrPrecondition}}
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
