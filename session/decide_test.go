package session_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
)

const q = chunk.Granularity

// sentinelNames has the errors that a driver checks.
var sentinelNames = map[error]string{
	session.ErrInvalid: "ErrInvalid", session.ErrCredentials: "ErrCredentials", session.ErrPermission: "ErrPermission",
	session.ErrNotFound: "ErrNotFound", session.ErrQuota: "ErrQuota", session.ErrPrecondition: "ErrPrecondition",
	session.ErrSessionLost: "ErrSessionLost", session.ErrCanceled: "ErrCanceled", session.ErrChecksum: "ErrChecksum",
	session.ErrUnexpectedData: "ErrUnexpectedData", session.ErrProtocol: "ErrProtocol",
	session.ErrOutcomeUnknown: "ErrOutcomeUnknown",
}

// describe returns an action in words: "send", "wait query", "wait 30s begin",
// "done", "ErrSessionLost".
func describe(a session.Action) string {
	if a.Step == session.Fail {
		for kind, name := range sentinelNames {
			if errors.Is(a.Err, kind) {
				return name
			}
		}
		return "an error without a sentinel"
	}
	var words []string
	if a.Wait {
		words = append(words, "wait")
	}
	if a.RetryAfter > 0 {
		words = append(words, a.RetryAfter.String())
	}
	return strings.Join(append(words, string(a.Step)), " ")
}

const gapMessage = "Invalid request.  According to the Content-Range header, the upload offset is 524288 byte(s), which exceeds already uploaded size of 262144 byte(s)."

