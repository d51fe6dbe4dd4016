//go:build unix

package e2e_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
)

// check checks everything after the last process.
func (r *sharedRun) check(all *sharedTotals) {
	r.t.Helper()
	s := r.service
	all.empty += s.left()
	s.complete(r.sources)
	r.readLogs()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.log, func(a, b sharedRequest) int { return a.Time.Compare(b.Time) })
	all.runs++
	all.processes += len(r.processes)
	for name, size := range r.sizes {
		all.objects++
		all.sizes += size
		r.checkSessions(name, size, all)
	}
	for _, q := range s.log {
		if q.Fault != "" {
			all.fault++
		}
		r.checkLease(q, all)
	}
	for _, body := range s.saved {
		if s.hasURI(string(body)) {
			r.t.Error("a session URI was saved in plain text")
		}
	}
	for _, p := range r.processes {
		if !p.killed.IsZero() {
			all.kills++
		}
		all.stops += len(p.stops)
		r.checkEnd(p, all)
		r.checkTakeovers(p, all)
		if s.hasURI(p.Stdout() + p.Stderr() + p.logged) {
			r.t.Errorf("process %d: a session URI is in its output or in its log", p.number)
		}
	}
}

// checkEnd checks the exit code and the results of a process.
func (r *sharedRun) checkEnd(p *sharedProcess, all *sharedTotals) {
	code, want := p.Wait(), 0
	for _, l := range p.lines() {
		if l.Type != "result" {
			continue
		}
		if r.lost(p, l.ID) && l.kind() != "in_use" {
			r.t.Errorf("process %d: %s ended with %s, want in_use", p.number, l.Destination, l.kind())
		}
		if l.Status != "failed" {
			continue
		}
		if l.kind() != "in_use" {
			r.t.Errorf("process %d: %s: %+v", p.number, l.Destination, l.Error)
		}
		all.inUse++
		want = 75
	}
	if code != want && (code != -1 || p.killed.IsZero()) {
		r.t.Errorf("process %d ended with %d, want %d: %s", p.number, code, want, p.output())
	}
}

// checkSessions checks the requests of the sessions of an object: no process sends a
// byte below an offset that it knew to be committed, and there is another session
// only if the previous one was finished or not used.
func (r *sharedRun) checkSessions(object string, size int64, all *sharedTotals) {
	type history struct {
		began    time.Time
		sent     int64 // bytes that the server received, for this object
		cut      int64 // those of interrupted requests
		used     bool
		finished bool
	}
	sessions := map[string]*history{}
	var last *history
	generations := map[int64]bool{}
	for _, q := range r.service.log {
		if q.Bucket != "demo" || q.Object != object {
			continue
		}
		if q.Op == faults.OpStart {
			if q.session == "" {
				continue // its reply was lost, or it was refused
			}
			if last != nil && !last.finished {
				if last.used {
					r.t.Errorf("%s: process %d started another session, and the one before was used", object, q.process)
				}
				all.unused++
			}
			last = &history{began: q.Time}
			sessions[q.session] = last
			all.sessions++
			continue
		}
		h := sessions[q.session]
		if h == nil || q.Op != faults.OpPut && q.Op != faults.OpFinalize {
			continue
		}
		h.used = true
		from, to := q.span()
		if known := r.known(q, h.began); from < known && to > from {
			r.t.Errorf("%s: process %d sent %s, and knew that %d bytes are committed", object, q.process, q.ContentRange, known)
		}
		h.sent += q.Received
		if q.Received != to-from || !success(q.Status) || r.overtaken(q) {
			h.cut += q.Received
			all.interrupted++
		}
		if q.Op == faults.OpFinalize && q.Status == 412 {
			h.finished = true // another process made the object, which must not be replaced
		}
		if q.generation != 0 && !generations[q.generation] {
			generations[q.generation] = true
			h.finished = true
			if again := h.sent - size; again > 0 {
				all.again += again
				if again > h.cut {
					r.t.Errorf("%s: %d bytes were received twice, want at most the %d bytes of interrupted requests", object, again, h.cut)
				}
			}
		}
	}
	if len(generations) != 1 && r.noClobber || len(generations) == 0 {
		r.t.Errorf("%s: %d objects were made, want 1", object, len(generations))
	}
}

