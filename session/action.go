package session

import "time"

// Step is the kind of the next exchange of an upload, or its end.
type Step string

// The steps. An upload ends with Done or Fail.
const (
	Begin  Step = "begin"  // open a session (or insert the small object) and begin at byte 0
	Send   Step = "send"   // send data from State.Committed
	Finish Step = "finish" // the service has all bytes: make the object
	Query  Step = "query"  // ask which bytes the service has
	Check  Step = "check"  // ask what is at the destination
	Done   Step = "done"   // the object exists: compare Action.Object with the source
	Fail   Step = "fail"   // Action.Err
)

// Action is the next step of an upload.
type Action struct {
	Step       Step
	Wait       bool          // back off before it
	RetryAfter time.Duration // with Wait: the wait that the server requested, or 0
	Object     *Object       // with Done
	Err        *Error        // the failure that the step follows; nil if nothing failed
}

// String returns the action and its reason, such as "wait, query: 503 Service Unavailable"
// or "fail: permission denied: 403 Forbidden".
func (a Action) String() string {
	text := string(a.Step)
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
