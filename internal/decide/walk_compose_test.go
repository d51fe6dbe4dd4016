package decide_test

import (
	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/session"
)

// byCompose sends each part through a session of its own, and composes the temporary objects. A
// part has one byte.
type byCompose struct{}

func (b byCompose) run(w *partsWalk, s site) site {
	state, ok := w.tables[s.talk].(session.State)
	if !ok || s.replaced || s.parts[0]&begun == 0 { // the record has an earlier session of the part
		state.Committed, state.Sent, state.Restarts = 0, 1, max(state.Restarts-1, 0)
	}
	if s = s.forgotten(); s.over {
		return b.remove(w, s)
	}
	if s.joining {
		return w.settle(s)
	}
	return b.resume(w, s, state)
}

// resume continues an upload after a process ended, which had a session in that state.
func (b byCompose) resume(w *partsWalk, s site, state session.State) site {
	if s.first(finished) && s.parts[0]&begun != 0 {
		return w.begin(s, toSend, session.Query, session.State{
			Size: 1, Replayable: true, Temporary: true, Committed: state.Committed, Sent: state.Sent, MayExist: state.Sent > 0,
			Adopted: true, Restarts: state.Restarts, Rejected: state.Rejected, RejectedAt: state.RejectedAt,
		})
	}
	return b.next(w, s)
}

// next sends the next part, or joins them.
func (byCompose) next(w *partsWalk, s site) site {
	if s.first(finished) {
		return w.begin(s, toSend, session.Begin, session.State{Size: 1, Replayable: true, Temporary: true})
	}
	return w.join(s)
}

// inspect inspects the next temporary object. After the last one it continues the upload.
func (b byCompose) inspect(w *partsWalk, s site) site {
	if s.first(visited) {
		return w.begin(s, toInspect, decide.Repeat, decide.Request{Known: true})
	}
	s.clear(visited)
	return b.next(w, w.inspected(s))
}

// remove removes the next temporary object. After the last one it deletes the record.
func (b byCompose) remove(w *partsWalk, s site) site {
	if s.first(visited) {
		switch {
		case s.parts[0]&finished != 0:
			return w.begin(s, toRemove, decide.Repeat, decide.Request{Known: true})
		case s.parts[0]&begun != 0:
			return w.begin(s, toCancel, decide.Repeat, decide.Request{Known: true})
		}
		return b.find(w, s)
	}
	return w.end(s)
}

// find looks for the temporary object of the first part, which no answer has acknowledged. Its
// name is on record.
func (byCompose) find(w *partsWalk, s site) site {
	return w.begin(s, toFind, decide.Repeat, decide.Request{Known: true})
}

func (b byCompose) exchange(w *partsWalk, s site) []event {
	done := s
	switch s.phase {
	case toSend:
		return b.sends(w, s)
	case toJoin:
		if s.step == session.Check {
			return outcomes(s, s, session.OpStat, w.destination(s), status(404))
		}
		switch {
		case w.tables[s.talk].(decide.Join).Seen != s.dest.generation():
			return outcomes(s, s, bucket.OpCompose, status(412))
		case !s.all(stored):
			return outcomes(s, s, bucket.OpCompose, status(404))
		}
		return w.joins(s, done, bucket.OpCompose)
	case toCheck:
		r := w.destination(s)
		r.Ours = r.Ours && s.all(finished)
		return outcomes(s, s, session.OpStat, r, status(404))
	case toInspect, toFind:
		return outcomes(s, s, session.OpStat, b.temporary(s), status(404))
	case toCancel:
		switch s.live {
		case isGone:
			return outcomes(s, s, session.OpCancel, status(404), status(404), status(410))
		case isFinal:
			return outcomes(s, s, session.OpCancel, session.Reply{Status: 200, Object: temporaryObject}, status(404), status(410))
		}
		done.live = isGone
		return outcomes(s, done, session.OpCancel, status(499), status(404), status(410))
	}
	if s.parts[0]&stored == 0 {
		return outcomes(s, s, bucket.OpDelete, status(404), status(404), status(412))
	}
	done.parts[0] &^= stored
	return outcomes(s, done, bucket.OpDelete, status(204), status(404), status(412))
}

// temporaryObject is the temporary object of a part. Its pointer is part of the states of tables.
var temporaryObject = object(1)

