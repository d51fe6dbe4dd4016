package upload

import (
	"fmt"
	"time"
)

// EventKind is what an [Event] reports.
type EventKind int

// The kinds of events.
const (
	Started   EventKind = iota // a session was opened, or a small object is on its way
	Resumed                    // a saved session continues at Committed
	Restarted                  // the session was lost, or its bytes were damaged: a new one starts at byte 0
	Discarded                  // a saved upload was not used; Cause is why
	Progress                   // bytes moved; at most a few times per second
	Verifying                  // the source is read and compared with what was sent before; at most a few times per second
	Settling                   // the source is not read yet: its last changes are being written to its disk, or its times are too new to show the next change
	Waiting                    // a request failed; the next try is in Delay
	Warning                    // something is wrong that does not stop the upload; Cause is what
)

var eventNames = [...]string{
	Started: "started", Resumed: "resumed", Restarted: "restarted", Discarded: "discarded", Progress: "progress",
	Verifying: "verifying", Waiting: "waiting", Warning: "warning", Settling: "settling",
}

// String returns the name of k in lower case, such as "waiting".
func (k EventKind) String() string {
	if k < 0 || int(k) >= len(eventNames) {
		return fmt.Sprintf("EventKind(%d)", int(k))
	}
	return eventNames[k]
}

// Event reports what an upload does. It holds no secrets.
type Event struct {
	Kind      EventKind
	ID        string
	Path      string // of the source; "" for a stream
	Spec      Spec
	Size      int64         // of the object, -1 while it is not known
	Sent      int64         // offset up to which bytes were handed to the network
	Committed int64         // offset up to which the server holds them durably
	Compared  int64         // Verifying: offset up to which the source was read
	ToCompare int64         // Verifying: offset at which that ends
	Delay     time.Duration // Waiting: how long
	Retry     int           // Waiting: how many failures in a row this is, from 1
	Cause     string        // Waiting, Restarted, Discarded, Warning: why, for people
}
