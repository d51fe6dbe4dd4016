package decide_test

import (
	"errors"

	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// byMultipart sends the parts as those of a multipart upload.
type byMultipart struct{}

func (b byMultipart) run(w *partsWalk, s site) site {
	s = s.forgotten()
	switch {
	case s.over:
		return w.begin(s, toRemove, decide.Repeat, decide.Request{Known: true})
	case !s.saved:
		return w.begin(s, toStart, decide.Repeat, decide.Request{})
	case s.joining:
		return w.settle(s)
	case s.all(finished):
		return w.begin(s, toCheck, decide.Repeat, decide.Request{}) // an earlier process may have made the object
	}
	return b.list(w, s)
}

func (byMultipart) list(w *partsWalk, s site) site {
	return w.begin(s, toList, decide.Repeat, decide.Request{Known: true})
}

// next sends the next part, or joins them.
func (byMultipart) next(w *partsWalk, s site) site {
	if s.first(finished) {
		return w.begin(s, toSend, session.Send, decide.Part{})
	}
	return w.join(s)
}

func (b byMultipart) exchange(w *partsWalk, s site) []event {
	done := s
	switch s.phase {
	case toStart:
		return outcomes(s, s, multipart.OpStart, session.Reply{Status: 200, URI: w.uri})
	case toList:
		return b.lists(s)
	case toCheck:
		r := w.destination(s)
		r.Ours = r.Ours && s.all(finished)
		return outcomes(s, s, session.OpStat, r, status(404))
	case toSend:
		if s.step == session.Query {
			return b.lists(s)
		}
		answer := noUpload()
		if s.live == isOpen {
			done.parts[0] |= stored
			answer = status(200)
		}
		events := outcomes(s, done, multipart.OpPart, answer, noUpload())
		for _, r := range []session.Reply{{Err: errReset, Unsent: true}, {Err: errReset, Reused: true}, badDigest()} {
			events = append(events, event{after: s, reply: sentPart(r)})
		}
		if s.live == isOpen {
			// The part arrived damaged, and replaced the one that was stored. The reply shows it, or is lost.
			damaged := s
			damaged.parts[0] &^= stored
			differs := broken(errors.New("other bytes"))
			differs.Differs = true
			for _, r := range []session.Reply{differs, broken(errReset)} {
				events = append(events, event{after: damaged, reply: sentPart(r)})
			}
		}
		return events
	case toJoin:
		if s.step == session.Check {
			return outcomes(s, s, session.OpStat, w.destination(s), status(404))
		}
		switch {
		case s.live != isOpen:
			return outcomes(s, s, multipart.OpComplete, noUpload(), noUpload())
		case !s.all(stored):
			return outcomes(s, s, multipart.OpComplete, because(400, "InvalidPart"), noUpload())
		}
		done.live = isGone
		done.clear(stored)
		return w.joins(s, done, multipart.OpComplete, noUpload())
	}
	if s.live != isOpen {
		return outcomes(s, s, multipart.OpAbort, noUpload(), noUpload())
	}
	done.live = isGone
	done.clear(stored)
	return outcomes(s, done, multipart.OpAbort, status(204), noUpload())
}

// lists returns the events of a request for the list of parts. A wrong list lacks a part.
func (byMultipart) lists(s site) []event {
	if s.live != isOpen {
		return outcomes(s, s, multipart.OpList, noUpload(), noUpload())
	}
	events := outcomes(s, s, multipart.OpList, status(200), noUpload())
	for i := range s.parts {
		events[0].shows[i] = s.parts[i]&stored != 0
	}
	for i := range s.parts {
		if wrong := events[0]; wrong.shows[i] {
			wrong.shows[i] = false
			events = append(events, wrong)
		}
	}
	for i := range events {
		e := &events[i]
		if e.reply.Status != 200 {
			continue
		}
		e.reply.Ours = s.phase == toSend && e.shows[0]
		if s.phase != toList {
			continue
		}
		for j, p := range s.parts {
			e.reply.Differs = e.reply.Differs || p&finished != 0 && !e.shows[j]
		}
		if e.reply.Differs {
			for j, p := range s.parts {
				lacks := p&finished != 0 && !e.shows[j] && (s.differ == 0 || p&lacking != 0)
				e.after.parts[j] = p&^lacking | choose(lacks, lacking, 0)
			}
			e.after.differ = min(s.differ+1, 2)
		}
	}
	return events
}

func (byMultipart) disturbed(w *partsWalk, s site) (next []site) {
	if s.phase == toCheck || s.phase == toJoin {
		next = w.written(s)
	}
	if s.live == isOpen && (s.phase == toList || s.phase == toSend || s.phase == toJoin) {
		aborted := s
		aborted.live = isGone
		aborted.clear(stored)
		next = append(next, aborted)
		for i, p := range s.parts {
			if p&(stored|finished) == stored|finished {
				lost := s
				lost.parts[i] &^= stored
				next = append(next, lost)
			}
		}
	}
	return next
}

func (b byMultipart) ended(w *partsWalk, e event, a session.Action) site {
	s := e.after
	if a.Step == decide.Absent && s.phase != toCheck && s.live == isOpen {
		w.t.Error("the multipart upload is given up although it exists")
	}
	switch s.phase {
	case toStart:
		s.live, s.saved, s.gone, s.join, s.joining, s.resent = isOpen, true, false, 0, false, false
		s.clear(^part(0))
		return b.next(w, s)
	case toList:
		if a.Step == decide.Absent {
			return b.vanished(w, s)
		}
		for i, p := range s.parts {
			switch {
			case e.reply.Differs && p&lacking != 0:
				if s.parts[i] &^= finished; s.differ < 2 {
					w.t.Error("a finished part is forgotten after one answer")
				}
			case e.shows[i]:
				s.parts[i] |= finished
			}
		}
		s.clear(lacking)
		return b.next(w, w.inspected(s))
	case toCheck:
		switch {
		case e.reply.Ours:
			return b.done(w, s)
		case !s.gone:
			return b.list(w, s)
		case s.starts == maxRounds:
			return b.run(w, s)
		}
		s.starts++
		s.clear(finished)
		return w.begin(s, toStart, decide.Repeat, decide.Request{})
	case toSend:
		if a.Step == decide.Absent {
			return b.vanished(w, s)
		}
		s.parts[0] |= finished
		return b.next(w, s)
	case toJoin:
		switch {
		case a.Step == session.Done && e.reply.Op == multipart.OpComplete:
			w.made(s)
			return w.end(s)
		case a.Step == session.Done:
			return b.done(w, s)
		case s.rounds == maxRounds:
			return b.run(w, s)
		}
		s.rounds++
		s.join = s.talk
		return b.list(w, s)
	}
	return w.end(s) // it was removed
}

// vanished checks the destination after the multipart upload disappeared.
func (byMultipart) vanished(w *partsWalk, s site) site {
	s.gone = true
	if s.joining {
		return w.settle(s)
	}
	return w.begin(s, toCheck, decide.Repeat, decide.Request{})
}

// done ends the upload after the object was found at the destination. Another client may have
// made it from the same bytes, so that the multipart upload still exists.
func (b byMultipart) done(w *partsWalk, s site) site {
	w.made(s)
	s.over, s.joining, s.unshown = true, false, false
	return b.run(w, s)
}
