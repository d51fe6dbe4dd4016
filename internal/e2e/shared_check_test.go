//go:build unix

package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"gcsup/fakegcs"
)

// checkSessions checks the requests of the sessions of an object: no process sends a
// byte below an offset that it knew to be committed, and there is another session only
// if the one before was finished or not used.
func (r *sharedRun) checkSessions(src sharedSource, all *sharedTotals) {
	type history struct {
		sent     int64         // bytes that the server received, for this object
		cut      int64         // those of interrupted requests
		told     map[int]int64 // by process: the committed offset that it knows
		ended    map[int]time.Time
		used     bool
		finished bool
	}
	sessions := map[string]*history{}
	var last *history
	generations := map[int64]bool{}
	for _, q := range r.service.log {
		if q.Bucket != "data" || q.Object != src.object {
			continue
		}
		if q.Op == fakegcs.OpStart {
			if q.session == "" {
				continue // its reply was lost, or it was refused
			}
			if last != nil && !last.finished {
				if last.used {
					r.t.Errorf("%s: process %d started another session, and the one before was used", src.object, q.process)
				}
				all.unused++
			}
			last = &history{told: map[int]int64{}}
			sessions[q.session] = last
			all.sessions++
			continue
		}
		h := sessions[q.session]
		if h == nil {
			continue
		}
		if q.Op == fakegcs.OpPut || q.Op == fakegcs.OpFinalize {
			h.used = true
			from, to := q.span()
			if told := h.told[q.process]; from < told && to > from {
				all.committedAgain += told - from
				r.t.Errorf("%s: process %d sent %s, and knew that %d bytes are committed", src.object, q.process, q.ContentRange, told)
			}
			h.sent += q.Received
			if q.interrupted() {
				h.cut += q.Received
				all.interrupted++
			}
			if q.generation != 0 && !generations[q.generation] {
				generations[q.generation] = true
				h.finished = true
				if again := h.sent - int64(len(src.content)); again > 0 {
					all.again += again
					if again > h.cut {
						r.t.Errorf("%s: %d bytes were received twice, want at most the %d bytes of interrupted requests", src.object, again, h.cut)
					}
				}
			}
		}
		if committed, ok := q.committed(); ok {
			h.told[q.process] = max(h.told[q.process], committed)
		}
	}
	if len(generations) != 1 && r.noClobber || len(generations) == 0 {
		r.t.Errorf("%s: %d objects were made, want 1", src.object, len(generations))
	}
}

// checkWake checks that a process that was stopped begins no request for an upload that
// another process took meanwhile.
func (r *sharedRun) checkWake(p *sharedProcess, all *sharedTotals) {
	if !p.killed.IsZero() {
		return // its log may be incomplete
	}
	exchanges := p.exchanges(r.t.Errorf)
	for _, stop := range p.stops {
		for id, changes := range r.service.leases {
			taken := false
			held := ownerAt(changes, stop.from)
			for _, c := range changes {
				taken = taken || c.process != 0 && c.process != p.number && c.time.After(stop.from) && c.time.Before(stop.to)
			}
			if held != p.number || !taken {
				continue
			}
			// What began before the stop may arrive now.
			middle := stop.from.Add(stop.to.Sub(stop.from) / 2)
			straddling := 0
			for _, x := range exchanges {
				switch {
				case x.id != id || x.ended.Before(stop.to):
				case x.began.Before(middle):
					straddling++
				default:
					r.t.Errorf("process %d began a request (%s) for %s when it continued, and another process had taken it", p.number, x.op, id)
				}
			}
			arrived, finished := 0, false
			object := r.objectOf(id)
			for _, q := range r.service.log {
				if q.process != p.number || q.Bucket != "data" || q.Object != object || q.session == "" {
					continue
				}
				if q.Time.After(stop.to) {
					arrived++
				}
				finished = finished || q.Op == fakegcs.OpFinalize
			}
			if arrived > straddling {
				r.t.Errorf("process %d: %d requests for %s arrived after it continued, and %d were under way", p.number, arrived, object, straddling)
			}
			all.straddling += arrived
			for _, l := range p.child.lines() {
				if l.Type == "result" && l.ID == id && l.kind() != "in_use" && !finished {
					r.t.Errorf("process %d: %s ended with %s, want in_use", p.number, object, l.kind())
				}
			}
		}
	}
}

// clientExchange is a request in the log file of a process.
type clientExchange struct {
	op, id       string
	began, ended time.Time
}

var exchangeLine = regexp.MustCompile(`^time=(\S+) level=DEBUG msg=(\w+) id=(\w+) .* took=(\S+)\n$`)

