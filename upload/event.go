package upload

import "time"

// EventKind says what an [Event] is about.
type EventKind int

// The kinds of events.
const (
	Started   EventKind = iota // a session was opened, or a small object is on its way
	Resumed                    // an earlier session goes on at Committed
	Restarted                  // the service lost the session; a new one begins at byte 0
	Afresh                     // a saved upload was not used; Cause says why
	Progress                   // bytes moved; at most a few times per second
	Comparing                  // the source is read, to hold it against what was sent before; at most a few times per second
	Settling                   // the source is not read yet: its latest changes go to its disk, or its times are too new to show the next change
	Waiting                    // a request failed; the next try is in Delay
	Warning                    // something is wrong that does not stop the upload; Cause says what
)

// Event tells an observer what an upload does. It holds no secrets.
type Event struct {
	Kind      EventKind
	ID        string
	Spec      Spec
	Size      int64         // of the object, -1 while it is not known
	Sent      int64         // offset up to which bytes were handed to the network
	Committed int64         // offset up to which the server holds them durably
	Compared  int64         // Comparing: offset up to which the source was read
	ToCompare int64         // Comparing: offset at which that ends
	Delay     time.Duration // Waiting: how long
	Retry     int           // Waiting: how many failures in a row this is, from 1
	Cause     string        // Waiting, Restarted, Afresh, Warning: why, for people
}