// TestDecide checks the decision table: each reply to each exchange, in the middle
// of an upload of 2q+1 bytes. q of them are committed and 2q were sent. TestStatus and
// TestNetworkErrors of package backoff have more failures that are temporary.
func TestDecide(t *testing.T) {
	const total = 2*q + 1
	const beginWait, queryWait = "wait begin", "wait query"
	again := [5]string{beginWait, queryWait, queryWait, queryWait, beginWait}
	all := func(what string) [5]string { return [5]string{what, what, what, what, what} }
	// Before a session exists, the request is invalid. Later, the answer of the server is
	// wrong.
	refused := [5]string{"ErrInvalid", "ErrProtocol", "ErrProtocol", "ErrProtocol", "ErrInvalid"}
	// The reply of a proxy. Before a session exists, the destination may be wrong.
	portal := [5]string{"ErrNotFound", queryWait, queryWait, queryWait, "ErrNotFound"}
	locked := [5]string{"ErrCredentials", queryWait, queryWait, queryWait, "ErrCredentials"}
	gone := [5]string{"ErrNotFound", "begin", "begin", "begin", "ErrNotFound"} // after the wait before the second answer
	noHost := [5]string{"ErrNotFound", queryWait, queryWait, queryWait, "ErrNotFound"}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		noHost = again // the machine may be offline: backoff.Network
	}
	goneSlowly := [5]string{"ErrNotFound", "wait 30s begin", "wait 30s begin", "wait 30s begin", "ErrNotFound"}

	ops := [5]session.Op{session.OpStart, session.OpPut, session.OpQuery, session.OpFinalize, session.OpInsert}
	for _, row := range []struct {
		name  string
		reply session.Reply
		want  [5]string // to start, put, query, finalize, insert
	}{
		{"the object", session.Reply{Status: 200, Object: object(total)}, [5]string{beginWait, "done", "done", "done", "done"}},
		{"the object, created", session.Reply{Status: 201, Object: object(total)}, [5]string{beginWait, "done", "done", "done", "done"}},
		{"success without an object", session.Reply{Status: 200}, again},
		{"a shorter object", session.Reply{Status: 200, Object: object(total - 1)}, [5]string{beginWait, queryWait, queryWait, queryWait, "ErrUnexpectedData"}},
		{"a longer object", session.Reply{Status: 200, Object: object(total + 1)}, [5]string{beginWait, queryWait, queryWait, queryWait, "ErrUnexpectedData"}},

		{"all sent bytes committed", session.Reply{Status: 308, Committed: 2 * q}, [5]string{"ErrProtocol", "send", "send", "send", "ErrProtocol"}},
		{"some of the sent bytes committed", session.Reply{Status: 308, Committed: q + 1}, [5]string{"ErrProtocol", "send", "send", "send", "ErrProtocol"}},
		{"no newly committed bytes", session.Reply{Status: 308, Committed: q}, [5]string{"ErrProtocol", queryWait, "send", queryWait, "ErrProtocol"}},
		{"no Range", session.Reply{Status: 308, Committed: -1}, [5]string{"ErrProtocol", queryWait, queryWait, queryWait, "ErrProtocol"}},
		{"all committed, not final", session.Reply{Status: 308, Committed: total, Sent: total}, [5]string{"ErrProtocol", "finish", "finish", "wait finish", "ErrProtocol"}},
		{"more committed than was sent", session.Reply{Status: 308, Committed: 2*q + 1}, [5]string{"ErrProtocol", queryWait, queryWait, queryWait, "ErrProtocol"}},
		{"more committed than the source has", session.Reply{Status: 308, Committed: total + 1, Sent: total}, [5]string{"ErrProtocol", queryWait, queryWait, queryWait, "ErrProtocol"}},
		{"less committed than before", session.Reply{Status: 308, Committed: q - 1}, [5]string{"ErrProtocol", "ErrProtocol", "ErrProtocol", "ErrProtocol", "ErrProtocol"}},

		{"no such host", session.Reply{Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, noHost},
		{"412 orgPolicyConstraintFailed", session.Reply{Status: 412, Reason: "orgPolicyConstraintFailed"}, all("ErrPermission")},
		{"connection reset", session.Reply{Err: errReset}, again},
		{"timeout", session.Reply{Err: errTimeout}, again},
		{"stall", session.Reply{Err: session.ErrStalled}, again},
		{"408", session.Reply{Status: 408}, again},
		{"429", session.Reply{Status: 429}, again},
		{"429 with Retry-After", session.Reply{Status: 429, RetryAfter: 5 * time.Second}, [5]string{"wait 5s begin", "wait 5s query", "wait 5s query", "wait 5s query", "wait 5s begin"}},
		{"500", session.Reply{Status: 500}, again},
		{"503", session.Reply{Status: 503}, again},
		{"503, a gap", session.Reply{Status: 503, Message: gapMessage}, again},
		{"403 rateLimitExceeded", session.Reply{Status: 403, Reason: "rateLimitExceeded"}, again},

		{"401", session.Reply{Status: 401}, [5]string{"begin", "query", "query", "query", "begin"}},
		{"no credentials", session.Reply{Err: session.ErrCredentials}, all("ErrCredentials")},
		{"403", session.Reply{Status: 403}, all("ErrPermission")},
		{"403 forbidden", session.Reply{Status: 403, Reason: "forbidden"}, all("ErrPermission")},
		{"403 dailyLimitExceeded", session.Reply{Status: 403, Reason: "dailyLimitExceeded"}, all("ErrQuota")},
		{"403 quotaExceeded", session.Reply{Status: 403, Reason: "quotaExceeded"}, all("ErrQuota")},
		{"412", session.Reply{Status: 412}, all("ErrPrecondition")},
		{"304", session.Reply{Status: 304}, [5]string{"ErrNotFound", "ErrPrecondition", "ErrPrecondition", "ErrPrecondition", "ErrPrecondition"}},
		{"499", session.Reply{Status: 499}, all("ErrCanceled")},

		{"404", session.Reply{Status: 404}, gone},
		{"410", session.Reply{Status: 410}, gone},
		{"410 around 503", session.Reply{Status: 410, Inner: 503, Reason: "backendError"}, gone},
		{"410 around 404", session.Reply{Status: 410, Inner: 404}, gone},
		{"410 around 410", session.Reply{Status: 410, Inner: 410}, gone},
		{"410 around 401", session.Reply{Status: 410, Inner: 401}, gone}, // the next start checks the credentials
		{"410 around 408", session.Reply{Status: 410, Inner: 408}, gone},
		{"410 around 429", session.Reply{Status: 410, Inner: 429}, goneSlowly},
		{"410 around 403 rateLimitExceeded", session.Reply{Status: 410, Inner: 403, Reason: "rateLimitExceeded"}, goneSlowly},
		{"410 around 400", session.Reply{Status: 410, Inner: 400}, refused},
		{"410 around 403", session.Reply{Status: 410, Inner: 403}, all("ErrPermission")},
		{"410 around 412", session.Reply{Status: 410, Inner: 412}, all("ErrPrecondition")},
		{"410 around 499", session.Reply{Status: 410, Inner: 499}, all("ErrCanceled")},

		{"400", session.Reply{Status: 400, Message: "Failed to parse Content-Range header."}, refused},
		{"400, the hash differs", session.Reply{Status: 400, Message: "Provided CRC32C \"AAAAAA==\" doesn't match calculated CRC32C \"x\"."},
			[5]string{"ErrInvalid", "ErrProtocol", "ErrProtocol", beginWait, beginWait}},
		{"412, the hash differs", session.Reply{Status: 412, Message: "The MD5 you specified did not match."},
			[5]string{"ErrPrecondition", "ErrPrecondition", "ErrPrecondition", beginWait, beginWait}},
		{"405", session.Reply{Status: 405}, refused},
		{"409", session.Reply{Status: 409}, refused},
		{"411", session.Reply{Status: 411}, refused},
		{"413", session.Reply{Status: 413}, refused},
		{"416", session.Reply{Status: 416}, refused},

		{"a redirect to another host", session.Reply{Status: 302, Redirect: "http://portal"}, portal},
		{"a permanent redirect to another host", session.Reply{Status: 308, Committed: -1, Redirect: "http://portal"}, portal},
		{"a redirect", session.Reply{Status: 302}, [5]string{"ErrNotFound", queryWait, queryWait, queryWait, "ErrNotFound"}},
		{"204", session.Reply{Status: 204}, [5]string{"ErrNotFound", queryWait, queryWait, queryWait, "ErrNotFound"}},
		{"a certificate that is not trusted", session.Reply{Err: errTrust}, portal},
		{"a proxy without its server", session.Reply{Err: errProxy503}, again},
		{"a proxy that asks for a password", session.Reply{Err: errProxy407}, locked},
		{"a plain HTTP proxy that asks for a password", session.Reply{Status: 407}, locked},
		{"an unknown error", session.Reply{Err: errors.New("something")}, portal},
		{"a request that cannot be made", session.Reply{Err: session.ErrInvalid}, all("ErrInvalid")},
		{"a session at another host", session.Reply{Err: session.ErrURIMismatch}, all("ErrProtocol")},
	} {
		for i, op := range ops {
			s := session.State{Size: total, Committed: q, Sent: 2 * q, Replayable: true}
			r := row.reply
			r.Op, r.FromService = op, true
			if r.Status != 308 {
				r.Committed = -1
			}
			s, a := session.Decide(s, r)
			if session.Destructive(s, r) {
				// A query must confirm such an answer.
				if describe(a) != queryWait {
					t.Errorf("%s: %s: %s, want %s", row.name, op, describe(a), queryWait)
				}
				r.Op = session.OpQuery
				_, a = session.Decide(s, r)
			}
			if describe(a) != row.want[i] {
				t.Errorf("%s: %s: %s, want %s", row.name, op, describe(a), row.want[i])
			}
		}
	}
}

// TestRejectedData checks a service that refuses data although its session is
// open. The saved upload is kept. If the next process gets the same refusal at the
// same offset, a new session is started.
func TestRejectedData(t *testing.T) {
	for _, code := range []int{400, 405, 409, 411, 413, 416} {
		s := session.State{Size: 3 * q, Committed: q, Sent: q, Replayable: true}
		refuse := func(s session.State) (session.State, session.Action) {
			s, a := session.Decide(s, put(2*q, status(code)))
			if describe(a) != "wait query" {
				t.Fatalf("%d: %s, want wait query", code, describe(a))
			}
			return session.Decide(s, query(held(q)))
		}
		s, a := refuse(s)
		if describe(a) != "ErrProtocol" || !a.Err.Open || a.Err.Status != code || !s.Rejected || s.RejectedAt != q {
			t.Errorf("%d: %s, %+v, %+v", code, describe(a), a.Err, s)
		}
		// The next process.
		next := session.State{Size: 3 * q, Committed: q, Sent: 2 * q, Replayable: true, Rejected: true, RejectedAt: q}
		if s, a := refuse(next); describe(a) != "wait begin" || s.Restarts != 1 {
			t.Errorf("%d, again: %s, %+v", code, describe(a), s)
		}
		next.RejectedAt = 0 // the refusal was at another offset
		if _, a := refuse(next); describe(a) != "ErrProtocol" || !a.Err.Open {
			t.Errorf("%d, elsewhere: %s", code, describe(a))
		}
	}
}