// temporary returns the reply of a service that works to a request for the temporary object of
// the first part.
func (byCompose) temporary(s site) session.Reply {
	if s.parts[0]&stored == 0 {
		return status(404)
	}
	return session.Reply{Status: 200, Committed: -1, Object: temporaryObject, Findings: session.Findings{Ours: true}}
}

// sends returns the events of an exchange with the session of the first part.
func (b byCompose) sends(w *partsWalk, s site) []event {
	done := s
	finalized := session.Reply{Status: 200, Object: temporaryObject, Committed: -1}
	switch s.step {
	case session.Begin:
		events := outcomes(s, s, session.OpStart, session.Reply{Status: 200, URI: w.uri, Committed: -1})
		events[0].after.live = isOpen
		return events
	case session.Check:
		events := outcomes(s, s, session.OpStat, b.temporary(s))
		if older := events[0]; older.reply.Object != nil {
			older.reply.Older = true
			events = append(events, older)
		}
		return events
	case session.Query:
		answer := [...]session.Reply{isGone: status(404), isOpen: held(-1), isHeld: held(1), isFinal: finalized, isUnmet: status(412)}[s.live]
		return outcomes(s, s, session.OpQuery, answer)
	}
	var events []event
	switch {
	case s.live == isFinal:
		events = outcomes(s, s, session.OpFinalize, finalized)
	case s.live == isGone:
		events = outcomes(s, s, session.OpFinalize, status(404))
	case s.live == isUnmet || s.parts[0]&stored != 0:
		done.live = isUnmet
		events = outcomes(s, done, session.OpFinalize, status(412))
	default:
		done.live = isFinal
		done.parts[0] |= stored
		events = outcomes(s, done, session.OpFinalize, finalized)
		done = s
		done.live = isHeld
		events = append(events, event{after: done, reply: finalize(1, broken(errReset))}, event{after: done, reply: finalize(1, held(1))})
	}
	for i := range events {
		events[i].reply.Sent = 1
	}
	unsent := finalize(w.tables[s.talk].(session.State).Committed, broken(errReset))
	unsent.Unsent = true
	reused := finalize(1, broken(errReset))
	reused.Reused = true
	return append(events, event{after: s, reply: unsent}, event{after: s, reply: reused})
}

func (byCompose) disturbed(w *partsWalk, s site) (next []site) {
	switch s.phase {
	case toCheck:
		next = w.written(s)
	case toJoin:
		next = w.written(s)
		for i, p := range s.parts {
			if p&stored != 0 {
				expired := s
				expired.parts[i] &^= stored
				next = append(next, expired)
			}
		}
	case toSend, toCancel:
		if s.live != isGone {
			expired := s
			expired.live = isGone
			next = append(next, expired)
		}
	}
	return next
}

func (b byCompose) ended(w *partsWalk, e event, a session.Action) site {
	s := e.after
	if a.Step == decide.Absent && s.phase != toCancel && s.phase != toCheck && s.parts[0]&stored != 0 {
		w.t.Error("a temporary object is given up although it exists")
	}
	switch s.phase {
	case toSend:
		s.parts[0] |= finished
		return b.next(w, s)
	case toCheck:
		if a.Step == session.Done {
			return b.done(w, s)
		}
		return b.resume(w, s, session.State{Sent: 1})
	case toJoin:
		switch {
		case a.Step == session.Done:
			return b.done(w, s)
		case s.rounds == maxRounds:
			return b.run(w, s)
		}
		s.rounds++
		s.join = s.talk
		return b.inspect(w, s)
	case toInspect:
		if s.parts[0] |= visited; a.Step == decide.Absent {
			s.parts[0] &^= finished | begun
		}
		return b.inspect(w, s)
	case toCancel:
		if a.Step == session.Done && a.Object != nil {
			s.parts[0] |= finished
			return b.remove(w, s)
		}
		return b.find(w, s)
	case toFind:
		s.parts[0] |= choose(a.Step == session.Done, finished, visited)
		return b.remove(w, s)
	}
	s.parts[0] |= visited
	return b.remove(w, s)
}

// done removes what is left after the object was made.
func (b byCompose) done(w *partsWalk, s site) site {
	w.made(s)
	s.over, s.joining, s.unshown = true, false, false
	return b.remove(w, s)
}
