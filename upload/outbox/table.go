package outbox

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"gcsup/chunk"
	"gcsup/upload"
)

// small is the size up to which a file is sent in one request, from memory.
const small = 8 << 20

// limits bound the attempts at a time.
type limits struct {
	small, large lane  // files of up to 8 MiB, and larger ones
	jobs         int   // both together
	memory       int64 // bytes of small files, and of their connections
	ordered      bool  // one file at a time, by name
}

// entry is a file in the table.
type entry struct {
	file
	name string // relative, with slashes
}

// size returns the size of the file as it was last seen.
func (e *entry) size() int64 { return e.id.Size }

// todo is what the table wants to have done.
type todo struct {
	look   []string // names of files to inspect
	giveUp []*entry
	halt   bool // no file can be removed
}

// table has the files of an outbox that are not forgotten. It makes no I/O, and has no clock.
type table struct {
	rules  rules
	limits limits

	files  *index
	timers timers
	names  nameHeap    // with limits.ordered: of all files that are not kept; may have more
	queues [2][]*entry // otherwise: complete files, small and large, in the order in which they became complete

	scan      uint32           // number of the current or last scan
	scanned   bool             // a scan was complete
	walking   int              // directories that are being read, those below one another included
	lanes     [2]lane          // of small and of large files
	committed map[*entry]int64 // bytes that the service has, of attempts under way
	inMemory  int64            // bytes of small files under way, and of their connections
	succeeded uint32           // files uploaded
}

func newTable(r rules, l limits) *table {
	return &table{rules: r, limits: l, lanes: [2]lane{l.small, l.large}, files: newIndex(), committed: map[*entry]int64{}}
}

// class returns 0 for a small file and 1 for a large one.
func class(size int64) int {
	if size <= small {
		return 0
	}
	return 1
}

// moment returns the current moment for a decision. The outbox was opened at that time, and at is the time since
// then by a clock that does not jump.
func (t *table) moment(at instant, opened, clock time.Time) moment {
	// If the clock jumped, a file that was changed before would seem to be older than it is.
	wall := min(clock.UnixNano(), opened.UnixNano()+int64(at))
	return moment{at: at, clock: clock, wall: wall, uploaded: t.succeeded, random: rand.Float64()}
}

// seen passes on what a scan or an inspection found.
func (t *table) seen(name string, e event, now moment, do *todo) {
	f := t.files.get(name)
	if f == nil {
		if e.kind == absent {
			return
		}
		// A file that was there before the process may have been uploaded by an earlier one.
		f = &entry{name: name, file: file{since: now.at, due: never, compare: !t.scanned, id: chunk.Identity{Size: -1}}}
		t.files.add(f)
		t.line(f)
	}
	f.scan = t.scan
	t.step(f, e, now, do)
}

// line puts a file in the order of names.
func (t *table) line(f *entry) {
	if t.limits.ordered {
		heap.Push(&t.names, f)
	}
}

// begin begins a scan of the whole directory.
func (t *table) begin() { t.scan++ }

// end ends a scan. If it was complete, the files that it did not find are gone.
func (t *table) end(whole bool, now moment, do *todo) {
	if !whole {
		return
	}
	t.scanned = true
	var gone []*entry
	for f := range t.files.all() {
		if f.scan != t.scan {
			gone = append(gone, f)
		}
	}
	for _, f := range gone {
		t.step(f, event{kind: absent}, now, do)
	}
}

// step applies an event to a file.
func (t *table) step(f *entry, e event, now moment, do *todo) {
	was := f.file
	var a action
	f.file, a = t.rules.step(f.file, e, now)
	f.scan = was.scan
	if f.due != was.due && f.due != never {
		heap.Push(&t.timers, timer{f.due, f})
	}
	if was.phase == kept && f.phase != kept {
		t.line(f)
	}
	switch a {
	case look:
		do.look = append(do.look, f.name)
	case queue:
		if !t.limits.ordered {
			c := class(f.size())
			t.queues[c] = append(t.queues[c], f)
		}
	case giveUp:
		do.giveUp = append(do.giveUp, f)
	case halt:
		do.halt = true
	case forget:
		t.forget(f)
	case forgetAndLook:
		t.forget(f)
		do.look = append(do.look, f.name)
	}
}

