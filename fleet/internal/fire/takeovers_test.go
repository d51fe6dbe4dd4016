//go:build linux

package fire_test

import (
	"strings"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// takeoverLimit is the time after a SIGKILL until which another worker must continue an upload.
const takeoverLimit = ackWait + 3*time.Second

// killed is a SIGKILL of a worker.
type killed struct {
	at      time.Time
	objects []string // of the large files that the worker was uploading at its last beat
}

// noteKill notes the uploads of a worker that will be killed now.
func (f *fire) noteKill(s *slot) {
	f.t.Helper()
	k := killed{}
	status, err := f.status()
	if err != nil {
		f.t.Error(err)
	}
	for _, w := range status.Workers {
		if w.PID != s.worker.PID() {
			continue
		}
		for _, a := range w.Active {
			if a.Files == 1 {
				k.objects = append(k.objects, strings.TrimPrefix(a.Destination, "gs://data/"))
			}
		}
	}
	k.at = time.Now()
	f.kills = append(f.kills, k)
}

// checkTakeovers measures how long the uploads of killed workers stood still: from the SIGKILL to the
// status query of another worker, with which it continues. That it does so at the committed offset is
// checked for each request, see checkLarge.
func (f *fire) checkTakeovers(requests map[string][]fakegcs.Request, all *totals) {
	for _, k := range f.kills {
		if f.disturbed(k.at) {
			continue
		}
		for _, name := range k.objects {
			if _, bad := f.bad[name]; bad {
				continue // no worker can continue it
			}
			next, finished := nextQuery(requests[name], k.at)
			if finished {
				continue
			}
			took := next.Sub(k.at)
			if next.IsZero() {
				f.t.Errorf("%s: no worker continued the upload of the one that was killed", name)
				continue
			}
			all.takeovers = append(all.takeovers, took)
			if took > takeoverLimit {
				all.depends(f, "%s was continued %v after SIGKILL, want at most %v", name, took, takeoverLimit)
			}
		}
	}
}

// disturbed reports whether another event happened between a SIGKILL and the latest takeover.
func (f *fire) disturbed(at time.Time) bool {
	for _, other := range f.happened {
		if other.After(at) && other.Before(at.Add(takeoverLimit)) {
			return true
		}
	}
	return false
}

// nextQuery returns when the first status query after a SIGKILL began, or, if nothing was committed before, when a new
// session was started: the killed worker may not have saved its own. finished reports that the last
// request of the killed worker made the object.
func nextQuery(requests []fakegcs.Request, killed time.Time) (at time.Time, finished bool) {
	stored := false
	for _, q := range requests {
		switch {
		case q.Op == faults.OpFinalize && succeeded(q.Status) && q.Time.Before(killed.Add(ackWait/2)):
			return time.Time{}, true
		case q.Time.After(killed) && (q.Op == faults.OpQuery || q.Op == faults.OpStart && !stored):
			return q.Time, false
		case q.Op == faults.OpPut && succeeded(q.Status):
			stored = true
		}
	}
	return time.Time{}, false
}
