package decide_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/internal/testsize"
	"gcsup/session"
)

// A tableWalk gives every reply to every reachable state of a conversation of Request,
// Part or Join, until it finds no new state. S is the state of the table.
type tableWalk[S comparable] struct {
	t       *testing.T
	decide  func(S, session.Reply) (S, session.Action)
	resumed func(S) []S // the states in which a conversation continues after Inspect, if it does
	replies map[session.Step][]session.Reply
	works   map[session.Step]session.Reply // the replies of a service without further failures

	// obeys checks a decision by the rules of the table. It returns what the walk knows after
	// the reply, and what is wrong, or "".
	obeys func(p past, step session.Step, r session.Reply, a session.Action) (past, string)

	ids   map[talk[S]]int
	talks []talk[S]
	free  [][]int // edges without a wait
	edges int
}

// talk is a state of a conversation, and the next step in it.
type talk[S comparable] struct {
	state S
	step  session.Step
	past
}

// past is what a walk knows about the replies so far. It does not come from the table.
type past struct {
	refreshed bool   // the credentials were refreshed since the last wait
	died      bool   // a reused connection died
	damaged   int    // how often bytes arrived damaged
	denied    answer // the last answer that a second one must confirm

	joined  meaning // of the last reply to a request that joins parts
	refused answer  // that reply
	seen    int64   // the generation that the driver saw last
	acted   bool    // a request that joins parts may have had an effect, and no reply showed it
	written int     // how often the parts were joined again because of another client
}

// answer is what must be the same in two answers of the service.
type answer struct {
	status int
	reason string
}

// meaning is what a reply means once the service has answered an earlier request.
type meaning int

const (
	success    meaning = iota
	lost               // the effect is not known: no reply, a temporary failure, or a stranger's reply
	rejected           // the credentials were rejected
	impossible         // no request can be made
	forbidden          // the rights or the quota do not allow the request
	denied             // the service refuses the request otherwise
)

// meaningOf returns the meaning of a reply by the documentation of the service.
func meaningOf(r session.Reply) meaning {
	switch {
	case r.Status == 0 && (r.Err == session.ErrCredentials || r.Err == session.ErrInvalid || r.Err == session.ErrURIMismatch):
		return impossible
	case r.Status == 401:
		return rejected
	case r.Reason == "rateLimitExceeded" || r.Status == 408 || r.Status == 429 && r.Reason == "" || r.Status >= 500 && r.Status != 501:
		return lost
	case r.Status == 501:
		return choose(r.Op == multipart.OpStart, denied, lost) // a server without the XML API
	case r.Status == 409 && r.Op == multipart.OpComplete:
		return lost // the service still works on an earlier request
	case r.Status == 499 && r.Op == session.OpCancel, r.Status == 204 && (r.Op == bucket.OpDelete || r.Op == bucket.OpDeleteFolder || r.Op == multipart.OpAbort):
		return success
	case r.Status == 200 && (r.Op == multipart.OpStart && !r.URI.IsZero() || r.Object != nil || has200[r.Op] && r.Err == nil):
		return success
	case r.Status < 400 || !r.FromService:
		return lost
	case r.Status == 403 || r.Reason == "dailyLimitExceeded" || r.Reason == "orgPolicyConstraintFailed":
		return forbidden
	}
	return denied
}

// has200 lists the exchanges whose success has only a status.
var has200 = map[session.Op]bool{
	bucket.OpList: true, bucket.OpRead: true, bucket.OpConfig: true, bucket.OpNotifications: true, bucket.OpPermissions: true, bucket.OpManagedFolder: true,
	multipart.OpPart: true, multipart.OpList: true,
}

