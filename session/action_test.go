package session_test

import (
	"io"
	"testing"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// TestActionString checks the words for the decisions of each table. An action that follows a
// failure names it, even without a wait.
func TestActionString(t *testing.T) {
	next := func(r session.Reply) session.Action {
		_, a := session.Decide(session.State{Size: 2 * q, Sent: q}, r)
		return a
	}
	part := func(r session.Reply) session.Action {
		_, a := (decide.Part{}).Decide(r)
		return a
	}
	join := func(r session.Reply) session.Action {
		_, a := (decide.Join{}).Decide(r)
		return a
	}
	request := func(r session.Reply) session.Action {
		_, a := (decide.Request{}).Decide(r)
		return a
	}
	for _, test := range []struct {
		action session.Action
		want   string
	}{
		{next(session.Reply{Op: session.OpPut, Status: 308, Committed: q}), "send"},
		{next(session.Reply{Op: session.OpPut, Status: 503}), "wait, query: 503 Service Unavailable"},
		{next(session.Reply{Op: session.OpPut, Status: 503, Message: "Service Unavailable"}), "wait, query: 503 Service Unavailable"},
		{next(session.Reply{Op: session.OpPut, Status: 503, Message: "Backend Error"}), "wait, query: 503 Service Unavailable: Backend Error"},
		{next(session.Reply{Op: session.OpPut, Status: 599}), "wait, query: 599"},
		{next(session.Reply{Op: session.OpPut, Err: io.EOF}), "wait, query: EOF"},
		{next(session.Reply{Op: session.OpPut, Err: io.EOF, Reused: true}), "query: EOF"},
		{next(session.Reply{Op: session.OpPut, Status: 401}), "query: 401 Unauthorized"},
		{next(session.Reply{Op: session.OpPut, Status: 403, FromService: true}), "fail: permission denied: 403 Forbidden"},
		{part(session.Reply{Op: multipart.OpPart, Status: 401}), "send: 401 Unauthorized"},
		{part(session.Reply{Op: multipart.OpList, Status: 200}), "send"},
		{part(session.Reply{Op: multipart.OpList, Status: 400, FromService: true}), "send: 400 Bad Request"},
		{join(session.Reply{Op: bucket.OpCompose, Status: 412, FromService: true}), "check: 412 Precondition Failed"},
		{request(session.Reply{Op: session.OpStat, Status: 404, FromService: true}), "absent: 404 Not Found"},
		{request(session.Reply{Op: session.OpStat, Status: 200, Object: object(q)}), "done"},
	} {
		if got := test.action.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
