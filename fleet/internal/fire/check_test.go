//go:build linux

package fire_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// smallFile is the size up to which a file is sent in one request.
const smallFile = 1 << 20

// lateArrival is the time after a cut or a stop in which earlier requests may still
// arrive.
const lateArrival = 2 * time.Second

// check compares the objects with the files, and counts bytes that were sent twice.
func (f *fire) check(all *totals) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.fleets++
	all.events += len(f.kinds)
	if all.byKind == nil {
		all.byKind = map[kind]int{}
	}
	for _, k := range f.kinds {
		all.byKind[k]++
	}
	if all.byDefect == nil {
		all.byDefect = map[defect]int{}
	}
	for _, u := range f.unhealthy {
		all.byDefect[u.defect]++
		if u.cured {
			all.cured++
		}
	}
	all.hangs += f.hangs
	f.checkObjects(all)
	requests := map[string][]fakegcs.Request{}
	for _, r := range f.emulator.requests() {
		if r.Bucket == "data" && r.Object != "" {
			requests[r.Object] = append(requests[r.Object], r)
		}
	}
	for name, data := range f.files {
		if len(data) > smallFile {
			f.checkLarge(name, int64(len(data)), requests[name], all)
		} else {
			f.checkSmall(name, requests[name], all)
		}
	}
	f.checkTakeovers(requests, all)
}

// checkObjects counts objects that are lost, wrong or made twice, and saved uploads that are left.
func (f *fire) checkObjects(all *totals) {
	versions, err := f.emulator.versions("data")
	require.NoError(f.t, err)
	made := map[string]int{}
	for _, v := range versions {
		made[v.Name]++
		if f.files[v.Name] == nil {
			f.t.Errorf("there is an object %s, and no such file", v.Name)
		}
	}
	var missing []string
	for name, data := range f.files {
		want := 1
		if bad, ok := f.bad[name]; ok {
			all.bad++
			if data = bad.object; data == nil {
				want = 0
			}
		}
		all.objects += want
		all.bytes += int64(len(data))
		switch made[name] {
		case want:
			if want == 0 {
				continue
			}
		case 0:
			missing = append(missing, name)
			continue
		default:
			all.doubled++
			f.t.Errorf("%s was made %d times, want %d", name, made[name], want)
		}
		if got, err := f.emulator.object("data", name); err != nil || !bytes.Equal(got, data) {
			all.wrong++
			f.t.Errorf("%s is wrong (%v)", name, err)
		}
	}
	if all.lost += len(missing); len(missing) > 0 {
		f.t.Errorf("%d files are lost, such as %s", len(missing), missing[0])
	}
	saved, err := f.emulator.versions("state")
	require.NoError(f.t, err)
	saved = slices.DeleteFunc(saved, func(v version) bool {
		return v.Name == "uploads/fleet-key" || strings.HasPrefix(v.Name, "uploads/submissions/")
	})
	all.left += len(saved)
	if len(saved) > 0 {
		f.t.Errorf("%d saved uploads are left: %v", len(saved), saved)
	}
}

// checkLarge counts the bytes of a file that is sent in many requests. No request may begin below the
// offset that the service has reported as committed, unless it was under way during a cut or a stop.
func (f *fire) checkLarge(name string, size int64, requests []fakegcs.Request, all *totals) {
	var received, interrupted, late int64
	for i, q := range requests {
		if q.Op != faults.OpPut && q.Op != faults.OpFinalize {
			continue
		}
		received += q.Received
		if !succeeded(q.Status) || f.held(q) || abandoned(q, requests[i+1:]) {
			interrupted += q.Received
		}
		var from, to int64
		if n, _ := fmt.Sscanf(q.ContentRange, "bytes %d-%d/", &from, &to); n != 2 {
			continue
		}
		if known := committed(requests[:i], q.Time, size); from < known {
			again := min(q.Received, known-from)
			all.committed += again
			if f.arrivedLate(q.Time) {
				late += again
			} else if again > 0 {
				f.t.Errorf("%s: a request began at %d, and the service had reported %d as committed:\n%s", name, from, known, describe(requests[:i+1]))
			}
		}
	}
	all.late += late
	if again := received - size; again > 0 {
		all.again += again
		if again > interrupted+late {
			all.depends(f, "%s: %d bytes were received twice, want at most the %d of requests that failed, were held or given up:\n%s", name, again, interrupted+late, describe(requests))
		}
	}
}

// checkSmall counts how often a file that is sent in one request was received.
func (f *fire) checkSmall(name string, requests []fakegcs.Request, all *totals) {
	sent, made := 0, 0
	for _, q := range requests {
		if q.Op != faults.OpInsert {
			continue
		}
		sent++
		if succeeded(q.Status) && !q.Replayed { // a repeated request gets the first reply again
			made++
		}
	}
	all.smallAgain += max(0, sent-1)
	if made > 1 {
		f.t.Errorf("%s: %d requests made the object", name, made)
	}
}

// describe lists requests.
func describe(requests []fakegcs.Request) string {
	var lines strings.Builder
	for _, q := range requests {
		fmt.Fprintf(&lines, "%s to %s %s %s: %d, %d bytes received, committed %s\n", q.Time.UTC().Format("15:04:05.000"),
			q.Time.Add(q.Elapsed).UTC().Format("15:04:05.000"), q.Op, q.ContentRange, q.Status, q.Received, q.Range)
	}
	return lines.String()
}

func succeeded(status int) bool {
	return status == http.StatusOK || status == http.StatusCreated || status == http.StatusPermanentRedirect
}

// committed returns the greatest committed offset that a worker read in a reply before a time. No worker reads the
// reply to a request that it gave up, and its query may have reported less.
func committed(requests []fakegcs.Request, before time.Time, size int64) (offset int64) {
	for i, q := range requests {
		if !q.Time.Add(q.Elapsed).Before(before) || !succeeded(q.Status) || abandoned(q, requests[i+1:]) {
			continue
		}
		var last int64
		switch n, _ := fmt.Sscanf(q.Range, "bytes=0-%d", &last); {
		case n == 1:
			offset = max(offset, last+1)
		case q.Op == faults.OpFinalize:
			offset = size
		}
	}
	return offset
}

// held reports whether a request was under way when a cut or a stop ended: another worker
// may have sent the same bytes meanwhile.
func (f *fire) held(q fakegcs.Request) bool {
	return slices.ContainsFunc(f.restored, func(m time.Time) bool {
		return q.Time.Before(m) && q.Time.Add(q.Elapsed).After(m)
	})
}

// abandoned reports whether a later request began while q was under way. A worker sends one request of a file at a
// time, so it had given q up, for example because the machine was so busy that q seemed to stand still.
func abandoned(q fakegcs.Request, later []fakegcs.Request) bool {
	return slices.ContainsFunc(later, func(r fakegcs.Request) bool { return r.Time.Before(q.Time.Add(q.Elapsed)) })
}

// arrivedLate reports whether a request that began at that time may have been under
// way during a cut or a stop.
func (f *fire) arrivedLate(at time.Time) bool {
	return slices.ContainsFunc(f.restored, func(m time.Time) bool {
		return at.After(m.Add(-100*time.Millisecond)) && at.Before(m.Add(lateArrival))
	})
}
