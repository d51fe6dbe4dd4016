package decide_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/internal/testsize"
	"gcsup/session"
)

// A partsWalk walks the upload of a file in three parts: a model of the service, a record that
// survives the process, and a driver that asks the tables. In every reachable state it gives every
// answer, lets other clients interfere, kills the process, and cancels the upload, until it finds
// no new state. What is true in each state is therefore true for histories of any length.
//
// States that differ only in the following are one state:
//
//   - The parts are sent one after the other, and their order does not matter: the conversations
//     of two parts have no common state.
//   - Of the generations at the destination, only the current one and one that the driver saw
//     before are distinguished.
//   - Other clients write or delete the object at the destination only before an exchange that
//     concerns it. They can make any object then. Until then, the walk forgets the object.
//   - The record may lack a part that is finished, whenever a process is killed.
//   - Statuses with one meaning are one status: 503 is also 429, 400 is also 409, and 404 is also
//     410. A stranger's refusal is a 404. The walks of the tables have all of them.
//   - Sessions and multipart uploads whose start was not acknowledged are not modeled. They have
//     no bytes, and cost nothing.
//
// In one conversation, the service denies only once what it has. The driver cannot distinguish two
// wrong answers from correct ones.
type partsWalk struct {
	t             *testing.T
	way           way
	pinned        bool // the caller requires that there is no object at the destination
	unconditional bool // as in decide.Join
	uri           session.URI
	every         int // give one of this many answers of a service that does not work

	ids    map[site]int32
	sites  []site
	parent []int32       // the state from which a state was first reached
	best   []int32       // the next state if the service works; -1 at the end
	free   [][]int       // edges without a wait, in one process
	tables []any         // states of the tables
	talks  map[any]int32 // their indexes
	edges  int
	resent map[string]int // why parts that the service has are sent again, and how often
}

// way is the way in which parts become one object.
type way interface {
	// run returns the first state of a process, which knows only the record.
	run(w *partsWalk, s site) site

	// exchange returns what can happen in the next exchange. The first event is that of a
	// service that works.
	exchange(w *partsWalk, s site) []event

	// disturbed returns the states after something happens that is no exchange of the driver.
	disturbed(w *partsWalk, s site) []site

	// ended returns the state after a conversation ended with the action.
	ended(w *partsWalk, e event, a session.Action) site
}

// site is a state of the walk.
type site struct {
	// The service. Each part has bits of the service, the record and the driver.
	parts [3]part // sorted, except for the first one if the conversation concerns only it
	dest  dest
	live  life // of the multipart upload on record, or of the session on record

	// unshown reports that the object of the parts was made, and no answer since showed the driver
	// that, or that there is no object.
	unshown bool

	// The record.
	saved   bool // there is one
	over    bool // everything must be removed
	joining bool // a request that joins the parts may have been sent, and its outcome is not known

	// The driver.
	phase    phase
	talk     int32 // the state of the table
	step     session.Step
	join     int32 // the decide.Join while parts are inspected and sent again; 0 if there is none
	resent   bool  // the conversation with that state is a new one
	rounds   int8  // how often parts were inspected
	starts   int8  // how often the multipart upload was replaced
	gone     bool  // the multipart upload does not exist
	differ   int8  // answers of this conversation that differed from what is known
	wrong    bool  // the service denied what it has, in this conversation
	replaced bool  // the part gets another session than that on record
}

// part is a set of facts about a part.
type part uint8

const (
	stored   part = 1 << iota // the service has its bytes: in the multipart upload or as a temporary object
	begun                     // it has a session on record
	finished                  // the driver knows that it is finished
	lacking                   // all answers that differed lacked it
	visited                   // it was inspected or removed
)

// dest is the object at the destination.
type dest uint8

const (
	noObject    dest = iota
	otherObject      // another client wrote it
	ourObject        // it has the bytes of the source
)

// Generations at the destination. The driver saw oldGeneration before another client wrote.
const oldGeneration, otherGeneration, ourGeneration = 7, 8, 9

func (d dest) generation() int64 { return [...]int64{0, otherGeneration, ourGeneration}[d] }

// life is the state of a multipart upload or of a session.
type life uint8

