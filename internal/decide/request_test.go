package decide_test

import (
	"io"
	"strings"
	"testing"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// repeated returns the actions if every request of a conversation gets the same reply:
// "wait repeat, absent". A conversation that does not end has "...".
func repeated(s decide.Request, r session.Reply) string {
	var words []string
	for range 5 {
		var a session.Action
		s, a = s.Decide(r)
		if words = append(words, describe(a)); decide.Ends(a.Step) {
			return strings.Join(words, ", ")
		}
		if len(words) > 1 && words[len(words)-1] == words[len(words)-2] {
			return words[0] + ", ..."
		}
	}
	return strings.Join(words, ", ") + ", ..."
}

// stranger returns a reply that is not from the service.
func stranger(code int) session.Reply { return session.Reply{Status: code, Committed: -1} }

// because returns the service's refusal with a reason.
func because(code int, reason string) session.Reply {
	r := status(code)
	r.Reason = reason
	return r
}

// requests are the exchanges that Request.Decide serves, with their success. The service
// may not have been reached before those up to OpMultipartStart.
var requests = []struct {
	op      session.Op
	success session.Reply
}{
	{session.OpStat, made(1)}, {bucket.OpList, status(200)}, {bucket.OpRead, status(200)}, {bucket.OpDelete, status(204)},
	{bucket.OpConfig, status(200)}, {bucket.OpNotifications, status(200)}, {bucket.OpPermissions, status(200)},
	{bucket.OpManagedFolder, status(200)}, {bucket.OpDeleteFolder, status(204)},
	{multipart.OpStart, session.Reply{}}, // its success has a URI
	{multipart.OpList, status(200)}, {multipart.OpAbort, status(204)}, {session.OpCancel, status(499)},
}

// TestRequest checks the table of Request: each reply to each request, at first
// contact, once the service has answered, and if the service has what the request is about.
func TestRequest(t *testing.T) {
	const again = "wait repeat, ..."
	always := func(what string) [3]string { return [3]string{what, what, what} }
	confirmed := func(what string) [3]string { return [3]string{what, what, "wait repeat, " + what} }
	// A stranger's reply at first contact means that the destination may be wrong.
	strangers := [3]string{"ErrNotFound", again, again}
	stat := []session.Op{session.OpStat, bucket.OpRead, bucket.OpDelete, bucket.OpManagedFolder, bucket.OpDeleteFolder}
	upload := []session.Op{multipart.OpList, multipart.OpAbort}
	for _, row := range []struct {
		name  string
		reply session.Reply
		want  [3]string // at first contact, later, and later if Known is set

		except []session.Op // the requests with another action
		other  [3]string
	}{
		{"connection reset", broken(errReset), always(again), nil, [3]string{}},
		{"a reply that was cut", broken(io.ErrUnexpectedEOF), always(again), nil, [3]string{}},
		{"stall", broken(session.ErrStalled), always(again), nil, [3]string{}},
		{"a certificate that is not trusted", broken(errTrust), strangers, nil, [3]string{}},
		{"a proxy that asks for a password", broken(errProxy407), [3]string{"ErrCredentials", again, again}, nil, [3]string{}},
		{"no credentials", broken(session.ErrCredentials), always("ErrCredentials"), nil, [3]string{}},
		{"a request that cannot be made", broken(session.ErrInvalid), always("ErrInvalid"), nil, [3]string{}},
		{"an upload at another host", broken(session.ErrURIMismatch), always("ErrProtocol"), nil, [3]string{}},

		{"408", status(408), always(again), nil, [3]string{}},
		{"429", status(429), always(again), nil, [3]string{}},
		{"429 of a stranger", stranger(429), always(again), nil, [3]string{}},
		{"500", status(500), always(again), nil, [3]string{}},
		{"501", status(501), always(again), []session.Op{multipart.OpStart}, always("ErrNotFound")},
		{"503", status(503), always(again), nil, [3]string{}},
		{"503 of a stranger", stranger(503), always(again), nil, [3]string{}},
		{"403 rateLimitExceeded", because(403, "rateLimitExceeded"), always(again), nil, [3]string{}},

		{"302", stranger(302), strangers, nil, [3]string{}},
		{"a redirect", session.Reply{Status: 302, Redirect: "http://portal"}, strangers, nil, [3]string{}},
		{"a permanent redirect", session.Reply{Status: 308, Redirect: "http://portal"}, strangers, nil, [3]string{}},
		{"308", stranger(308), strangers, nil, [3]string{}},
		{"202", stranger(202), strangers, nil, [3]string{}},
		{"407", stranger(407), [3]string{"ErrCredentials", again, again}, nil, [3]string{}},
		{"403 of a stranger", stranger(403), [3]string{"ErrPermission", again, again}, nil, [3]string{}},
		{"404 of a stranger", stranger(404), strangers, nil, [3]string{}},
		{"410 of a stranger", stranger(410), strangers, nil, [3]string{}},
		{"412 of a stranger", stranger(412), strangers, nil, [3]string{}},

		{"401", status(401), always("repeat, ErrCredentials"), nil, [3]string{}},
		{"401 of a stranger", stranger(401), always("repeat, ErrCredentials"), nil, [3]string{}},
		{"403", status(403), always("ErrPermission"), nil, [3]string{}},
		{"403 quotaExceeded", because(403, "quotaExceeded"), always("ErrQuota"), nil, [3]string{}},
		{"429 dailyLimitExceeded", because(429, "dailyLimitExceeded"), always("ErrQuota"), nil, [3]string{}},
		{"412 orgPolicyConstraintFailed", because(412, "orgPolicyConstraintFailed"), always("ErrPermission"), nil, [3]string{}},

		{"404", status(404), confirmed("ErrNotFound"), append(stat, session.OpCancel), confirmed("absent")},
		{"404 NoSuchUpload", because(404, "NoSuchUpload"), confirmed("ErrNotFound"), append(append(stat, session.OpCancel), upload...), confirmed("absent")},
		{"410", status(410), confirmed("ErrNotFound"), []session.Op{session.OpCancel}, confirmed("absent")},
		{"412", status(412), confirmed("refused"), nil, [3]string{}},
		{"400", status(400), confirmed("refused"), nil, [3]string{}},
		{"405", status(405), confirmed("refused"), nil, [3]string{}},
		{"409", status(409), confirmed("refused"), nil, [3]string{}},
		{"411", status(411), confirmed("refused"), nil, [3]string{}},
		{"416", status(416), confirmed("refused"), nil, [3]string{}},
	} {
		for _, request := range requests {
			want, first, refused := row.want, true, "ErrInvalid"
			for _, op := range row.except {
				if op == request.op {
					want = row.other
				}
			}
			switch request.op {
			case multipart.OpList, multipart.OpAbort, session.OpCancel:
				first, refused = false, "ErrProtocol" // the service has been reached
			}
			for i, s := range []decide.Request{{}, {}, {Known: true}} {
				if s.Known && request.op == multipart.OpStart {
					continue // it is about nothing that the service has
				}
				r := row.reply
				r.Op, r.Reached = request.op, i > 0
				wanted := want[i]
				if i == 0 && !first {
					wanted = want[1]
				}
				wanted = strings.ReplaceAll(wanted, "refused", refused)
				if request.op == multipart.OpStart && (r.Status == 410 || r.Status == 501) {
					wanted = strings.ReplaceAll(wanted, "ErrNotFound", "ErrInvalid") // the server has no XML API
				}
				if got := repeated(s, r); got != wanted {
					t.Errorf("%s to %s, reached %v, known %v: %s, want %s", row.name, r.Op, r.Reached, s.Known, got, wanted)
				}
			}
		}
	}
}

// TestRequestSuccess checks the success of each request at first contact. TestRequestModelCheck has the rules
// for later.
func TestRequestSuccess(t *testing.T) {
	for _, request := range requests {
		r := request.success
		if r.Op = request.op; request.op == multipart.OpStart {
			r.Status, r.URI = 200, freshURI(t)
		}
		if got := repeated(decide.Request{}, r); got != "done" {
			t.Errorf("%s: %s, want done", r.Op, got)
		}
		if _, a := (decide.Request{}).Decide(r); a.Object != r.Object {
			t.Errorf("%s: object %v, want %v", r.Op, a.Object, r.Object)
		}
		r = session.Reply{Op: request.op, Status: 200, Err: io.ErrUnexpectedEOF}
		if got := repeated(decide.Request{}, r); got != "wait repeat, ..." {
			t.Errorf("%s that was cut: %s, want wait repeat, ...", r.Op, got)
		}
	}
}

// TestOptionalRequest checks the refusals of a proxy if the request is optional.
func TestOptionalRequest(t *testing.T) {
	for _, story := range []struct {
		name  string
		op    session.Op
		turns []turn
	}{
		{"it does not know the request", multipart.OpStart, []turn{{stranger(404), "wait repeat"}, {stranger(404), "ErrNotFound"}}},
		{"an outage between two answers", session.OpStat, []turn{
			{stranger(404), "wait repeat"}, {status(503), "wait repeat"}, {stranger(502), "wait repeat"}, {stranger(405), "wait repeat"}, {stranger(405), "ErrNotFound"},
		}},
		{"it requires a password", session.OpStat, []turn{{stranger(407), "wait repeat"}, {stranger(407), "wait repeat"}}},
	} {
		s := decide.Request{Optional: true}
		for i, turn := range story.turns {
			r := turn.reply
			r.Op, r.Reached = story.op, true
			var a session.Action
			if s, a = s.Decide(r); describe(a) != turn.want {
				t.Errorf("%s: turn %d: %s, want %s", story.name, i, describe(a), turn.want)
				break
			}
		}
	}
}