func (p *sharedProcess) exchanges(errorf func(string, ...any)) (all []clientExchange) {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return nil // it ended before it made a request
	}
	for text := range strings.Lines(string(data)) {
		m := exchangeLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		x := clientExchange{op: m[2], id: m[3]}
		x.ended, err = time.Parse(time.RFC3339Nano, m[1])
		took, err2 := time.ParseDuration(m[4])
		if err != nil || err2 != nil {
			errorf("log of process %d: %q", p.number, text)
		}
		x.began = x.ended.Add(-took)
		all = append(all, x)
	}
	return all
}

// objectOf returns the object of an upload.
func (r *sharedRun) objectOf(id string) string {
	for _, p := range r.processes {
		for _, l := range p.child.lines() {
			if l.ID == id {
				return strings.TrimPrefix(l.Destination, "gs://data/")
			}
		}
	}
	return ""
}

// checkTakeovers checks that the uploads of a process that was killed, or stopped for
// longer than its lease, are taken over in time if another process waits for them.
func (r *sharedRun) checkTakeovers(p *sharedProcess, all *sharedTotals) {
	var lost []span
	if !p.killed.IsZero() {
		lost = append(lost, span{from: p.killed})
	}
	lost = append(lost, p.stops...)
	for _, gone := range lost {
		for id, changes := range r.service.leases {
			i := lastChange(changes, gone.from)
			if i < 0 || changes[i].process != p.number {
				continue
			}
			end := changes[i].time.Add(sharedLease)
			limit := end.Add(takeoverMargin)
			var taken time.Time
			for _, c := range changes[i+1:] {
				if c.process != 0 && c.process != p.number {
					taken = c.time
					break
				}
			}
			if !gone.to.IsZero() && (gone.to.Before(limit) && taken.IsZero() || !taken.IsZero() && gone.to.Before(taken)) {
				continue // it continued in time
			}
			waiting := r.waiting(id, changes[i].time, end, taken, limit)
			if waiting == 0 {
				continue
			}
			all.takeovers++
			after := taken.Sub(end)
			all.slowest = max(all.slowest, after)
			if taken.IsZero() || after > takeoverMargin {
				all.late++
				r.t.Errorf("process %d waited for %s, whose holder %d was killed or stopped; it was taken %v after the end of the lease, want at most %v", waiting, id, p.number, after, takeoverMargin)
			}
		}
	}
}

// waiting returns a process that began to wait for an upload after its last renewal and
// before the end of the lease, and that nothing disturbed until the upload was taken, or
// until limit. It returns 0 if there is none.
func (r *sharedRun) waiting(id string, renewed, end, taken, limit time.Time) int {
	until := limit
	if !taken.IsZero() && taken.Before(limit) {
		until = taken
	}
	first := map[int]time.Time{} // by process: its first attempt
	for _, q := range r.service.log {
		if q.Bucket == stateBucket && q.Object == stateObject(id) && q.Op == fakegcs.OpInsert && first[q.process].IsZero() {
			first[q.process] = q.Time
		}
	}
	for n, began := range first {
		p := r.process(n)
		if p == nil || began.Before(renewed) || began.After(end) || !p.killed.IsZero() && p.killed.Before(until) {
			continue
		}
		disturbed := false
		for _, s := range p.stops {
			disturbed = disturbed || s.from.Before(until) && s.to.After(began)
		}
		if !disturbed {
			return n
		}
	}
	return 0
}

// checkFence checks that the requests of a session come from the process that has the
// lease. A process that was stopped is checked by checkWake.
func (r *sharedRun) checkFence() {
	// A request needs some time from its check of the lease to the server.
	const arrival = sharedLease / 8
	ids := map[string]string{}
	for id := range r.service.leases {
		ids[r.objectOf(id)] = id
	}
	for _, q := range r.service.log {
		p := r.process(q.process)
		if q.Bucket != "data" || q.session == "" || p == nil || len(p.stops) > 0 {
			continue
		}
		changes := r.service.leases[ids[q.Object]]
		i := lastChange(changes, q.Time.Add(-arrival))
		if i >= 0 && changes[i].process != 0 && changes[i].process != q.process && ownerAt(changes, q.Time) != q.process {
			r.t.Errorf("%s of %s by process %d, and process %d has the lease", q.Op, q.Object, q.process, changes[i].process)
		}
	}
}

// span returns the bytes that a data request has.
func (q *sharedRequest) span() (from, to int64) {
	if n, _ := fmt.Sscanf(q.ContentRange, "bytes %d-%d/", &from, &to); n == 2 {
		return from, to + 1
	}
	return 0, 0
}

// interrupted reports whether a data request did not end with the reply of the service
// that it was committed.
func (q *sharedRequest) interrupted() bool {
	from, to := q.span()
	return q.Received != to-from || q.Status != 200 && q.Status != 201 && q.Status != 308
}

// committed returns the committed offset in the reply.
func (q *sharedRequest) committed() (int64, bool) {
	var last int64
	if _, err := fmt.Sscanf(q.Range, "bytes=0-%d", &last); err != nil || q.Status == 0 {
		return 0, false
	}
	return last + 1, true
}