// TestTemporaryObject checks the decisions for an object that only this upload writes. A
// refused precondition and a canceled session are not the user's, and the object is that of
// this upload even if an earlier process made it.
func TestTemporaryObject(t *testing.T) {
	older := ours(3 * q)
	older.Older = true
	at := session.State{Size: 3 * q, Committed: q, Sent: 2 * q, Replayable: true, Temporary: true}
	begins := session.State{Size: 3 * q, Replayable: true, Temporary: true}
	ended := at
	ended.MayExist = true
	user := at
	user.Temporary, user.MayExist = false, true
	envelope := func(inner int) session.Reply { r := status(410); r.Inner = inner; return r }
	for _, story := range []struct {
		name  string
		state session.State
		turns []turn
	}{
		{"412, and this upload made the object", at, []turn{
			{finalize(3*q, status(412)), "wait query"}, {query(status(412)), "check"}, {stat(ours(3 * q)), "done"},
		}},
		{"412, and an earlier process made the object", at, []turn{
			{finalize(3*q, status(412)), "wait query"}, {query(status(412)), "check"}, {stat(older), "done"},
		}},
		{"412, and another client made the object", at, []turn{
			{finalize(3*q, status(412)), "wait query"}, {query(status(412)), "check"}, {stat(made(3 * q)), "ErrUnexpectedData"},
		}},
		{"412, and there is no object", at, []turn{
			{finalize(3*q, status(412)), "wait query"}, {query(status(412)), "check"}, {stat(status(404)), "begin"},
		}},
		{"412, and the object cannot be read", at, []turn{
			{put(2*q, status(412)), "wait query"}, {query(status(412)), "check"}, {stat(status(503)), "wait check"},
			{stat(stranger(404)), "wait check"}, {stat(status(401)), "check"}, {stat(status(403)), "begin"},
		}},
		{"412, and the session is open", at, []turn{
			{put(2*q, status(412)), "wait query"}, {query(held(q)), "send"}, {put(2*q, status(412)), "wait query"}, {query(held(q)), "send"},
		}},
		{"412, with an outage in between", at, []turn{
			{put(2*q, status(412)), "wait query"}, {query(status(503)), "wait query"}, {query(stranger(412)), "wait query"}, {query(status(412)), "check"},
		}},
		{"410 around 412", at, []turn{{put(2*q, envelope(412)), "wait query"}, {query(envelope(412)), "check"}, {stat(older), "done"}}},
		{"412 to a start", begins, []turn{{start(status(412)), "check"}, {stat(older), "done"}}},
		{"412 to a start, and there is no object", begins, []turn{{start(status(412)), "check"}, {stat(status(404)), "wait begin"}}},
		{"412 that names a hash", at, []turn{
			{finalize(3*q, session.Reply{Status: 412, Message: "The MD5 you specified did not match.", FromService: true, Committed: -1}), "wait begin"},
		}},
		{"499", at, []turn{{put(2*q, status(499)), "wait query"}, {query(status(499)), "begin"}}},
		{"499 after the last byte, and the object exists", ended, []turn{
			{finalize(3*q, status(499)), "wait query"}, {query(status(499)), "check"}, {stat(older), "done"},
		}},
		{"499 after the last byte, and there is no object", ended, []turn{
			{finalize(3*q, status(499)), "wait query"}, {query(status(499)), "check"}, {stat(status(404)), "begin"},
		}},
		{"499, and the session is open", at, []turn{{put(2*q, status(499)), "wait query"}, {query(held(q)), "send"}}},
		{"499 and then 404", at, []turn{{put(2*q, status(499)), "wait query"}, {query(status(404)), "begin"}}},
		{"410 around 499", at, []turn{{put(2*q, envelope(499)), "wait query"}, {query(envelope(499)), "begin"}}},
		{"499 to a start", begins, []turn{{start(status(499)), "ErrCanceled"}}},
		{"404 after the last byte, and an earlier process made the object", ended, []turn{
			{query(status(404)), "wait query"}, {query(status(404)), "check"}, {stat(older), "done"},
		}},

		{"the user's 412", user, []turn{{query(status(412)), "check"}, {stat(older), "ErrPrecondition"}}},
		{"the user's 499", user, []turn{{query(status(499)), "ErrCanceled"}}},
	} {
		s := story.state
		for i, turn := range story.turns {
			var a session.Action
			if s, a = session.Decide(s, turn.reply); describe(a) != turn.want {
				t.Errorf("%s: turn %d, %s: %s, want %s", story.name, i, turn.reply.Op, describe(a), turn.want)
				break
			}
			if a.Step == session.Begin && (s.Committed != 0 || s.Sent != 0) {
				t.Errorf("%s: turn %d: a new session begins with %d bytes committed and %d sent", story.name, i, s.Committed, s.Sent)
			}
			if a.Step == session.Begin && turn.reply.Op != session.OpStart && s.Restarts != 1 {
				t.Errorf("%s: turn %d: %d restarts, want 1", story.name, i, s.Restarts)
			}
		}
	}
}

