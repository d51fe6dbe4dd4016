package decide_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// Generations at the destination before the parts are joined, and after another client wrote it.
const seen, written = 7, 8

// joined returns the reply to a request that joins parts.
func joined(r session.Reply) session.Reply {
	r.Op = bucket.OpCompose
	return r
}

// another returns the metadata of an object that is not that of the parts.
func another(generation int64) session.Reply {
	o := object(1)
	o.Generation = generation
	return stat(session.Reply{Status: 200, Committed: -1, Object: o})
}

// nothing is the answer that there is no object.
func nothing() session.Reply { return stat(status(404)) }

// unmet returns the reply to a check if the caller's precondition does not hold.
func unmet(r session.Reply) session.Reply {
	r.Unmet = true
	return r
}

// TestJoin checks the table of Join: each reply to the request that joins the parts,
// and then each object at the destination.
func TestJoin(t *testing.T) {
	differs := made(1)
	differs.Differs = true
	later := status(503)
	later.RetryAfter = 5 * time.Second
	type after struct {
		join string // to the request that joins the parts

		// To the check.
		ours    string // the object is that of the parts
		same    string // it is the one that was seen before
		written string // another client wrote it
		nothing string // there is none
		unmet   string // another client wrote it, and the caller's precondition does not hold

		second string // to the check, if the driver inspects the parts, and all of it happens again
	}
	lost := after{"wait check", "done", "repeat", "ErrOutcomeUnknown", "ErrOutcomeUnknown", "ErrOutcomeUnknown", ""}
	limited := after{"wait check", "done", "finish", "finish", "finish", "finish", ""} // it had no effect
	never := func(kind string) after { return after{"check", "done", kind, kind, kind, kind, ""} }
	refused := func(kind string) after {
		return after{"check", "done", "wait inspect", "wait inspect", "wait inspect", "wait inspect", kind}
	}
	for _, row := range []struct {
		name  string
		reply session.Reply
		want  after
	}{
		{"the object", made(1), after{join: "done"}},
		{"an object that differs", differs, after{"check", "done", "ErrUnexpectedData", "ErrUnexpectedData", "ErrOutcomeUnknown", "ErrUnexpectedData", ""}},

		{"a reply that was cut", broken(io.ErrUnexpectedEOF), lost},
		{"200 without an object", status(200), lost},
		{"408", status(408), lost},
		{"429", status(429), limited},
		{"403 rateLimitExceeded", because(403, "rateLimitExceeded"), limited},
		{"409 of a stranger", stranger(409), lost},

		{"no credentials", broken(session.ErrCredentials), never("ErrCredentials")},
		{"a request that cannot be made", broken(session.ErrInvalid), never("ErrInvalid")},
		{"an upload at another host", broken(session.ErrURIMismatch), never("ErrProtocol")},
		{"403", status(403), never("ErrPermission")},
		{"403 quotaExceeded", because(403, "quotaExceeded"), never("ErrQuota")},
		{"429 dailyLimitExceeded", because(429, "dailyLimitExceeded"), never("ErrQuota")},
		{"412 orgPolicyConstraintFailed", because(412, "orgPolicyConstraintFailed"), never("ErrPermission")},

		{"412", status(412), after{"check", "done", "wait inspect", "finish", "finish", "ErrPrecondition", "ErrProtocol"}},
		{"400", status(400), refused("ErrProtocol")},
		{"404", status(404), refused("ErrNotFound")},
		{"404 NoSuchUpload", noUpload(), refused("ErrNotFound")},
		{"405", status(405), refused("ErrProtocol")},
		{"409", status(409), refused("ErrProtocol")}, // to a compose
		{"410", status(410), refused("ErrNotFound")},
		{"411", status(411), refused("ErrProtocol")},
		{"416", status(416), refused("ErrProtocol")},
	} {
		for _, op := range []session.Op{bucket.OpCompose, multipart.OpComplete} {
			r := row.reply
			if r.Op = op; op == multipart.OpComplete && r.Status == 409 {
				continue // see TestJoinModelCheck
			}
			s, a := (decide.Join{Seen: seen, Unconditional: op == multipart.OpComplete}).Decide(r)
			if describe(a) != row.want.join {
				t.Errorf("%s to %s: %s, want %s", row.name, op, describe(a), row.want.join)
			}
			if a.Step != session.Check {
				continue
			}
			for _, check := range []struct {
				name  string
				reply session.Reply
				want  string
			}{
				{"ours", stat(ours(1)), row.want.ours}, {"the one seen before", another(seen), row.want.same},
				{"another client's", another(written), row.want.written}, {"none", nothing(), row.want.nothing},
				{"another client's, and a precondition", unmet(another(written)), row.want.unmet},
			} {
				want := check.want
				if want == "repeat" { // the service is asked whether it still has the parts
					want = choose(op == multipart.OpComplete, "inspect", "finish")
				}
				if _, a := s.Decide(check.reply); describe(a) != want {
					t.Errorf("%s to %s, and the object is %s: %s, want %s", row.name, op, check.name, describe(a), want)
				}
			}
			if row.want.second == "" {
				continue
			}
			s, _ = s.Decide(another(seen))
			for _, resent := range []bool{true, false} {
				want := "wait inspect" // parts were missing
				if !resent {
					want = row.want.second
				}
				s, _ := rejoin(s, resent).Decide(r)
				if _, a := s.Decide(another(seen)); describe(a) != want {
					t.Errorf("%s to %s, after the parts were inspected, resent %v: %s, want %s", row.name, op, resent, describe(a), want)
				}
			}
		}
	}
	// 401 is the only reply after which the same request follows at once.
	s, a := (decide.Join{}).Decide(joined(status(401)))
	if describe(a) != "finish" {
		t.Errorf("401: %s, want finish", describe(a))
	}
	if _, a = s.Decide(joined(stranger(401))); describe(a) != "ErrCredentials" {
		t.Errorf("401, twice: %s, want ErrCredentials", describe(a))
	}
}

