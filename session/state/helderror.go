package state

import (
	"fmt"
	"strings"
	"time"

	"gcsup/session/internal/oneline"
)

// HeldError is the error of Lock and Acquire if another caller holds the lock or the
// lease of the upload. It wraps [ErrInUse]. A field that the Store does not know is
// zero. Host, PID and Message are for people: the holder wrote them, perhaps on another
// machine.
type HeldError struct {
	Host    string    // the name of the holder's machine
	PID     int       // the number of the holder's process on that machine, or in its container
	Since   time.Time // when the holder acquired the lock or lease; a renewal does not change it
	Message string    // names the holder if Host and PID do not

	// The fields of a lease; zero for a lock.
	Renewal int64         // changes if and only if the holder renews the lease
	Left    time.Duration // until the lease expires, unless the holder renews it; at least 1 ns
	TTL     time.Duration // how long the lease lasts after a renewal, as the holder chose
}

// Holder names the holder on one line: the Message, or the process and its machine. If
// the Store knows none of them, it returns "another process".
func (e *HeldError) Holder() string {
	switch {
	case e.Message != "":
		return oneline.Text(e.Message)
	case e.PID != 0 && e.Host != "":
		return oneline.Text(fmt.Sprintf("process %d on %s", e.PID, e.Host))
	case e.PID != 0:
		return fmt.Sprintf("process %d", e.PID)
	case e.Host != "":
		return oneline.Text("a process on " + e.Host)
	}
	return "another process"
}

// Error returns the holder, since when it has the upload, and when its lease expires.
func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v by %s", ErrInUse, e.Holder())
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.UTC().Format(time.RFC3339))
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, ", whose lease ends in %v unless it is renewed", max(e.Left.Round(time.Second), time.Second))
	}
	return b.String()
}

// Unwrap returns ErrInUse.
func (e *HeldError) Unwrap() error { return ErrInUse }
