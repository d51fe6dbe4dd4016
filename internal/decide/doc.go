// Package decide returns the next action after the reply to an exchange that is not one of a session, as
// [session.Decide] does for a session. It has a table for each kind of conversation:
//   - [Request]: one request that may be repeated without harm;
//   - [Part]: a part of a multipart upload;
//   - [Join]: one object from parts.
//
// The tables share these rules with session.Decide:
//   - A reply is the service's own or a stranger's. Once the service has answered, a stranger's reply counts as a
//     lost one.
//   - Rejected credentials are refreshed once.
//   - A request that cannot be made, for example without credentials, ends the conversation.
//   - After a lost reply the effect of the request is not known. The next request asks, or may be repeated without
//     harm.
//   - Nothing that the service stores is discarded after one answer. A second one must confirm it.
package decide

import "gcsup/session"

// The steps that a session does not have. A conversation ends with Inspect, Absent, [session.Done] or [session.Fail].
const (
	Repeat  session.Step = "repeat"  // make the request of a Request again
	Inspect session.Step = "inspect" // find out which parts the service has
	Absent  session.Step = "absent"  // the service does not have what the conversation is about
)

// Ends reports whether a conversation ends with a step.
func Ends(s session.Step) bool {
	return s == Inspect || s == Absent || s == session.Done || s == session.Fail
}

// trouble is what a conversation remembers of its failures.
type trouble struct {
	refreshed bool // credentials were refreshed since the last wait
}

// again backs off before step.
func (t *trouble) again(r *session.Reply, step session.Step) session.Action {
	t.refreshed = false
	return session.Action{Step: step, Wait: true, RetryAfter: r.RetryAfter, Err: failure(r, nil)}
}

// refresh makes step with new credentials, the first time. The HTTP client refreshes them after a 401.
func (t *trouble) refresh(r *session.Reply, step session.Step) session.Action {
	if t.refreshed {
		return end(r, session.ErrCredentials)
	}
	t.refreshed = true
	return session.Action{Step: step, Err: failure(r, nil)}
}

// end ends a conversation that failed. kind is a sentinel error.
func end(r *session.Reply, kind error) session.Action {
	return session.Action{Step: session.Fail, Err: failure(r, kind)}
}

// refuse ends a conversation because of a refusal.
func refuse(r *session.Reply) session.Action {
	return session.Action{Step: session.Fail, Err: refusal(r)}
}

// doubt is an answer that a second one must confirm.
type doubt struct {
	status int // 0 if there is none
	reason string
}

// confirms reports whether r confirms the doubt. If it does not, r is the new doubt.
func (d *doubt) confirms(r *session.Reply) bool {
	answer := doubt{r.Status, r.Reason}
	if *d == answer {
		return true
	}
	*d = answer
	return false
}