// TestStrangers checks that a refusal that is not from the service counts as a lost reply at
// every exchange, once the service has answered.
func TestStrangers(t *testing.T) {
	for code := 400; code < 500; code++ {
		if code == 401 || code == 408 || code == 429 {
			continue // they mean the same from any server
		}
		for _, c := range []struct {
			op   session.Op
			want string
		}{
			{session.OpStart, "wait begin"}, {session.OpPut, "wait query"}, {session.OpQuery, "wait query"}, {session.OpFinalize, "wait query"},
			{session.OpInsert, "wait check"}, {session.OpStat, "wait check"},
		} {
			s := session.State{Size: 2 * q, Committed: q, Sent: q, Replayable: true, Unconditional: true}
			for range 3 {
				r := stranger(code)
				r.Op, r.Sent, r.Reached, r.Message = c.op, 2*q, true, "bad checksum"
				var a session.Action
				if s, a = session.Decide(s, r); describe(a) != c.want || code != 407 && !strings.Contains(a.Err.Error(), "is not from Cloud Storage") {
					t.Errorf("%d to %s: %s, %v, want %s", code, c.op, describe(a), a.Err, c.want)
				}
			}
			if last := c.op == session.OpFinalize || c.op == session.OpInsert; s.MayExist != last || s.Restarts != 0 || s.Committed != q {
				t.Errorf("%d to %s: %+v", code, c.op, s)
			}
		}
	}
}

// TestNetworkTroubleAfterARestart checks that a new start is retried after any
// error of the network: the service that lost the session still exists.
func TestNetworkTroubleAfterARestart(t *testing.T) {
	for _, r := range []session.Reply{broken(errTrust), broken(errProxy407), status(302), {Status: 308, Committed: -1, Redirect: "http://portal"}, status(407)} {
		_, a := session.Decide(session.State{Size: q, Replayable: true, Restarts: 1}, start(r))
		if got := describe(a); got != "wait begin" {
			t.Errorf("%+v: %s, want wait begin", r, got)
		}
	}
}

// TestNetworkTroubleDoesNotHideTheObject checks that a check of the destination is
// repeated if a proxy answers it. Otherwise a finished upload would start over.
func TestNetworkTroubleDoesNotHideTheObject(t *testing.T) {
	for _, r := range []session.Reply{broken(errTrust), broken(errProxy407), status(302), status(204), status(407)} {
		s, _ := session.Decide(session.State{Size: q, Committed: q, Sent: q, Replayable: true, MayExist: true}, query(status(404)))
		s, a := session.Decide(s, query(status(404)))
		if describe(a) != "check" {
			t.Fatalf("404: %s, want check", describe(a))
		}
		if _, a = session.Decide(s, stat(r)); describe(a) != "wait check" {
			t.Errorf("%+v: %s, want wait check", r, describe(a))
		}
	}
}

// TestOffsetErrors checks that an error about offsets has the offsets.
func TestOffsetErrors(t *testing.T) {
	at := session.State{Size: 2 * q, Committed: q, Sent: q}
	_, a := session.Decide(at, query(held(7)))
	if want := "query: protocol error: 308 Resume Incomplete: server reports 7 committed bytes, but reported 262144 before"; a.Err.Error() != want {
		t.Errorf("%q, want %q", a.Err, want)
	}
	s, _ := session.Decide(at, query(made(5)))
	_, a = session.Decide(s, query(made(5)))
	if want := "query: unexpected data on the server: 200 OK: the object has 5 bytes, the source 524288"; a.Err.Error() != want {
		t.Errorf("%q, want %q", a.Err, want)
	}
	s, _ = session.Decide(at, query(held(2*q)))
	_, a = session.Decide(s, query(held(2*q)))
	if want := "query: unexpected data on the server: 308 Resume Incomplete: server reports 524288 committed bytes, but only 262144 were sent"; a.Err.Error() != want {
		t.Errorf("%q, want %q", a.Err, want)
	}
}

// TestRedirectedStart checks that a 308 with a Location is a redirect, and that
// the error has its target.
func TestRedirectedStart(t *testing.T) {
	for _, code := range []string{"302 Found", "308 Permanent Redirect"} {
		w := wiretest.New(t, "HTTP/1.1 "+code+"\nLocation: https://portal.example/login?from=secret\nContent-Length: 0\n\n")
		r := w.Client().Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, q)
		_, a := session.Decide(session.State{Size: q, Replayable: true}, r)
		if want := "start: destination not found: " + code + ": a proxy redirects to https://portal.example"; describe(a) != "ErrNotFound" || a.Err.Error() != want {
			t.Errorf("%s: %v, want %s", code, a.Err, want)
		}
	}
}

// TestMalformedRedirect checks that a redirect to no URL is a redirect. net/http
// returns an error that has the whole Location.
func TestMalformedRedirect(t *testing.T) {
	w := wiretest.New(t, "HTTP/1.1 302 Found\nLocation: http://[::1/"+secrettest.ID+"\nContent-Length: 0\n\n")
	r := w.Client().Query(t.Context(), uriAt(t, w.Endpoint()))
	if r.Status != 302 || r.Redirect != "a malformed URL" {
		t.Errorf("%+v, want the redirect", r)
	}
	_, a := session.Decide(session.State{Size: q, Replayable: true}, r)
	if describe(a) != "wait query" || secrettest.In(a.Err.Error()) {
		t.Errorf("%s, %v, want wait query", describe(a), a.Err)
	}
}

// TestStartWithoutLocation checks that a start is repeated if it succeeds without
// a session.
func TestStartWithoutLocation(t *testing.T) {
	for _, header := range []string{"", "Location: http://[::1\n"} {
		w := wiretest.New(t, "HTTP/1.1 200 OK\n"+header+"Content-Length: 0\n\n")
		r := w.Client().Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, q)
		_, a := session.Decide(session.State{Size: q, Replayable: true}, r)
		if describe(a) != "wait begin" || !strings.Contains(a.Err.Error(), "Location header") {
			t.Errorf("%q: %s, %v, want wait begin", header, describe(a), a.Err)
		}
	}
}

// The functions below return replies. Their names are short, because the stories
// have many of them.
func put(sent int64, r session.Reply) session.Reply {
	r.Op, r.Sent = session.OpPut, sent
	return r
}

func insert(r session.Reply) session.Reply {
	r.Op, r.Sent = session.OpInsert, 1
	return r
}

func finalize(sent int64, r session.Reply) session.Reply {
	r.Op, r.Sent = session.OpFinalize, sent
	return r
}