// TestJoinCheck checks refusals of the check of the destination. TestJoinModelCheck has the rules for other
// replies.
func TestJoinCheck(t *testing.T) {
	for _, row := range []struct {
		name  string
		reply session.Reply
		want  string
	}{
		{"no credentials", broken(session.ErrCredentials), "ErrCredentials"},
		{"403", status(403), "ErrPermission"},
		{"403 quotaExceeded", because(403, "quotaExceeded"), "ErrQuota"},
		{"400", status(400), "ErrInvalid"},
		{"412", status(412), "ErrInvalid"},
	} {
		for _, refusal := range []session.Reply{broken(errReset), status(412), status(403), status(400)} {
			s, _ := (decide.Join{Seen: seen}).Decide(joined(refusal))
			if _, a := s.Decide(stat(row.reply)); describe(a) != row.want {
				t.Errorf("%s: %s, want %s", row.name, describe(a), row.want)
			}
		}
	}
}

// TestJoinStories checks the errors after several replies, and an adopted upload that TestJoinModelCheck walks
// only in .ci/run.
func TestJoinStories(t *testing.T) {
	for _, story := range []struct {
		name  string
		state decide.Join
		turns []turn
	}{
		{"an earlier process lost the reply of a completion", decide.Join{Seen: seen, MayExist: true, Unconditional: true}, []turn{{another(seen), "inspect"}}},
		{"other clients keep writing the object", decide.Join{Seen: seen}, []turn{
			{joined(status(412)), "check"}, {another(8), "finish"}, {joined(status(412)), "check"}, {another(9), "finish"},
			{joined(status(412)), "check"}, {another(10), "finish"}, {joined(status(412)), "check"}, {another(11), "ErrOutcomeUnknown"},
		}},
		{"another client writes the pinned object", decide.Join{Seen: seen, Pinned: true}, []turn{
			{joined(status(412)), "check"}, {unmet(another(8)), "ErrPrecondition"},
		}},
		{"the precondition fails after a lost reply", decide.Join{Seen: seen, Pinned: true}, []turn{
			{joined(broken(errReset)), "wait check"}, {unmet(another(8)), "finish"}, {joined(status(412)), "check"}, {unmet(another(8)), "ErrPrecondition"},
		}},
		{"another client writes the temporary object", decide.Join{Temporary: true}, []turn{
			{joined(status(412)), "check"}, {another(8), "ErrUnexpectedData"},
		}},
		{"there is no temporary object", decide.Join{Temporary: true}, []turn{
			{joined(status(412)), "check"}, {nothing(), "wait inspect"}, {joined(status(412)), "check"}, {nothing(), "ErrProtocol"},
		}},
	} {
		s := story.state
		for i, turn := range story.turns {
			var a session.Action
			if s, a = s.Decide(turn.reply); describe(a) != turn.want {
				t.Errorf("%s: turn %d, %s: %s, want %s", story.name, i, turn.reply.Op, describe(a), turn.want)
				break
			}
		}
	}
}

// TestJoinErrors checks that the error of a join is that of the refused request, and not that of
// the check after it.
func TestJoinErrors(t *testing.T) {
	s, _ := (decide.Join{}).Decide(joined(because(403, "forbidden")))
	if _, a := s.Decide(nothing()); !errors.Is(a.Err, session.ErrPermission) || a.Err.Op != bucket.OpCompose || a.Err.Reason != "forbidden" {
		t.Errorf("%+v, want the 403 of the compose", a.Err)
	}
	s, _ = (decide.Join{Temporary: true}).Decide(joined(broken(errReset)))
	if _, a := s.Decide(another(written)); a.Err.Error() != "stat: unexpected data on the server: 200 OK: the object is not that of the parts" {
		t.Errorf("%q", a.Err)
	}
}

// rejoin returns the state with which the driver joins after an inspection. If parts had to be
// sent again, the conversation is a new one.
func rejoin(s decide.Join, resent bool) decide.Join {
	if !resent {
		return s
	}
	return decide.Join{Seen: s.Seen, Pinned: s.Pinned, Temporary: s.Temporary, Unconditional: s.Unconditional, MayExist: s.MayExist}
}
