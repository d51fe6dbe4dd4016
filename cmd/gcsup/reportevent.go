package main

import (
	"errors"
	"fmt"
	"time"

	"gcsup/internal/cli/printable"
	"gcsup/session/state"
	"gcsup/upload"
)

// fileState is what the reporter keeps of an active file.
type fileState struct {
	id        int
	printedAt time.Time // when the last frequent event was printed as JSON
	held      bool      // a message reported that another process holds the lease
}

// reportedFiles numbers the files of a run.
type reportedFiles struct {
	active map[string]*fileState // by destination
	lastID int
}

// nextID returns a new number.
func (f *reportedFiles) nextID() int {
	f.lastID++
	return f.lastID
}

// of returns the state of the file with that destination.
func (f *reportedFiles) of(destination string) *fileState {
	state := f.active[destination]
	if state == nil {
		state = &fileState{id: f.nextID()}
		f.active[destination] = state
	}
	return state
}

// observe receives the library's events.
func (r *reporter) observe(e upload.Event) {
	if e.Kind.Terminal() {
		return // outcome reports it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.active {
		return // a late event of a cancelled upload
	}
	t := r.current
	if r.batch {
		t = task{source: e.Path, destination: e.Spec.URL()}
	}
	now, id := time.Now(), 0
	if !r.batch || e.Path != "" { // otherwise it concerns the whole batch
		if r.stopping && r.files.active[t.destination] == nil {
			return
		}
		f := r.files.of(t.destination)
		id = f.id
		if r.progress != nil {
			r.progress.display.note(id, t.source, e, now)
		}
		if r.pages != nil {
			r.pages.note(id, t.source, e, now)
		}
		if r.flags.json && !r.flags.quiet {
			r.printEvent(f, t, e, now)
		}
	} else {
		if e.Spec.Bucket == "" {
			t.destination = "" // the event concerns the saved uploads
		}
		if r.flags.json && !r.flags.quiet {
			r.print("", newEventLine(0, "", t.destination, e))
		}
		t.source = "listing of " + t.destination
		if r.progress != nil {
			name := "listing " + e.Spec.Bucket
			if e.Store {
				name = "saved uploads"
			}
			r.progress.display.noteListing(name, e, now)
		}
	}
	switch e.Kind {
	case upload.Held:
		if f := r.files.of(t.destination); !f.held {
			f.held = true
			lease, _ := r.given.GetDuration("state-lease") // 0 without the flag
			r.console.message("%s to %s: %s (saved upload %s)", t.source, t.destination, heldText(e, lease), e.ID)
		}
	case upload.Resumed:
		r.console.message("resuming %s to %s: %s are stored (saved upload %s)", t.source, t.destination, storedText(shown(e).committed, shown(e).size), e.ID)
	case upload.Restarted:
		r.console.message("%s: starting over in a new session: %s", t.source, e.Cause)
	case upload.Discarded:
		r.console.message("%s: not resuming: %s", t.source, e.Cause)
	case upload.Warning:
		r.console.message("%s: warning: %s", t.source, e.Cause)
	case upload.Undivided:
		r.detail("%s: sent over one connection: %s", t.source, e.Cause)
	case upload.PartDone:
		r.detail("%s: part %d is stored, %d of %d, %s", t.source, e.Part, e.Parts.Done, e.Parts.Count, plural(e.Parts.Connections, "connection", "connections"))
	}
}

// heldText describes the wait for the lease of another process. The lease of this process
// lasts lease: if that of the other one does not, the user may expect another wait.
func heldText(e upload.Event, lease time.Duration) string {
	text := fmt.Sprintf("%s works on it, or died: waiting up to %s for its lease", e.Cause, formatSpan(e.Delay+time.Second-1))
	if held, ok := errors.AsType[*state.HeldError](e.Err); ok && held.TTL != lease && lease != 0 {
		text += fmt.Sprintf(", which lasts %v; --state-lease=%v applies when this process has the upload", held.TTL, lease)
	}
	return text
}

// detail prints a message with --verbose, and otherwise only to the log file.
func (r *reporter) detail(format string, args ...any) {
	if r.flags.verbose {
		r.console.message(format, args...)
	} else {
		r.console.logInfo(printable.Line(fmt.Sprintf(format, args...)))
	}
}

// printEvent prints an event of a file as JSON, frequent ones once per second.
func (r *reporter) printEvent(f *fileState, t task, e upload.Event, now time.Time) {
	key := "" // a frequent event replaces its predecessor in the queue
	if e.Kind == upload.Progress || e.Kind == upload.Verifying {
		if now.Sub(f.printedAt) < time.Second {
			return
		}
		f.printedAt, key = now, eventType(e.Kind)+" "+t.destination
	}
	r.print(key, newEventLine(f.id, t.source, t.destination, e))
}