func query(r session.Reply) session.Reply {
	r.Op = session.OpQuery
	return r
}

func start(r session.Reply) session.Reply {
	r.Op = session.OpStart
	return r
}

func stat(r session.Reply) session.Reply {
	r.Op = session.OpStat
	return r
}

// stranger returns the refusal of a server that is not the service.
func stranger(code int) session.Reply { return session.Reply{Status: code, Committed: -1} }

func held(n int64) session.Reply { return session.Reply{Status: 308, Committed: n} }
func status(code int) session.Reply {
	return session.Reply{Status: code, Committed: -1, FromService: code >= 400}
}
func made(size int64) session.Reply {
	return session.Reply{Status: 200, Committed: -1, Object: object(size)}
}
func broken(err error) session.Reply { return session.Reply{Err: err, Committed: -1} }
func reused(err error) session.Reply { r := broken(err); r.Reused = true; return r }

// differing returns r for a server that has other bytes than those that were sent.
func differing(r session.Reply) session.Reply { r.Differs = true; return r }
func ours(size int64) session.Reply           { r := made(size); r.Ours = true; return r }
func opened(t testing.TB) session.Reply {
	return session.Reply{Status: 200, Committed: -1, URI: freshURI(t)}
}

// turn is a reply, and the action that must follow.
type turn struct {
	reply session.Reply
	want  string
}