const (
	isGone  life = iota
	isOpen       // a session: without bytes
	isHeld       // a session that has all bytes and is not final
	isFinal      // a session that made the object
	isUnmet      // a session whose precondition failed
)

// phase is the purpose of a conversation.
type phase uint8

const (
	toStart   phase = iota // start a multipart upload
	toList                 // which parts it has
	toCheck                // whether the object exists, before parts are sent
	toJoin                 // all parts
	toSend                 // the first part
	toInspect              // the temporary object of the first part
	toCancel               // the session of the first part
	toFind                 // the temporary object that the session may have made
	toRemove               // the temporary object of the first part, or the multipart upload
	atEnd                  // the upload ended, and there is no record
)

func (p phase) String() string {
	return [...]string{"start", "list", "check", "join", "send", "inspect", "cancel", "find", "remove", "end"}[p]
}

// event is what happens in an exchange.
type event struct {
	after site // before the driver gets the reply
	reply session.Reply
	shows [3]bool // the list of parts
	wrong bool    // the service denies what it has
}

// maxRounds bounds how often a process inspects parts, and how often it replaces a multipart
// upload. The driver has a greater bound, but the same cases.
const maxRounds = 1

// maxSites ends a walk that finds new states endlessly.
const maxSites = 1 << 20

// TestPartsModelCheck checks what must be true in every state of an upload in parts. The full walks run
// only in .ci/run.
func TestPartsModelCheck(t *testing.T) {
	every := testsize.Full(1, 12)
	if testing.Short() || testsize.Raced(1, 0) == 1 {
		every = 40
	}
	uri := freshURI(t)
	for _, c := range []struct {
		name                  string
		way                   way
		pinned, unconditional bool
	}{{"multipart", byMultipart{}, false, true}, {"compose", byCompose{}, false, false}, {"compose with a precondition", byCompose{}, true, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &partsWalk{
				t: t, way: c.way, pinned: c.pinned, unconditional: c.unconditional, uri: uri, every: every,
				ids: map[site]int32{}, talks: map[any]int32{nil: 0}, tables: []any{nil}, resent: map[string]int{},
			}
			w.add(0, w.way.run(w, site{}))
			for id := 0; id < len(w.sites) && !t.Failed(); id++ {
				if w.visit(id); len(w.sites) > maxSites {
					t.Fatal("the states do not end")
				}
			}
			w.finish()
		})
	}
}

func (w *partsWalk) add(parent int, s site) int32 {
	if s.phase != toCheck && s.phase != toJoin {
		s.dest = noObject // see written
	}
	rest := s.parts[:]
	if s.phase >= toSend {
		rest = rest[1:]
	}
	slices.Sort(rest)
	id, known := w.ids[s]
	if !known {
		id = int32(len(w.sites))
		w.ids[s], w.sites, w.parent = id, append(w.sites, s), append(w.parent, int32(parent))
		w.free, w.best = append(w.free, nil), append(w.best, -1)
	}
	return id
}

// visit adds the states that follow a state.
func (w *partsWalk) visit(id int) {
	s := w.sites[id]
	if s.phase == atEnd {
		return
	}
	for _, next := range append(w.way.disturbed(w, s), w.killed(s)...) {
		w.edges++
		w.add(id, next)
	}
	if w.t.Failed() {
		w.t.Logf("%s\n%+v\n  is killed or disturbed", w.history(id), s)
		return
	}
	for i, e := range w.way.exchange(w, s) {
		if i > 0 && (id+i)%w.every != 0 || e.wrong && s.wrong {
			continue
		}
		e.after.wrong = s.wrong || e.wrong
		w.edges++
		next, free := w.reply(e)
		if w.t.Failed() {
			w.t.Logf("%s\n%s", w.history(id), w.line(s, e))
			return
		}
		to := w.add(id, next)
		if i == 0 {
			w.best[id] = to
		}
		if free {
			w.free[id] = append(w.free[id], int(to))
		}
	}
}