// overtaken reports whether another process used the session of a request while the request was
// under way, because its own process was stopped.
func (r *sharedRun) overtaken(q sharedRequest) bool {
	return slices.ContainsFunc(r.service.log, func(other sharedRequest) bool {
		return other.session == q.session && other.process != q.process && other.Time.After(q.Time) && other.Time.Before(q.Time.Add(q.Elapsed))
	})
}

// known returns the committed offset that a process had received before it made a
// request, for a session that began at a moment.
func (r *sharedRun) known(q sharedRequest, began time.Time) (offset int64) {
	p := r.process(q.process)
	if p == nil {
		return 0
	}
	from, to := q.span()
	for _, x := range p.exchanges {
		if r.objects[x.id] != q.Object || !success(x.status) || !x.began.After(began) || !x.ended.Before(q.Time) {
			continue
		}
		// The times in a log are rounded down, so that the reply to a short request seems to
		// have arrived before it.
		if own := x.from == from && x.sent == to && !x.ended.Add(logPrecision).Before(q.Time); !own {
			offset = max(offset, x.held)
		}
	}
	return offset
}

// logPrecision is the precision of the times in a log.
const logPrecision = time.Millisecond

// process returns a process by its number.
func (r *sharedRun) process(n int) *sharedProcess {
	if n < 1 || n > len(r.processes) {
		return nil
	}
	return r.processes[n-1]
}

// checkLease checks that the process of a request had the lease when the request began. A process notices soon that
// another one has acquired the lease. If it was stopped at that moment, it begins no request when it
// continues; only one that was under way arrives then.
func (r *sharedRun) checkLease(q sharedRequest, all *sharedTotals) {
	// A request needs some time from its check of the lease to the server.
	const arrival = sharedLease / 8
	p := r.process(q.process)
	if q.Bucket != "demo" || q.session == "" || p == nil {
		return
	}
	id, began, logged := r.ids[q.Object], q.Time, false
	for _, x := range p.exchanges {
		if at := x.began.Add(logPrecision); x.id == id && x.op == string(q.Op) && at.Before(began) && x.ended.Add(logPrecision).After(q.Time) {
			began, logged = at, true
		}
	}
	if slices.ContainsFunc(p.stops, func(s span) bool { return began.Before(s.from) && q.Time.After(s.to) }) {
		all.straddling++
	}
	changes := r.service.leases[id]
	last := lastChange(changes, began)
	taken := time.Time{} // when another process acquired the lease that this one had
	for _, c := range changes[:last+1] {
		switch c.process {
		case p.number:
			taken = time.Time{}
		case 0:
		default:
			if taken.IsZero() {
				taken = c.time
			}
		}
	}
	if taken.IsZero() {
		return
	}
	stopped := slices.ContainsFunc(p.stops, func(s span) bool { return taken.After(s.from) && taken.Before(s.to) })
	if stopped && !logged && !p.killed.IsZero() {
		return // it may have been under way
	}
	if stopped || changes[last].process != 0 && began.Sub(taken) > arrival {
		r.t.Errorf("%s of %s by process %d, and another process acquired the lease %v before", q.Op, q.Object, p.number, began.Sub(taken))
	}
}

// lost reports whether a process had the lease of an upload, knew it, and was stopped while another process
// acquired the lease. It returns false if the process was finishing the upload.
func (r *sharedRun) lost(p *sharedProcess, id string) bool {
	changes := r.service.leases[id]
	return slices.ContainsFunc(p.stops, func(stop span) bool {
		knew, finishing := false, false
		for _, x := range p.exchanges {
			if x.id == id && x.began.Before(stop.from) {
				knew, finishing = true, finishing || x.op == string(faults.OpFinalize)
			}
		}
		i := lastChange(changes, stop.from)
		return knew && !finishing && i >= 0 && changes[i].process == p.number && slices.ContainsFunc(changes, func(c leaseChange) bool {
			return c.process != 0 && c.process != p.number && c.time.After(stop.from) && c.time.Before(stop.to)
		})
	})
}

