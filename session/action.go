package session

import (
	"fmt"
	"time"
)

// Step is the kind of the next exchange of a conversation, or its end.
type Step int

// The steps. A conversation ends with Inspect, Absent, Done or Fail.
const (
	Begin   Step = iota // open a session (or insert the small object) and begin at byte 0
	Send                // send data: from State.Committed, or a part
	Finish              // the service has all bytes: make the object
	Query               // ask which bytes the service has
	Check               // ask what is at the destination
	Repeat              // make the request of a Request again
	Inspect             // find out which parts the service has
	Absent              // the service does not have what the conversation is about
	Done                // the object exists, or the request had its effect; with Action.Object, compare it with the source
	Fail                // Action.Err
)

// String returns the name of s in lower case, such as "query".
func (s Step) String() string {
	names := [...]string{"begin", "send", "finish", "query", "check", "repeat", "inspect", "absent", "done", "fail"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("Step(%d)", int(s))
	}
	return names[s]
}

// Ends reports whether a conversation ends with the step.
func (s Step) Ends() bool { return s >= Inspect }

// Action is the next step of a conversation.
type Action struct {
	Step       Step
	Wait       bool          // back off before it
	RetryAfter time.Duration // with Wait: the wait that the server requested, or 0
	Fresh      bool          // the request should use a connection of its own, see WithoutKeepAlive
	Object     *Object       // with Done
	Err        *Error        // the failure that the step follows; nil if nothing failed
}

// String returns the action and its reason, such as "wait, query: 503 Service Unavailable"
// or "fail: permission denied: 403 Forbidden".
func (a Action) String() string {
	text := a.Step.String()
	if a.Wait {
		text = "wait, " + text
	}
	if a.Err == nil {
		return text
	}
	if a.Step == Fail && a.Err.Kind != nil {
		text += ": " + a.Err.Kind.Error()
	}
	return text + ": " + a.Err.Cause()
}