// history describes how a state was first reached.
func (w *partsWalk) history(id int) string {
	if id == 0 {
		return ""
	}
	parent, text := int(w.parent[id]), ""
	s := w.sites[parent]
	for _, e := range w.way.exchange(w, s) {
		if e.wrong && s.wrong {
			continue
		}
		e.after.wrong = s.wrong || e.wrong
		if next, _ := w.reply(e); w.add(parent, next) == int32(id) {
			text = w.line(s, e)
			break
		}
	}
	if text == "" {
		text = fmt.Sprintf("%+v\n  is killed or disturbed", s)
	}
	return w.history(parent) + "\n" + text
}

// line describes an event.
func (w *partsWalk) line(s site, e event) string {
	return fmt.Sprintf("%+v\n  %s, %s: %s: %s %s, wrong %v", s, s.phase, s.step, e.reply.Op, decide.Short(e.reply.Refusal()), e.reply.Reason, e.wrong)
}

// finish checks that every state leads to an end, that no requests repeat without a wait, and
// reports what the walk visited.
func (w *partsWalk) finish() {
	if w.t.Failed() {
		return
	}
	const unknown, onPath, ends = 0, 1, 2
	mark := make([]uint8, len(w.sites))
	for id := range w.sites {
		var path []int
		at := id
		for mark[at] == unknown && w.sites[at].phase != atEnd && w.best[at] >= 0 {
			mark[at] = onPath
			path, at = append(path, at), int(w.best[at])
		}
		// If another client wrote the object, the precondition never holds again. After a lost reply,
		// it is not replaced until the upload is canceled. Without all parts, it cannot be recognized.
		s := w.sites[at]
		foreign := s.dest == otherObject || s.joining && s.dest == ourObject && !s.all(finished)
		if mark[at] == onPath && !((w.pinned || s.joining) && !s.over && foreign) {
			w.t.Errorf("if the service works, the upload does not end:%s\n%+v", w.history(id), w.sites[id])
			return
		}
		for _, at := range path {
			mark[at] = ends
		}
	}
	if cycle := findCycle(w.free); cycle != nil {
		w.t.Error("an endless loop of requests without a wait:")
		for _, id := range cycle {
			w.t.Errorf("  %+v", w.sites[id])
		}
	}
	w.t.Logf("%d states, %d transitions", len(w.sites), w.edges)
	for _, why := range slices.Sorted(maps.Keys(w.resent)) {
		w.t.Logf("a part that the service has is sent again: %s (%d)", why, w.resent[why])
	}
}

// killed returns the first states of the next processes, if this one is killed. The next process
// continues the upload or cancels it. The record may lack the part that was finished last, and the
// last progress of the part that is sent.
func (w *partsWalk) killed(s site) []site {
	if s.phase == toJoin && s.step == session.Finish {
		s.joining = !w.pinned // it is saved before the request
	}
	records := []site{s}
	if state, ok := w.tables[s.talk].(session.State); ok {
		state.Committed = 0
		if s.step == session.Send {
			state.Sent = 1 // it is saved before bytes are sent
		}
		older := s
		older.talk = w.intern(state)
		records = append(records, older)
	}
	for i, p := range s.parts {
		if p&finished != 0 && s.phase != toJoin {
			older := s
			older.parts[i] &^= finished
			records = append(records, older)
		}
	}
	if s.saved && !s.over {
		canceled := s
		canceled.over, canceled.joining, canceled.unshown = true, false, false
		records = append(records, canceled)
	}
	for i, record := range records {
		records[i] = w.way.run(w, record)
	}
	return records
}

// forgotten returns s with a driver that knows only the record.
func (s site) forgotten() site {
	s.clear(lacking | visited)
	return site{parts: s.parts, dest: s.dest, live: s.live, unshown: s.unshown, saved: s.saved, over: s.over, joining: s.joining}
}

// all reports whether all parts have the bit.
func (s *site) all(bit part) bool {
	return s.parts[0]&s.parts[1]&s.parts[2]&bit != 0
}

// any reports whether a part has the bit.
func (s *site) any(bit part) bool {
	return (s.parts[0]|s.parts[1]|s.parts[2])&bit != 0
}

// clear removes the bits from all parts.
func (s *site) clear(bits part) {
	for i := range s.parts {
		s.parts[i] &^= bits
	}
}

