package fleet

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload/errkind"
)

// TestFitness checks when a worker is unfit, and when it may try a task.
func TestFitness(t *testing.T) {
	var f fitness
	now := time.Unix(1e9, 0)
	own := errors.New("permission denied")
	tasks := []string{"a", "b", "c", "d", "e"}
	for _, task := range tasks {
		f.failure(task, own)
	}
	if f.unfit != nil || f.finishedElsewhere([]string{"a", "a", "b", "x"}, now) {
		t.Fatal("unfit although other workers finished only two of its tasks")
	}
	f.success()
	if f.finishedElsewhere(tasks, now) {
		t.Fatal("unfit because of tasks before its last success")
	}
	for i, task := range tasks[:unfitAfter] {
		f.failure(task, own)
		if became := f.finishedElsewhere(tasks, now); became != (i == unfitAfter-1) {
			t.Errorf("unfit after other workers finished %d tasks: %v", i+1, became)
		}
	}
	var waits []time.Duration
	for range 8 {
		wait := f.wait(now)
		if wait <= 0 {
			t.Fatal("the worker need not wait")
		}
		now = now.Add(wait)
		if f.wait(now) != 0 {
			t.Fatal("the worker may not try a task after its wait")
		}
		f.probing = true
		if f.wait(now) == 0 {
			t.Error("the worker may take a second task beside the one that it tries")
		}
		f.failure("probe", chunk.ErrOpen)
		if f.finishedElsewhere([]string{"probe"}, now) {
			t.Error("the worker becomes unfit a second time")
		}
		f.endProbe(now, true)
		waits = append(waits, wait)
	}
	if waits[0] > 4*time.Second || waits[1] <= waits[0] || waits[7] < 50*time.Second || waits[7] > time.Minute {
		t.Errorf("waits %v, want growing ones of at most a minute", waits)
	}
	if u := f.unfit; u.Kind != errkind.NoInput || u.Reason != chunk.ErrOpen.Error() || !u.Since.Equal(time.Unix(1e9, 0)) {
		t.Errorf("%+v, want the reason of the last failure since the first one", u)
	}
	f.probing = true
	f.endProbe(now, false)
	if f.probes != 8 {
		t.Error("a probe without a task counts")
	}
	f.probing = true
	if !f.success() || f.wait(now) != 0 {
		t.Error("the worker is unfit after a success")
	}
	if !f.probing {
		t.Error("the probe ended before its delivery")
	}
	if f.endProbe(now, true); f.probing || f.unfit != nil || f.success() {
		t.Error("the worker is unfit after a probe that succeeded")
	}
}

// TestReasonOfWorker checks which failures may have their reason in the worker.
func TestReasonOfWorker(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	missing := func(path string) outcome {
		_, err := chunk.Open(path)
		return outcome{file: File{Path: path}, err: err}
	}
	for name, c := range map[string]struct {
		o    outcome
		want bool
	}{
		"an empty mount":             {missing(filepath.Join(empty, "a")), true},
		"no directory":               {missing(filepath.Join(empty, "a", "b")), true},
		"a deleted file":             {missing(filepath.Join(dir, "a")), true},
		"a file of another":          {outcome{err: &fs.PathError{Op: "open", Path: "a", Err: syscall.EACCES}}, true},
		"a broken disk":              {outcome{err: syscall.EIO}, true},
		"no permission":              {outcome{err: &session.Error{Kind: session.ErrPermission}}, true},
		"other credentials":          {outcome{err: &session.Error{Kind: session.ErrCredentials}}, true},
		"a stale copy":               {outcome{err: &fs.PathError{Op: "upload", Path: "a", Err: errStale}}, true},
		"no bucket":                  {outcome{err: &session.Error{Kind: session.ErrNotFound}}, true},
		"another endpoint":           {outcome{err: session.ErrURIMismatch}, true},
		"another key":                {outcome{err: bucketstore.ErrSealed}, true},
		"a key that others can read": {outcome{err: state.ErrInsecurePermissions}, true},
		"a replaced object":          {outcome{err: session.ErrPrecondition}, false},
		"the service fails":          {outcome{err: &session.Error{Kind: session.ErrRetriesExhausted}}, false},
		"a changed checksum":         {outcome{err: session.ErrChecksum}, false},
	} {
		if got := ofWorker(c.o); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestCompare checks that a worker is unfit if others finished its failed tasks, and not if no worker did.
func TestCompare(t *testing.T) {
	t.Parallel()
	ctx, q := t.Context(), newQueue(t)
	w := &Worker{q: q, log: slog.New(slog.DiscardHandler)}
	put := func(task string, r record) {
		t.Helper()
		_, revision, err := q.record(ctx, task)
		noError(t, err)
		_, err = q.putRecord(ctx, task, r, revision)
		noError(t, err)
	}
	for task, r := range map[string]record{
		"a": {State: stateDone, Files: 1}, "b": {State: stateDone, Files: 9}, "queued": {State: stateQueued, Files: 1},
		"dead-letter": {State: stateDone}, "part-of-a-group": {State: stateDone, Files: 9, Split: true},
	} {
		put(task, r)
		w.fitness.failure(task, fs.ErrNotExist)
	}
	w.fitness.failure("no-record", fs.ErrNotExist)
	if w.compare(ctx); w.unfit() != nil {
		t.Errorf("unfit after others finished %d tasks", w.fitness.elsewhere)
	}
	put("queued", record{State: stateDone, Files: 1})
	if w.compare(ctx); w.unfit() == nil {
		t.Errorf("fit after others finished %d tasks", w.fitness.elsewhere)
	}
}