// has reports whether a file is not forgotten. Another one may have its name.
func (t *table) has(f *entry) bool { return t.files.get(f.name) == f }

func (t *table) forget(f *entry) {
	if t.has(f) {
		t.files.remove(f.name)
	}
}

// expire passes on at most n times that have passed, and returns the next one.
func (t *table) expire(now moment, n int, do *todo) (next instant) {
	for ; len(t.timers) > 0; n-- {
		first := t.timers[0]
		if first.at > now.at || n <= 0 {
			return first.at
		}
		heap.Pop(&t.timers)
		if f := first.file; f.due == first.at && t.has(f) {
			t.step(f, event{kind: expired}, now, do)
		}
	}
	return never
}

// take returns the next file to upload, or nil if none can be now. The caller must call done.
func (t *table) take(now moment) *entry {
	f := t.next(now)
	if f == nil {
		return nil
	}
	t.inMemory += t.memoryOf(f)
	t.committed[f] = 0
	t.step(f, event{kind: taken}, now, nil)
	return f
}

// memoryOf returns how much memory an attempt at a file takes, as far as it is bounded.
func (t *table) memoryOf(f *entry) int64 {
	c := class(f.size())
	switch {
	case c != 0:
		return 0
	case t.lanes[c].limiter != nil:
		return f.size() + connectionMemory(f.size())
	}
	return f.size()
}

// next removes the next file from its queue, and counts its attempt.
func (t *table) next(now moment) *entry {
	running := t.lanes[0].active + t.lanes[1].active
	if t.limits.ordered {
		// A directory that is being read may have a file with a lesser name: it may have been renamed into the outbox
		// with all its files.
		for running == 0 && t.walking == 0 && len(t.names) > 0 {
			switch f := t.names[0]; {
			case !t.has(f) || f.phase == kept:
				heap.Pop(&t.names)
			case f.phase == complete && t.lanes[class(f.size())].start(now.clock):
				return f
			default:
				return nil
			}
		}
		return nil
	}
	for c := range t.queues {
		for len(t.queues[c]) > 0 && running < t.limits.jobs {
			f := t.queues[c][0]
			usable := f.phase == complete && t.has(f) && class(f.size()) == c
			if usable && c == 0 && t.inMemory > 0 && t.inMemory+t.memoryOf(f) > t.limits.memory || usable && !t.lanes[c].start(now.clock) {
				break
			}
			if t.queues[c] = t.queues[c][1:]; usable {
				return f
			}
		}
		if len(t.queues[c]) == 0 {
			t.queues[c] = nil
		}
	}
	return nil
}

// done ends the attempt of a file that take returned. sent reports whether its bytes were sent.
func (t *table) done(f *entry, e event, sent bool, now moment, do *todo) {
	delete(t.committed, f)
	t.inMemory -= t.memoryOf(f)
	var bytes int64
	if c := class(f.size()); c == 0 && sent {
		bytes = f.size()
	}
	t.lane(f).ended(now.clock, bytes)
	if e.outcome == disposed || e.outcome == recorded {
		t.succeeded++
		now.uploaded = t.succeeded
	}
	t.step(f, e, now, do)
}

// lane returns the lane of a file.
func (t *table) lane(f *entry) *lane { return &t.lanes[class(f.size())] }

// observed follows an attempt that is under way.
func (t *table) observed(f *entry, e upload.Event, now time.Time) {
	if _, active := t.committed[f]; !active {
		return
	}
	t.committed[f] = e.Committed
	if class(f.size()) != 0 {
		t.lane(f).sent(now, e.SentDelta)
	}
	if overload(e) {
		t.lane(f).refused(now)
	}
}

// timer is when to look at a file again. It counts if it is still the due of the file.
type timer struct {
	at   instant
	file *entry
}

// timers is a heap by time.
type timers []timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timers) Push(x any)        { *h = append(*h, x.(timer)) }
func (h *timers) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = timer{}
	if *h = old[:len(old)-1]; cap(old) > 1024 && len(old) < cap(old)/4 {
		*h = slices.Clone(*h) // all files of a backlog may have settled at the same time
	}
	return last
}

// nameHeap is a heap by name.
type nameHeap []*entry

func (h nameHeap) Len() int           { return len(h) }
func (h nameHeap) Less(i, j int) bool { return h[i].name < h[j].name }
func (h nameHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nameHeap) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *nameHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