// TestStories checks decisions that depend on several replies, beyond the rules of TestEveryStateMeetsEveryReply.
func TestStories(t *testing.T) {
	const total = 2*q + 1
	const rangeless = -1
	at := func(committed, sent int64) session.State {
		return session.State{Size: total, Committed: committed, Sent: sent, Replayable: true}
	}
	for _, story := range []struct {
		name  string
		state session.State
		turns []turn
		end   session.State // Size, Committed, Sent, Failures, Restarts and MayExist are compared
	}{
		{"an empty object", session.State{Size: 0}, []turn{
			{start(opened(t)), "send"}, {finalize(0, status(503)), "wait query"}, {query(held(rangeless)), "send"}, {finalize(0, made(0)), "done"},
		}, session.State{Failures: 1, MayExist: true}},
		{"no Range header after bytes were committed", at(q, 2*q), []turn{
			{put(2*q, held(rangeless)), "wait query"}, {query(held(rangeless)), "wait query"}, {query(held(rangeless)), "ErrProtocol"},
		}, session.State{Size: total, Committed: q, Sent: 2 * q, Failures: 2}},
		{"more committed than was sent, twice, with an outage in between", at(q, q), []turn{
			{query(held(2 * q)), "wait query"}, {query(status(503)), "wait query"}, {query(held(2 * q)), "wait query"},
			{query(held(2 * q)), "ErrUnexpectedData"},
		}, session.State{Size: total, Committed: q, Sent: q, Failures: 3}},
		{"no Range, twice, with an outage in between", at(q, q), []turn{
			{query(held(rangeless)), "wait query"}, {query(status(503)), "wait query"}, {query(held(rangeless)), "wait query"},
			{query(held(rangeless)), "ErrProtocol"},
		}, session.State{Size: total, Committed: q, Sent: q, Failures: 3}},
		{"all committed, not final", at(2*q, 2*q), []turn{
			{finalize(total, held(total)), "wait finish"}, {finalize(total, held(total)), "wait finish"}, {finalize(total, status(503)), "wait query"},
			{query(held(total)), "finish"}, {finalize(total, made(total)), "done"},
		}, session.State{Size: total, Committed: total, Sent: total, Failures: 3, MayExist: true}},
		{"all committed, and then no Range", at(total, total), []turn{
			{finalize(total, held(rangeless)), "wait query"}, {query(held(total)), "finish"},
		}, session.State{Size: total, Committed: total, Sent: total, Failures: 1, MayExist: true}},
		{"the precondition fails because of this upload", at(2*q, 2*q), []turn{
			{finalize(total, broken(io.EOF)), "wait query"}, {query(status(412)), "check"}, {stat(ours(total)), "done"},
		}, session.State{Size: total, Committed: 2 * q, Sent: total, Failures: 1, MayExist: true}},
		{"the precondition fails because of another client", at(2*q, 2*q), []turn{
			{finalize(total, broken(io.EOF)), "wait query"}, {query(status(412)), "check"}, {stat(made(total)), "ErrPrecondition"},
		}, session.State{Size: total, Committed: 2 * q, Sent: total, Failures: 1, MayExist: true}},
		{"the session is lost after the last byte, the object exists", at(2*q, 2*q), []turn{
			{finalize(total, broken(errReset)), "wait query"}, {query(status(404)), "wait query"}, {query(status(404)), "check"},
			{stat(status(503)), "wait check"}, {stat(status(200)), "wait check"}, {stat(ours(total)), "done"},
		}, session.State{Size: total, Committed: 2 * q, Sent: total, Failures: 4, MayExist: true}},
		{"the session is lost after the last byte, no object exists", at(2*q, 2*q), []turn{
			{finalize(total, broken(errReset)), "wait query"}, {query(status(410)), "wait query"}, {query(status(404)), "check"},
			{stat(status(404)), "begin"}, {start(opened(t)), "send"},
		}, session.State{Size: total, Failures: 2, Restarts: 1}},
		{"the session is lost, and the destination cannot be read", at(2*q, 2*q), []turn{
			{finalize(total, broken(errReset)), "wait query"}, {query(status(410)), "wait query"}, {query(status(410)), "check"},
			{stat(status(401)), "check"}, {stat(status(401)), "begin"},
		}, session.State{Size: total, Failures: 2, Restarts: 1}},
		{"a refusal of the session that the next query does not confirm", at(q, 2*q), []turn{
			{query(status(400)), "wait query"}, {query(held(q)), "send"},
		}, session.State{Size: total, Committed: q, Sent: 2 * q, Failures: 1}},
		{"the session is lost, with an outage and a proxy in between", at(q, q), []turn{
			{put(2*q, status(404)), "wait query"}, {query(status(503)), "wait query"}, {query(stranger(404)), "wait query"},
			{query(status(404)), "begin"},
		}, session.State{Size: total, Failures: 3, Restarts: 1}},
		{"the session is lost four times", at(q, 2*q), []turn{
			{put(2*q, status(404)), "wait query"}, {query(status(404)), "begin"}, {start(opened(t)), "send"}, {put(2*q, status(410)), "wait query"},
			{query(status(410)), "begin"}, {start(opened(t)), "send"}, {query(status(404)), "wait query"}, {query(status(404)), "begin"},
			{start(opened(t)), "send"}, {put(2*q, held(q)), "send"}, {put(2*q, status(404)), "wait query"}, {query(status(404)), "ErrSessionLost"},
		}, session.State{Size: total, Committed: q, Sent: 2 * q, Failures: 1, Restarts: 3}},
		{"the session of a stream is lost", session.State{Size: -1, Committed: q, Sent: q}, []turn{
			{put(2*q, status(404)), "wait query"}, {query(status(404)), "ErrSessionLost"},
		}, session.State{Size: -1, Committed: q, Sent: 2 * q, Failures: 1}},
		{"the session is lost, and then the bucket", at(q, q), []turn{
			{query(status(404)), "wait query"}, {query(status(404)), "begin"}, {start(status(404)), "ErrNotFound"},
		}, session.State{Size: total, Restarts: 1, Failures: 1}},
		{"more committed than was sent, and the limit may not have been saved", session.State{Size: total, Committed: q, Sent: q, Replayable: true, Adopted: true}, []turn{
			{query(held(2 * q)), "wait query"}, {query(held(2 * q)), "wait begin"}, {start(opened(t)), "send"},
		}, session.State{Size: total, Failures: 2, Restarts: 1}},
		{"a refresh of the credentials has no effect", at(q, q), []turn{
			{query(status(401)), "query"}, {query(status(401)), "ErrCredentials"},
		}, session.State{Size: total, Committed: q, Sent: q}},
		{"the credentials allow only queries", at(q, q), []turn{
			{put(q, status(401)), "query"}, {query(held(q)), "send"}, {put(q, status(401)), "ErrCredentials"},
		}, session.State{Size: total, Committed: q, Sent: q}},
		{"the credentials expire every hour", at(0, 0), []turn{
			{put(0, status(401)), "query"}, {query(held(rangeless)), "send"}, {put(q, held(q)), "send"}, {put(q, status(401)), "query"},
			{query(held(q)), "send"},
		}, session.State{Size: total, Committed: q, Sent: q}},
		{"the credentials expire in an outage", at(q, q), []turn{
			{query(status(401)), "query"}, {query(status(503)), "wait query"}, {query(status(401)), "query"}, {query(held(q)), "send"},
		}, session.State{Size: total, Committed: q, Sent: q, Failures: 1}},
		{"another object, twice", at(q, total), []turn{
			{query(made(1)), "wait query"}, {query(made(1)), "ErrUnexpectedData"},
		}, session.State{Size: total, Committed: q, Sent: total, Failures: 1}},
		{"an object with other bytes, twice", at(q, total), []turn{
			{query(differing(made(total))), "wait query"}, {query(differing(made(total))), "ErrUnexpectedData"},
		}, session.State{Size: total, Committed: q, Sent: total, Failures: 1}},
		{"an idle connection died", at(q, q), []turn{
			{put(q, reused(io.EOF)), "query"}, {query(held(q)), "send"}, {put(q, reused(io.EOF)), "wait query"}, {query(held(q)), "send"},
			{put(2*q, held(2*q)), "send"}, {put(2*q, broken(io.EOF)), "wait query"},
		}, session.State{Size: total, Committed: 2 * q, Sent: 2 * q, Failures: 1}},
		{"a checksum error of a proxy", at(2*q, 2*q), []turn{
			{finalize(total, session.Reply{Status: 400, Message: "bad checksum", Committed: -1}), "wait query"},
			{query(session.Reply{Status: 412, Message: "bad checksum", Committed: -1}), "wait query"},
		}, session.State{Size: total, Committed: 2 * q, Sent: total, Failures: 2, MayExist: true}},
		{"damaged bytes, too often", at(q, 2*q), []turn{
			{finalize(total, session.Reply{Status: 400, Message: "Provided CRC32C does not match", Committed: -1, FromService: true}), "wait begin"},
			{query(differing(held(q))), "wait begin"},
			{finalize(total, session.Reply{Status: 400, Message: "Provided CRC32C does not match", Committed: -1, FromService: true}), "wait begin"},
			{query(differing(held(q))), "ErrChecksum"},
		}, session.State{Size: total, Failures: 3, Restarts: 3}},
		{"damaged bytes of a stream", session.State{Size: -1, Committed: q, Sent: q}, []turn{
			{query(differing(held(q))), "ErrChecksum"},
		}, session.State{Size: -1, Committed: q, Sent: q}},
	} {
		s := story.state
		for i, turn := range story.turns {
			if turn.reply.Op == session.OpFinalize {
				s.Size = total // the driver knows it by then
				if story.state.Size == 0 {
					s.Size = 0
				}
			}
			var a session.Action
			if s, a = session.Decide(s, turn.reply); describe(a) != turn.want {
				t.Errorf("%s: turn %d, %s: %s, want %s", story.name, i, turn.reply.Op, describe(a), turn.want)
				break
			}
		}
		got := session.State{Size: s.Size, Committed: s.Committed, Sent: s.Sent, Failures: s.Failures, Restarts: s.Restarts, MayExist: s.MayExist}
		if got != story.end {
			t.Errorf("%s: ends in\n%+v, want\n%+v", story.name, got, story.end)
		}
	}
}