// clientExchange is a request in the log file of a process.
type clientExchange struct {
	op, id       string
	began, ended time.Time
	status       int
	// The offset of the data, or the committed offset before the request; the end of the
	// data; and the committed offset in the reply, or -1.
	from, sent, held int64
}

// success reports whether the service accepted a request.
func success(status int) bool { return status == 200 || status == 201 || status == 308 }

// logField matches an attribute of a line in a log file.
var logField = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)

// parseExchange parses a line of a log file. ok is false if it is not that of a request for
// an upload.
func parseExchange(line string) (x clientExchange, ok bool, err error) {
	fields := map[string]string{"held": "-1"}
	for _, m := range logField.FindAllStringSubmatch(line, -1) {
		fields[m[1]] = m[2]
	}
	if fields["level"] != "DEBUG" || fields["id"] == `""` {
		return x, false, nil
	}
	number := func(name string) int64 {
		n, failed := strconv.ParseInt(fields[name], 10, 64)
		err = errors.Join(err, failed)
		return n
	}
	x = clientExchange{op: fields["msg"], id: fields["id"], status: int(number("status")), from: number("from"), held: number("held")}
	x.sent = x.from + number("sent")
	took, failed := time.ParseDuration(fields["took"])
	err = errors.Join(err, failed)
	x.ended, failed = time.Parse(time.RFC3339Nano, fields["time"])
	x.began = x.ended.Add(-took)
	return x, true, errors.Join(err, failed)
}

// readLogs reads the logs and the output of the processes.
func (r *sharedRun) readLogs() {
	for _, p := range r.processes {
		for _, l := range p.lines() {
			if object, ok := strings.CutPrefix(l.Destination, "gs://demo/"); ok && l.ID != "" {
				r.objects[l.ID], r.ids[object] = object, l.ID
			}
		}
		data, err := os.ReadFile(p.log)
		if err != nil && !os.IsNotExist(err) {
			r.t.Error(err)
		}
		p.logged = string(data)
		for text := range strings.Lines(p.logged) {
			x, ok, err := parseExchange(text)
			if err != nil && strings.HasSuffix(text, "\n") { // otherwise the process was killed
				r.t.Errorf("log of process %d: %q: %v", p.number, text, err)
			}
			if !ok || err != nil {
				continue
			}
			p.exchanges = append(p.exchanges, x)
		}
	}
	if !slices.ContainsFunc(r.processes, func(p *sharedProcess) bool { return len(p.exchanges) > 0 }) {
		r.t.Error("no log has an exchange: the format differs from parseExchange")
	}
}

// checkTakeovers checks that the uploads of a process that was killed, or stopped for
// longer than its lease, are resumed in time if another process waits for them.
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
			limit := end.Add(takeoverMargin + r.lag(end, end.Add(takeoverMargin)))
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
			if taken.IsZero() || taken.After(limit) {
				r.t.Errorf("process %d waited for %s, whose holder %d was killed or stopped; it was taken %v after the end of the lease, want at most %v", waiting, id, p.number, after, takeoverMargin)
			}
		}
	}
}

// waiting returns a process that began to wait for an upload between the last renewal
// and the end of the lease. It was not disturbed until the lease was acquired, or
// until limit. It returns 0 if there is none.
func (r *sharedRun) waiting(id string, renewed, end, taken, limit time.Time) int {
	until := limit
	if !taken.IsZero() && taken.Before(limit) {
		until = taken
	}
	first := map[int]time.Time{} // by process: its first attempt
	for _, q := range r.service.log {
		if q.Bucket == stateBucket && q.Object == stateObject(id) && q.Op == faults.OpInsert && first[q.process].IsZero() {
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
