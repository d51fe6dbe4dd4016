//go:build unix

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
)

// checkSessions checks the requests of the sessions of an object: no process sends a
// byte below an offset that it knew to be committed, and there is another session
// only if the previous one was finished or not used.
func (r *sharedRun) checkSessions(src sharedSource, all *sharedTotals) {
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
	acknowledged := r.acknowledged(src.object)
	for _, q := range r.service.log {
		if q.Bucket != "data" || q.Object != src.object {
			continue
		}
		if q.Op == faults.OpStart {
			if q.session == "" {
				continue // its reply was lost, or it was refused
			}
			if last != nil && !last.finished {
				if last.used {
					r.t.Errorf("%s: process %d started another session, and the one before was used", src.object, q.process)
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
			all.committedAgain += known - from
			r.t.Errorf("%s: process %d sent %s, and knew that %d bytes are committed", src.object, q.process, q.ContentRange, known)
		}
		h.sent += q.Received
		ack := acknowledgment{q.process, string(q.Op), from, to}
		if q.Received == to-from && q.succeeded() && acknowledged[ack] > 0 && !r.overtaken(q) {
			acknowledged[ack]--
		} else {
			h.cut += q.Received
			all.interrupted++
		}
		if q.Op == faults.OpFinalize && q.Status == 412 {
			h.finished = true // another process made the object, which must not be replaced
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
	if len(generations) != 1 && r.noClobber || len(generations) == 0 {
		r.t.Errorf("%s: %d objects were made, want 1", src.object, len(generations))
	}
}

// overtaken reports whether another process used the session of a request while the request was
// under way, because its own process was stopped.
func (r *sharedRun) overtaken(q sharedRequest) bool {
	return slices.ContainsFunc(r.service.log, func(other sharedRequest) bool {
		return other.session == q.session && other.process != q.process && other.Time.After(q.Time) && other.Time.Before(q.Time.Add(q.Elapsed))
	})
}

// acknowledgment is a data request whose reply a process received.
type acknowledgment struct {
	process  int
	op       string
	from, to int64
}

// acknowledged counts the data requests for an object whose replies were received.
func (r *sharedRun) acknowledged(object string) map[acknowledgment]int {
	all := map[acknowledgment]int{}
	for _, p := range r.processes {
		for _, x := range p.exchanges {
			if r.objects[x.id] == object && x.answered() {
				all[acknowledgment{p.number, x.op, x.from, x.sent}]++
			}
		}
	}
	return all
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
		if r.objects[x.id] != q.Object || !x.answered() || !x.began.After(began) || !x.ended.Before(q.Time) {
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

// checkWake checks that a process that was stopped begins no request for an upload
// whose lease another process acquired meanwhile.
func (r *sharedRun) checkWake(p *sharedProcess, all *sharedTotals) {
	if !p.killed.IsZero() {
		return // its log may be incomplete
	}
	for _, stop := range p.stops {
		for id, changes := range r.service.leases {
			taken := false
			held := ownerAt(changes, stop.from)
			for _, c := range changes {
				taken = taken || c.process != 0 && c.process != p.number && c.time.After(stop.from) && c.time.Before(stop.to)
			}
			began := func(x clientExchange) bool { return x.id == id && x.began.Before(stop.from) }
			if held != p.number || !taken || !slices.ContainsFunc(p.exchanges, began) {
				continue // it may not have known that it had the lease
			}
			// A request that began before the stop may arrive now.
			middle := stop.from.Add(stop.to.Sub(stop.from) / 2)
			straddling := 0
			for _, x := range p.exchanges {
				switch {
				case x.id != id || x.ended.Before(stop.to):
				case x.began.Before(middle):
					straddling++
				default:
					r.t.Errorf("process %d began a request (%s) for %s when it continued, and another process had taken it", p.number, x.op, id)
				}
			}
			arrived, finished := 0, false
			object := r.objects[id]
			for _, q := range r.service.log {
				if q.process != p.number || q.Bucket != "data" || q.Object != object || q.session == "" {
					continue
				}
				if q.Time.After(stop.to) {
					arrived++
				}
				finished = finished || q.Op == faults.OpFinalize
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
	status       int
	// The offset of the data, or the committed offset before the request; the end of the
	// data; and the committed offset in the reply, or -1.
	from, sent, held int64
}

// answered reports whether the process received the reply of the service.
func (x clientExchange) answered() bool { return success(x.status) }

func success(status int) bool { return status == 200 || status == 201 || status == 308 }

// succeeded reports whether the service accepted the bytes.
func (q *sharedRequest) succeeded() bool { return success(q.Status) }

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
		for _, l := range p.child.lines() {
			if object, ok := strings.CutPrefix(l.Destination, "gs://data/"); ok && l.ID != "" {
				r.objects[l.ID] = object
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
				all.late++
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

// checkFence checks that the requests of a session come from the process that has the
// lease. A process that was stopped is checked by checkWake.
func (r *sharedRun) checkFence() {
	// A request needs some time from its check of the lease to the server.
	const arrival = sharedLease / 8
	ids := map[string]string{}
	for id := range r.service.leases {
		ids[r.objects[id]] = id
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