// first moves a part without the bit to the front, and reports whether there is one. It prefers
// the part that has a session.
func (s *site) first(bit part) bool {
	found := -1
	for i, p := range s.parts {
		if p&bit == 0 && (found < 0 || p&begun != 0) {
			found = i
		}
	}
	if found >= 0 {
		s.parts[0], s.parts[found] = s.parts[found], s.parts[0]
	}
	return found >= 0
}

// begin begins a conversation.
func (w *partsWalk) begin(s site, p phase, step session.Step, table any) site {
	s.phase, s.step, s.differ, s.wrong, s.replaced = p, step, 0, false, false
	s.talk = w.intern(table)
	return s
}

func (w *partsWalk) intern(table any) int32 {
	id, known := w.talks[table]
	if !known {
		id = int32(len(w.tables))
		w.talks[table], w.tables = id, append(w.tables, table)
	}
	return id
}

// reply returns the state after the driver got the reply. free reports that the next exchange
// follows without a wait, in the same process.
func (w *partsWalk) reply(e event) (next site, free bool) {
	s := &e.after
	var a session.Action
	var after any
	switch table := w.tables[s.talk].(type) {
	case decide.Request:
		after, a = boxed(table.Decide(e.reply))
	case decide.Part:
		after, a = boxed(table.Decide(e.reply))
	case decide.Join:
		state, action := table.Decide(e.reply)
		after, a = state, action
		s.joining = state.MayExist && !w.pinned
	case session.State:
		state, action := session.Decide(table, e.reply)
		state.Failures = 0 // see TestEveryStateMeetsEveryReply
		after, a = state, action
		if e.reply.Op == session.OpStart && !e.reply.URI.IsZero() {
			// The session is saved before it gets bytes.
			s.saved = true
			s.clear(begun)
			s.parts[0] |= begun
			s.replaced = false
		}
		s.replaced = s.replaced || a.Step == session.Begin
	}
	s.talk = w.intern(after)
	if e.reply.Op == session.OpStat && e.reply.Status == 404 && e.reply.FromService && (s.phase == toCheck || s.phase == toJoin) {
		s.unshown = false
	}
	switch {
	case a.Wait && a.Err == nil:
		w.t.Error("a wait without its cause")
	case a.Step == session.Fail:
		if n := sentinelsOf(a.Err); n != 1 {
			w.t.Errorf("%v has %d sentinels, want one", a.Err, n)
		}
		if s.phase == toSend && errors.Is(a.Err, session.ErrSessionLost) {
			s.parts[0] &^= begun
		}
		return w.way.run(w, *s), false
	case decide.Ends(a.Step):
		next = w.way.ended(w, e, a)
		return next, !a.Wait && next.phase != atEnd
	}
	s.step = a.Step
	w.sentAgain(e)
	return *s, !a.Wait
}

func boxed[S any](s S, a session.Action) (any, session.Action) { return s, a }

// sentAgain counts why a part that the service has is sent again: it denied that it has the part or
// refused the question, or the last request had no effect.
func (w *partsWalk) sentAgain(e event) {
	s, r := e.after, e.reply
	if s.phase != toSend || s.parts[0]&stored == 0 || s.step != session.Send && s.step != session.Begin {
		return
	}
	answered := r.Status > 0 && r.Status < 400 || r.Status < 500 && r.FromService && (r.Op != multipart.OpPart || r.Reason == "BadDigest")
	if !answered && r.Op != session.OpStart && r.Status != 401 && !r.Unsent {
		w.t.Error("a part is sent again although the service may have it")
	}
	w.resent[fmt.Sprintf("%s after %s: %s", s.step, r.Op, decide.Short(r.Refusal()))]++
}

// destination returns the reply of a service that works to a request for the object at the
// destination.
func (w *partsWalk) destination(s site) session.Reply {
	r := stat(status(404))
	if s.dest != noObject {
		r = stat(session.Reply{Status: 200, Committed: -1, Object: objectsAt[s.dest], Findings: session.Findings{Ours: s.dest == ourObject}})
	}
	r.Unmet = w.pinned && s.dest != noObject
	return r
}