// TestDecideInsert checks that an insert that may have succeeded is repeated. If
// the second request is refused, the first one may have made the object.
func TestDecideInsert(t *testing.T) {
	s := session.State{Size: 1, Replayable: true}
	s, a := session.Decide(s, insert(broken(io.EOF)))
	if describe(a) != "wait begin" || !s.MayExist {
		t.Fatalf("lost reply: %s, MayExist %v, want wait begin, true", describe(a), s.MayExist)
	}
	s, a = session.Decide(s, insert(status(412)))
	if describe(a) != "check" {
		t.Fatalf("412 after it: %s, want check", describe(a))
	}
	if _, a := session.Decide(s, stat(ours(1))); describe(a) != "done" || a.Object == nil {
		t.Errorf("the object is ours: %s, want done", describe(a))
	}
	if _, a := session.Decide(s, stat(status(404))); describe(a) != "ErrPrecondition" || a.Err.Op != session.OpInsert {
		t.Errorf("no object: %s, %v, want the ErrPrecondition of the insert", describe(a), a.Err)
	}
}

// TestDoubtOnReusedConnection checks that the error describes the insert even
// if it failed on a reused connection.
func TestDoubtOnReusedConnection(t *testing.T) {
	s, _ := session.Decide(session.State{Size: 1, Unconditional: true, Replayable: true}, insert(reused(io.EOF)))
	if _, a := session.Decide(s, stat(made(1))); describe(a) != "ErrOutcomeUnknown" || a.Err.Op != session.OpInsert || !errors.Is(a.Err, io.EOF) {
		t.Errorf("%s, %v, want the error of the insert", describe(a), a.Err)
	}
}

// TestUnconditionalInsert checks the decisions after an insert without a
// precondition, if its outcome is not known. An object that another client wrote
// in between is never replaced.
func TestUnconditionalInsert(t *testing.T) {
	older := func(r session.Reply) session.Reply { r.Older = true; return r }
	next := func(r session.Reply) session.Reply { // another generation
		o := *r.Object
		o.Generation++
		r.Object = &o
		return r
	}
	lost := broken(io.EOF)
	unsent := broken(connRefused)
	unsent.Unsent = true
	damaged := status(400)
	damaged.Message = "Provided CRC32C does not match"
	for _, tt := range []struct {
		name  string
		turns []turn
		guard int64
	}{
		{"nothing was sent", []turn{{insert(unsent), "wait begin"}}, unguarded},
		{"it was refused", []turn{{insert(status(429)), "wait begin"}}, unguarded},
		{"no object", []turn{{insert(lost), "wait check"}, {stat(status(404)), "begin"}}, 0},
		{"our object", []turn{{insert(status(503)), "wait check"}, {stat(ours(1)), "done"}}, unguarded},
		{"an object of another client", []turn{{insert(lost), "wait check"}, {stat(made(1)), "ErrOutcomeUnknown"}}, unguarded},
		{"an older object", []turn{{insert(lost), "wait check"}, {stat(older(made(1))), "begin"}}, 7},
		{"an older object with our bytes", []turn{{insert(lost), "wait check"}, {stat(older(ours(1))), "begin"}}, 7},
		{"no permission to read", []turn{{insert(lost), "wait check"}, {stat(status(403)), "begin"}}, 0},
		{"no permission to read, and an object exists", []turn{
			{insert(lost), "wait check"}, {stat(status(403)), "begin"}, {insert(status(412)), "check"}, {stat(status(403)), "ErrOutcomeUnknown"},
		}, 0},
		{"the check fails", []turn{
			{insert(lost), "wait check"}, {stat(status(503)), "wait check"}, {stat(session.Reply{Status: 404, Committed: -1}), "wait check"}, {stat(status(404)), "begin"},
		}, 0},
		{"the first insert arrives late", []turn{
			{insert(lost), "wait check"}, {stat(status(404)), "begin"}, {insert(status(412)), "check"}, {stat(ours(1)), "done"},
		}, 0},
		{"another client writes in between", []turn{
			{insert(lost), "wait check"}, {stat(older(made(1))), "begin"}, {insert(status(412)), "check"}, {stat(next(made(1))), "ErrOutcomeUnknown"},
		}, 7},
		{"another client writes before damaged bytes are sent again", []turn{
			{insert(lost), "wait check"}, {stat(status(404)), "begin"}, {insert(damaged), "wait begin"}, {insert(status(412)), "check"}, {stat(made(1)), "ErrOutcomeUnknown"},
		}, 0},
		{"the insert is refused, and nothing changed", []turn{
			{insert(lost), "wait check"}, {stat(older(made(1))), "begin"}, {insert(status(412)), "check"}, {stat(older(made(1))), "wait begin"},
		}, 7},
	} {
		s := session.State{Size: 1, Replayable: true, Unconditional: true}
		wantTurns(t, tt.name, s, tt.turns, tt.guard)
	}

	// The caller read generation 7 before the insert.
	for _, tt := range []struct {
		name  string
		turns []turn
		guard int64
	}{
		{"our object", []turn{{insert(lost), "wait check"}, {stat(next(ours(1))), "done"}}, 7},
		{"the object that was read", []turn{{insert(lost), "wait check"}, {stat(made(1)), "begin"}}, 7},
		{"the object that was read, with our bytes", []turn{{insert(lost), "wait check"}, {stat(ours(1)), "begin"}}, 7},
		{"an object of another client", []turn{{insert(lost), "wait check"}, {stat(next(made(1))), "ErrOutcomeUnknown"}}, 7},
		{"no object", []turn{{insert(lost), "wait check"}, {stat(status(404)), "begin"}}, 0},
		{"the guard fails", []turn{{insert(status(412)), "check"}, {stat(next(made(1))), "begin"}}, unguarded},
		{"the guard fails, and the bytes are the same", []turn{{insert(status(412)), "check"}, {stat(next(ours(1))), "done"}}, 7},
		{"the guard fails, and there is no object", []turn{{insert(status(412)), "check"}, {stat(status(404)), "begin"}}, unguarded},
		{"the guard fails, and the object cannot be read", []turn{{insert(status(412)), "check"}, {stat(status(403)), "begin"}}, unguarded},
		{"the guard fails, and the check too", []turn{{insert(status(412)), "check"}, {stat(status(503)), "wait check"}, {stat(next(made(1))), "begin"}}, unguarded},
		{"the guard fails, and the next reply is lost", []turn{
			{insert(status(412)), "check"}, {stat(next(made(1))), "begin"}, {insert(lost), "wait check"}, {stat(older(next(made(1)))), "begin"},
		}, 8},
		{"another client after a lost reply", []turn{{insert(lost), "wait check"}, {stat(made(1)), "begin"}, {insert(status(412)), "check"}, {stat(next(made(1))), "ErrOutcomeUnknown"}}, 7},
		{"a lost reply after the guard failed", []turn{{insert(status(412)), "check"}, {stat(status(404)), "begin"}, {insert(lost), "wait check"}, {stat(made(1)), "ErrOutcomeUnknown"}}, unguarded},
	} {
		s := session.State{Size: 1, Replayable: true, Unconditional: true}.Guarded(7)
		wantTurns(t, tt.name+", guarded", s, tt.turns, tt.guard)
	}
}

