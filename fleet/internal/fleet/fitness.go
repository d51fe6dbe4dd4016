package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gcsup/backoff"
	"gcsup/upload/errkind"
)

// unfitAfter is the number of tasks after which a worker is unfit, if they failed here for a reason that may
// be its own, and other workers finished them.
const unfitAfter = 3

// probePolicy is how long an unfit worker waits before it tries a task again.
var probePolicy = backoff.Policy{Initial: 2 * time.Second, Maximum: time.Minute}

// fitness records whether a worker is the cause of its failures: it cannot read the files, or
// has no permission. The failures alone do not show that, because the tasks may be bad: other workers must have
// finished them. An unfit worker takes one task at a time, with waits. It is fit again when one
// of them succeeds. Worker.mu guards it.
type fitness struct {
	failed       map[string]bool // tasks that failed since the last success of the worker, and that no other worker has finished yet
	elsewhere    int             // tasks that failed since then, and that other workers have finished
	kind, reason string          // of the last failure
	unfit        *Unfitness      // nil if the worker is fit
	probes       int             // tasks that it tried since it is unfit
	probing      bool            // it has, or waits for, such a task
}

// Unfitness describes why a worker takes no tasks.
type Unfitness struct {
	Kind   string    `json:"kind"`     // of its last failure, as in the JSON lines of gcsup
	Reason string    `json:"reason"`   // for people
	Since  time.Time `json:"since"`    // by the clock of the worker
	Next   time.Time `json:"next_try"` // when it tries a task again
}

// wait returns how long the worker must wait before it takes a task. If the result is 0 and the
// worker is unfit, the next task is a probe.
func (f *fitness) wait(now time.Time) time.Duration {
	switch {
	case f.unfit == nil:
		return 0
	case f.probing:
		return idleWait // or until endProbe
	}
	return max(f.unfit.Next.Sub(now), 0)
}

// failure records that a task failed for a reason that may be the worker's.
func (f *fitness) failure(task string, err error) {
	if f.failed == nil {
		f.failed = map[string]bool{}
	}
	f.failed[task] = true
	f.kind, f.reason = kindOf(err), shortReason(err.Error())
	if f.unfit != nil {
		f.unfit.Kind, f.unfit.Reason = f.kind, f.reason
	}
}

// finishedElsewhere records that other workers have finished tasks that failed here. It reports whether the worker
// became unfit.
func (f *fitness) finishedElsewhere(tasks []string, now time.Time) (became bool) {
	for _, task := range tasks {
		if f.failed[task] {
			delete(f.failed, task)
			f.elsewhere++
		}
	}
	if f.unfit != nil || f.elsewhere < unfitAfter {
		return false
	}
	f.unfit = &Unfitness{Kind: f.kind, Reason: f.reason, Since: now.UTC(), Next: now.UTC().Add(probePolicy.Wait(0, 0.5, 0))}
	return true
}

// success records that a task succeeded. It reports whether the worker was unfit.
func (f *fitness) success() bool {
	was := f.unfit != nil
	*f = fitness{probing: f.probing}
	return was
}

// endProbe records that the worker has no probe any longer, and sets the time of the next one.
func (f *fitness) endProbe(now time.Time, tried bool) {
	if !f.probing {
		return
	}
	f.probing = false
	if f.unfit == nil || !tried {
		return
	}
	f.probes++
	f.unfit.Next = now.UTC().Add(probePolicy.Wait(f.probes, 0.5, 0))
}

// ownKinds are the kinds of errors whose reason may be the worker: its machine, its mounts, its
// credentials or its options.
var ownKinds = map[string]bool{
	errkind.LocalIO: true, errkind.NoInput: true, kindStale: true, kindEndpoint: true, "permission": true, "credentials": true, "not_found": true,
	"uri_mismatch": true, "state_key": true, "insecure_permissions": true,
}

// ofWorker reports whether the reason of an outcome may be the worker.
func ofWorker(o outcome) bool { return ownKinds[kindOf(o.err)] }

// deleted reports whether the file of an outcome was deleted: it is missing in a directory with other
// files.
func deleted(o outcome) bool {
	return errors.Is(o.err, fs.ErrNotExist) && hasEntries(filepath.Dir(o.file.Path))
}

// hasEntries reports whether a directory exists and is not empty.
func hasEntries(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) > 0
}