// objectsAt are the objects at the destination. Their pointers are part of the states of tables.
var objectsAt = [...]*session.Object{
	otherObject: {Bucket: "bucket", Name: "object", Generation: otherGeneration, Size: 2},
	ourObject:   {Bucket: "bucket", Name: "object", Generation: ourGeneration, Size: 3},
}

// outcomes returns the events of an exchange. done is the state after the service executed the
// request, with the answer of a service that works. denials are the answers that mean that the
// service does not have what the request is about.
func outcomes(s, done site, op session.Op, answer session.Reply, denials ...session.Reply) []event {
	events := append(make([]event, 0, 20), event{after: done, reply: answer})
	add := func(after site, replies ...session.Reply) {
		for _, r := range replies {
			denies := slices.ContainsFunc(denials, func(d session.Reply) bool { return d.Status == r.Status && d.Reason == r.Reason && r.FromService })
			if !denies || answer.Status != r.Status {
				events = append(events, event{after: after, reply: r, wrong: denies})
			}
		}
	}
	if done != s {
		add(done, broken(errReset), status(503), status(403), status(400), stranger(404))
	}
	add(s, broken(errReset), status(503), status(401), status(403), status(400), status(404), status(412), stranger(404))
	add(s, denials...)
	for i := range events {
		events[i].reply.Op, events[i].reply.Reached = op, true
	}
	return events
}

// written returns the states after another client deleted the object at the destination, or wrote
// another one, or one with the bytes of the source.
func (w *partsWalk) written(s site) (next []site) {
	table, ok := w.tables[s.talk].(decide.Join)
	newer := ok && table.Seen == otherGeneration
	if newer {
		again := s
		again.dest = otherObject
		table.Seen = oldGeneration
		again.talk = w.intern(table)
		next = append(next, again)
	}
	for _, d := range []dest{noObject, otherObject, ourObject} {
		if d != s.dest && !(newer && s.unshown && d == otherObject) { // what is written after ours has a newer generation
			s.dest = d
			next = append(next, s)
		}
	}
	return next
}

// join begins to join the parts.
func (w *partsWalk) join(s site) site {
	state := decide.Join{Pinned: w.pinned, Unconditional: w.unconditional, MayExist: s.joining}
	same := false
	if s.join != 0 {
		state, _ = w.tables[s.join].(decide.Join)
		same = !s.resent
	}
	s.join, s.resent = 0, false
	return w.begin(s, toJoin, choose(state.MayExist && !same, session.Check, session.Finish), state)
}

// settle asks what is at the destination, because an earlier process may have joined the parts.
func (w *partsWalk) settle(s site) site {
	return w.begin(s, toCheck, session.Check, decide.Join{MayExist: true, Unconditional: true})
}

// joins returns the events of a request that joins the parts, and that the service executes. done is
// the state after it, except for the object. denials are as in outcomes.
func (w *partsWalk) joins(s, done site, op session.Op, denials ...session.Reply) []event {
	if s.unshown && s.dest == otherObject {
		w.t.Error("another client's object is replaced after a lost reply")
	}
	done.dest, done.unshown = ourObject, true
	events := outcomes(s, done, op, session.Reply{Status: 200, Object: objectsAt[ourObject]}, denials...)
	for i := range events {
		if r := events[i].reply; r.FromService && r.Status < 500 {
			events[i].after.unshown = s.unshown // a refusal shows that the request had no effect, even if that is wrong
		}
	}
	return events
}

// inspected stores the state with which the parts are joined after they were inspected.
func (w *partsWalk) inspected(s site) site {
	if join, ok := w.tables[s.join].(decide.Join); ok {
		s.resent = !s.all(finished)
		s.join = w.intern(rejoin(join, s.resent))
	}
	return s
}

// end returns the state after the record was deleted.
func (w *partsWalk) end(s site) site {
	if s.any(stored) {
		w.t.Errorf("the service has bytes that are not on record: %+v", s)
	}
	return site{phase: atEnd}
}

// made checks that the object exists when the upload ends with success.
func (w *partsWalk) made(s site) {
	if s.dest != ourObject {
		w.t.Error("done without the object")
	}
}