// unguarded is the guard of an insert without one, for wantTurns.
const unguarded = -1

// wantTurns checks the decisions from s on, and the guard at the end.
func wantTurns(t *testing.T, name string, s session.State, turns []turn, guard int64) {
	t.Helper()
	for i, turn := range turns {
		var a session.Action
		if s, a = session.Decide(s, turn.reply); describe(a) != turn.want {
			t.Errorf("%s: turn %d: %s, want %s", name, i, describe(a), turn.want)
		}
	}
	if got, ok := s.Guard(); ok != (guard != unguarded) || ok && got != guard {
		t.Errorf("%s: guard %d, %v, want %d", name, got, ok, guard)
	}
}

// TestRetryable checks which replies may be retried: failures of the network and
// the service, but no answer. A canceled or finished session is not canceled
// again.
func TestRetryable(t *testing.T) {
	for _, c := range []struct {
		op   session.Op
		code int
		want bool
	}{
		{session.OpPut, 503, true}, {session.OpPut, 302, true}, {session.OpQuery, 204, true}, {session.OpFinalize, 302, true},
		{session.OpPut, 308, false}, {session.OpQuery, 200, false}, {session.OpFinalize, 201, false}, {session.OpPut, 400, false},
		{session.OpCancel, 503, true}, {session.OpCancel, 200, false}, {session.OpCancel, 302, true},
		{session.OpStat, 200, false}, {session.OpStat, 302, false}, {session.OpStart, 302, false}, {session.OpInsert, 429, true},
	} {
		r := status(c.code)
		if r.Op = c.op; r.Retryable() != c.want {
			t.Errorf("%s, %d: Retryable() = %v, want %v", c.op, c.code, r.Retryable(), c.want)
		}
	}
	// The success of a delete is 204. Other requests have no such reply.
	c := wiretest.New(t, "HTTP/1.1 204 No Content\n\n").Client()
	for method, want := range map[string]bool{http.MethodDelete: false, http.MethodGet: true, http.MethodPost: true} {
		r := c.Do(t.Context(), session.Exchange{Op: "other", Method: method, Path: []string{"x"}})
		if r.Reached = true; r.Status != 204 || r.Retryable() != want {
			t.Errorf("%s, %d after the service answered: Retryable() = %v, want %v", method, r.Status, r.Retryable(), want)
		}
	}
}

// TestOneErrRetriesExhausted checks that a program that uses both packages can
// check for one error.
func TestOneErrRetriesExhausted(t *testing.T) {
	for _, err := range []error{&session.Error{Kind: session.ErrRetriesExhausted}, &backoff.Error{Stop: backoff.ErrRetriesExhausted}} {
		if !errors.Is(err, session.ErrRetriesExhausted) || !errors.Is(err, backoff.ErrRetriesExhausted) {
			t.Errorf("%v does not match both sentinels", err)
		}
	}
}

// TestNoError checks that an Action without a failure has no error, and that
// errors.Is accepts its nil Err.
func TestNoError(t *testing.T) {
	_, a := session.Decide(session.State{Size: -1}, query(held(-1)))
	if errors.Is(a.Err, session.ErrSessionLost) || a.Err.Unwrap() != nil {
		t.Errorf("%+v is an error", a.Err)
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  session.Error
		want string
	}{
		{session.Error{Op: session.OpPut, Status: 503, Message: "Try later.", Kind: session.ErrRetriesExhausted, Offset: 262144, Attempts: 6},
			"put: retries exhausted: 503 Service Unavailable: Try later. (after 6 attempts at offset 262144)"},
		{session.Error{Op: session.OpStart, Status: 404, Kind: session.ErrNotFound, Attempts: 1}, "start: destination not found: 404 Not Found"},
		{session.Error{Op: session.OpPut, Status: 499, Kind: session.ErrCanceled}, "put: session canceled: 499"},
		{session.Error{Op: session.OpQuery, Err: io.EOF}, "query: EOF"},
		{session.Error{Op: session.OpQuery}, "query: no reply"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.err, got, c.want)
		}
	}
	err := error(&session.Error{Kind: session.ErrRetriesExhausted, Err: io.EOF})
	if !errors.Is(err, session.ErrRetriesExhausted) || !errors.Is(err, io.EOF) || errors.Is(err, session.ErrSessionLost) {
		t.Errorf("%v wraps the wrong errors", err)
	}
}

// TestFinishedByAnotherProcess checks the decisions after the first query of an adopted session has found it finished: the object may
// have been deleted since.
func TestFinishedByAnotherProcess(t *testing.T) {
	adopted := session.State{Size: 2 * q, Committed: q, Sent: 2 * q, Replayable: true, Adopted: true}
	for name, checks := range map[string][]turn{
		"the object":              {{stat(made(2 * q)), "done"}},
		"no object":               {{stat(status(404)), "wait check"}, {stat(status(503)), "wait check"}, {stat(status(404)), "wait begin"}},
		"a stranger":              {{stat(stranger(404)), "wait check"}, {stat(stranger(404)), "wait check"}, {stat(made(2 * q)), "done"}},
		"a reply that was cut":    {{stat(status(200)), "wait check"}, {stat(made(2 * q)), "done"}},
		"the credentials expired": {{stat(status(401)), "check"}, {stat(status(401)), "ErrOutcomeUnknown"}},
		"no permission":           {{stat(status(403)), "ErrOutcomeUnknown"}},
	} {
		wantTurns(t, name, adopted, append([]turn{{query(made(2 * q)), "check"}}, checks...), unguarded)
	}
}