func choose[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

// failures returns the replies that every exchange can get. own contains codes that the service
// and a stranger answer.
func failures(own ...int) []session.Reply {
	replies := []session.Reply{
		{Err: errReset}, {Err: session.ErrStalled}, {Err: errTrust}, {Err: errProxy407}, {Err: errReset, Reused: true}, {Err: errReset, Unsent: true},
		{Err: session.ErrCredentials}, {Err: session.ErrURIMismatch}, {Err: session.ErrInvalid},
		{Status: 200}, {Status: 200, Err: io.ErrUnexpectedEOF}, {Status: 201}, {Status: 202}, {Status: 204}, {Status: 302}, {Status: 302, Redirect: "http://portal"}, {Status: 308},
		{Status: 308, Redirect: "http://portal"}, {Status: 408}, {Status: 500}, {Status: 501}, {Status: 503, RetryAfter: time.Minute, FromService: true},
		because(403, "rateLimitExceeded"), because(403, "dailyLimitExceeded"), because(429, "dailyLimitExceeded"), because(412, "orgPolicyConstraintFailed"),
		{Status: 429, RetryAfter: time.Hour}, {Status: 401}, status(401), stranger(407),
	}
	for _, code := range append(own, 400, 403, 404) {
		replies = append(replies, status(code), stranger(code))
	}
	replies = append(replies, noUpload(), badDigest())
	for _, r := range []session.Reply{noUpload(), badDigest()} {
		r.FromService = false
		replies = append(replies, r)
	}
	return replies
}

// exchanged returns the replies to an exchange.
func exchanged(op session.Op, replies ...[]session.Reply) (all []session.Reply) {
	for _, r := range slices.Concat(replies...) {
		r.Op, r.Reached, r.Committed = op, true, -1
		all = append(all, r)
	}
	return all
}

// from walks the conversations that begin with a step in a state.
func (w *tableWalk[S]) from(state S, step session.Step, p past) {
	w.ids = map[talk[S]]int{}
	w.add(talk[S]{state, step, p})
	for id := 0; id < len(w.talks) && !w.t.Failed(); id++ {
		at := w.talks[id]
		if !w.recovers(at) {
			w.t.Errorf("%s in %+v: a service without further failures does not end the conversation", at.step, at)
		}
		for _, r := range w.replies[at.step] {
			w.edges++
			after, a := w.decide(at.state, r)
			known, wrong := at.past.after(at.step, r, a)
			if wrong == "" {
				known, wrong = w.obeys(known, at.step, r, a)
			}
			if wrong != "" {
				w.t.Errorf("%s in\n  %+v\nreply %+v\n  %+v\n  %+v:\n%s", at.step, at, r, after, a, wrong)
				return
			}
			switch {
			case a.Step == decide.Inspect:
				for i, state := range w.resumed(after) {
					if i > 0 {
						known.denied, known.written, known.refreshed, known.died = answer{}, 0, false, false // parts were sent again
					}
					w.add(talk[S]{state, session.Finish, known})
				}
			case !decide.Ends(a.Step):
				to := w.add(talk[S]{after, a.Step, known})
				if !a.Wait {
					w.free[id] = append(w.free[id], to)
				}
			}
		}
	}
}

func (w *tableWalk[S]) add(t talk[S]) (id int) {
	id, known := w.ids[t]
	if !known {
		id = len(w.talks)
		w.ids[t], w.talks, w.free = id, append(w.talks, t), append(w.free, nil)
	}
	return id
}

// recovers reports whether a conversation ends if no further request fails. It must end with
// success, or with the failure that the check of the destination already had to confirm.
func (w *tableWalk[S]) recovers(at talk[S]) bool {
	state, step := at.state, at.step
	for range 6 {
		after, a := w.decide(state, w.works[step])
		switch {
		case a.Step == session.Done:
			return true
		case a.Step == decide.Inspect:
			after, a.Step = w.resumed(after)[0], session.Finish
		case decide.Ends(a.Step):
			return at.step == session.Check && (at.joined != success && at.joined != lost || at.acted && errors.Is(a.Err, session.ErrOutcomeUnknown))
		}
		state, step = after, a.Step
	}
	return false
}

// finish checks that no requests repeat without a wait, and reports what the walk visited.
func (w *tableWalk[S]) finish() {
	if cycle := findCycle(w.free); cycle != nil {
		w.t.Error("an endless loop of requests without a wait:")
		for _, id := range cycle {
			w.t.Errorf("  %s in %+v", w.talks[id].step, w.talks[id])
		}
	}
	w.t.Logf("%d states, %d transitions", len(w.talks), w.edges)
}

// after checks a decision by the rules that all tables share. It returns what the walk knows
// after the reply, and what is wrong, or "".
func (p past) after(step session.Step, r session.Reply, a session.Action) (past, string) {
	is := meaningOf(r)
	switch {
	case a.Wait && (a.Err == nil || a.Err.Kind != nil):
		return p, "a wait without its cause"
	case a.Wait && is == lost && a.RetryAfter != r.RetryAfter:
		return p, "Retry-After is lost"
	case is == lost && decide.Ends(a.Step):
		return p, "the end, although the effect of the request is not known"
	case is == lost && !a.Wait && (p.died || !r.Reused):
		return p, "no wait after a failure"
	case is == rejected && !p.refreshed && (a.Step != step || a.Wait):
		return p, "the request is not repeated with new credentials"
	case is == rejected && p.refreshed && !errors.Is(a.Err, session.ErrCredentials):
		return p, "the credentials are refreshed twice"
	case a.Step == decide.Absent && (is != denied || !r.FromService):
		return p, "absent, although the service did not say so"
	case a.Step == session.Done && is != success:
		return p, "done without success"
	case a.Step == session.Fail:
		if n := sentinelsOf(a.Err); n != 1 {
			return p, fmt.Sprintf("the error %v has %d sentinels, want one", a.Err, n)
		}
	}
	p.refreshed = (p.refreshed || is == rejected) && !a.Wait
	p.died = p.died || is == lost && !a.Wait
	return p, ""
}

// confirmed records an answer that a second one must confirm, and reports whether it is the
// second one.
func (p *past) confirmed(r session.Reply) bool {
	before := p.denied
	p.denied = answer{r.Status, r.Reason}
	return before == p.denied
}

// stepIs returns "" if the step is one of those that are allowed, and otherwise what is wrong.
func stepIs(a session.Action, allowed ...session.Step) string {
	if slices.Contains(allowed, a.Step) {
		return ""
	}
	return fmt.Sprintf("%s, want one of %v", a.Step, allowed)
}

// TestRequestModelCheck checks the rules in every state of Request.
func TestRequestModelCheck(t *testing.T) {
	for _, request := range requests {
		works := request.success
		if request.op == multipart.OpStart {
			works = session.Reply{Status: 200, URI: freshURI(t)}
		}
		differs := works
		differs.Differs = true
		successes := []session.Reply{works, differs}
		if request.op == session.OpCancel {
			successes = append(successes, made(1)) // the session made the object
		}
		for _, known := range []bool{false, true} {
			w := &tableWalk[decide.Request]{
				t: t, decide: decide.Request.Decide,
				replies: map[session.Step][]session.Reply{decide.Repeat: exchanged(request.op, failures(410, 412, 416), successes)},
				works:   map[session.Step]session.Reply{decide.Repeat: exchanged(request.op, successes)[0]},
			}
			w.obeys = func(p past, step session.Step, r session.Reply, a session.Action) (past, string) {
				end := choose(meaningOf(r) == success, session.Done, choose(a.Step == decide.Absent, decide.Absent, session.Fail))
				switch is := meaningOf(r); {
				case is == lost || is == rejected && a.Step != session.Fail:
					return p, stepIs(a, decide.Repeat)
				case known && (is == denied || is == success && r.Differs):
					if !p.confirmed(r) {
						end = decide.Repeat
					}
				}
				return p, stepIs(a, end)
			}
			w.from(decide.Request{Known: known}, decide.Repeat, past{})
			w.finish()
		}
	}
}

// TestPartModelCheck checks the rules in every state of Part.
func TestPartModelCheck(t *testing.T) {
	has := status(200)
	has.Ours = true
	w := &tableWalk[decide.Part]{
		t: t, decide: decide.Part.Decide,
		replies: map[session.Step][]session.Reply{
			session.Send:  exchanged(multipart.OpPart, failures(410, 412, 416), []session.Reply{status(200)}),
			session.Query: exchanged(multipart.OpList, failures(410, 412, 416), []session.Reply{status(200), has}),
		},
		works: map[session.Step]session.Reply{session.Send: sentPart(status(200)), session.Query: listed(status(200))},
	}
	w.obeys = func(p past, step session.Step, r session.Reply, a session.Action) (past, string) {
		switch is := meaningOf(r); {
		case is == lost && r.Unsent && step == session.Send:
			return p, stepIs(a, session.Send)
		case is == lost:
			return p, stepIs(a, session.Query) // no data after a request whose effect is not known
		case is == rejected:
			return p, stepIs(a, step, session.Fail)
		case is == impossible || is == forbidden && step == session.Send:
			return p, stepIs(a, session.Fail)
		case is == denied && noUploadReply(r):
			confirmed := p.confirmed(r)
			return p, stepIs(a, choose(confirmed && step == session.Query, decide.Absent, session.Query))
		case is == denied && step == session.Send && r.Reason == "BadDigest":
			p.damaged++
			return p, stepIs(a, choose(p.damaged < 4, session.Send, session.Fail))
		case is == denied && step == session.Send:
			return p, stepIs(a, choose(p.confirmed(r), session.Fail, session.Query))
		case is == success && step == session.Query && p.denied == answer{404, "NoSuchUpload"}:
			p.denied = answer{}
		}
		return p, stepIs(a, choose(step == session.Send || r.Ours, session.Done, session.Send))
	}
	w.from(decide.Part{}, session.Send, past{})
	w.finish()
}

// TestJoinModelCheck checks the rules in every state of Join.
func TestJoinModelCheck(t *testing.T) {
	differs := made(1)
	differs.Differs = true
	found := []session.Reply{stat(ours(1)), nothing(), unmet(nothing()), another(seen), unmet(another(seen)), another(written), unmet(another(written))}
	composes := []decide.Join{{Seen: seen}, {Temporary: true}, {Seen: seen, Pinned: true}, {}, {Seen: seen, MayExist: true}}
	completes := []decide.Join{{Seen: seen, Unconditional: true}, {Unconditional: true}, {Seen: seen, Unconditional: true, MayExist: true}}
	for op, starts := range map[session.Op][]decide.Join{multipart.OpComplete: completes, bucket.OpCompose: composes} {
		if testing.Short() || testsize.Raced(1, 0) == 1 || op == multipart.OpComplete && testsize.Full(0, 1) == 1 {
			starts = starts[:1]
		}
		for _, start := range starts {
			w := &tableWalk[decide.Join]{
				t: t, decide: decide.Join.Decide,
				resumed: func(s decide.Join) []decide.Join {
					return []decide.Join{rejoin(s, false), rejoin(s, true)}
				},
				replies: map[session.Step][]session.Reply{
					session.Finish: exchanged(op, failures(409, 412), []session.Reply{made(1), differs}),
					session.Check:  append(exchanged(session.OpStat, failures(409, 412)), found...),
				},
				works: map[session.Step]session.Reply{session.Finish: exchanged(op, []session.Reply{made(1)})[0], session.Check: nothing()},
			}
			w.obeys = func(p past, step session.Step, r session.Reply, a session.Action) (past, string) {
				if step == session.Finish {
					return p.joins(r, a)
				}
				return p.checks(start, r, a)
			}
			w.from(start, choose(start.MayExist, session.Check, session.Finish), past{seen: start.Seen, acted: start.MayExist, joined: choose(start.MayExist, lost, success)})
			w.finish()
		}
	}
}

// joins checks a decision after the reply to a request that joins parts.
func (p past) joins(r session.Reply, a session.Action) (past, string) {
	is := meaningOf(r)
	if is == rejected {
		return p, stepIs(a, session.Finish, session.Fail)
	}
	p.joined, p.refused = is, answer{r.Status, r.Reason}
	ineffective := r.Unsent || r.Status == 429 || r.Reason == "rateLimitExceeded"
	p.acted = p.acted || is == lost && !ineffective || is == success
	return p, stepIs(a, choose(is == success && !r.Differs, session.Done, session.Check))
}

// checks checks a decision after the reply to a check of the destination.
func (p past) checks(start decide.Join, r session.Reply, a session.Action) (past, string) {
	is := meaningOf(r)
	found := is == success
	generation := int64(0)
	if found && r.Object != nil {
		generation = r.Object.Generation
	}
	switch {
	case found && r.Ours:
		return p, stepIs(a, session.Done)
	case is == lost:
		return p, stepIs(a, session.Check)
	case is == rejected:
		return p, stepIs(a, session.Check, session.Fail)
	case !found && r.Status != 404:
		return p, stepIs(a, session.Fail) // the object may exist
	case found && (start.Temporary || p.joined == success), p.joined == impossible, p.joined == forbidden:
		return p, stepIs(a, session.Fail)
	case p.acted && !start.Temporary && !start.Pinned && generation != p.seen:
		if !errors.Is(a.Err, session.ErrOutcomeUnknown) {
			return p, "another client's object may be replaced after a lost reply"
		}
		return p, stepIs(a, session.Fail)
	case p.joined == lost || p.joined == success:
		return p, stepIs(a, choose(start.Unconditional && p.acted, decide.Inspect, session.Finish))
	case p.refused.status == 412 && r.Unmet:
		return p, stepIs(a, session.Fail)
	case p.refused.status == 412 && a.Step == session.Finish:
		if p.written++; p.written > 3 || start.Pinned || generation == p.seen {
			return p, "the parts are joined again after a refused precondition"
		}
		p.seen = generation
		return p, ""
	case p.refused.status == 412 && p.written == 3 && errors.Is(a.Err, session.ErrOutcomeUnknown):
		return p, ""
	}
	confirmed := p.denied == p.refused
	p.denied = p.refused
	return p, stepIs(a, choose(confirmed, session.Fail, decide.Inspect))
}
