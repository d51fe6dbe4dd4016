package session_test

import (
	"errors"
	"io"
	"testing"

	"gcsup/session"
)

// TestDoubtOnReusedConnection checks that the error describes the insert even
// if it failed on a reused connection.
func TestDoubtOnReusedConnection(t *testing.T) {
	s := session.State{Size: 10, Unconditional: true, Replayable: true}
	s, a := session.Decide(s, session.Reply{Op: session.OpInsert, Err: io.EOF, Reused: true, Sent: 10, Committed: -1})
	if a.Step != session.Check {
		t.Fatal(a.Step)
	}
	_, a = session.Decide(s, session.Reply{Op: session.OpStat, Status: 200, Object: &session.Object{Size: 3}, Committed: -1})
	if a.Step != session.Fail || !errors.Is(a.Err, session.ErrOutcomeUnknown) {
		t.Fatal(a)
	}
	if a.Err.Op != session.OpInsert || !errors.Is(a.Err, io.EOF) {
		t.Errorf("error = %q (op %q): does not describe the insert", a.Err, a.Err.Op)
	}
}
