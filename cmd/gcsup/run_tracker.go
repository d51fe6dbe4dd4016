package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/page"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/session/state"
	"gcsup/upload"
)

// tracker follows the files of a run. It numbers them, and passes their events and outcomes to
// what shows them, in order.
type tracker struct {
	results *results
	console *screen.Console
	pages   *page.Recorder // nil without --report
	lease   time.Duration  // of --state-lease; 0 without the flag

	mu       sync.Mutex
	current  task            // the one under way, unless there are many
	batch    bool            // many are under way
	active   bool            // current, or the batch, is under way
	stopping bool            // the command was interrupted: events of other files are late
	display  *screen.Display // nil if no progress is shown
	lines    bool            // print a line for each file that was uploaded
	files    trackedFiles
}

// trackedFile is what the tracker keeps of an active file.
type trackedFile struct {
	id        int
	waited    bool      // see upload.InputWaits
	printedAt time.Time // when the last frequent event was printed as JSON
	held      bool      // a message reported that another process holds the lease
}

// trackedFiles numbers the files of a run.
type trackedFiles struct {
	active map[string]*trackedFile // by destination
	lastID int
}

func newTrackedFiles() trackedFiles { return trackedFiles{active: map[string]*trackedFile{}} }

// nextID returns a new number.
func (f *trackedFiles) nextID() int {
	f.lastID++
	return f.lastID
}

// of returns the state of the file with that destination.
func (f *trackedFiles) of(destination string) *trackedFile {
	file := f.active[destination]
	if file == nil {
		file = &trackedFile{id: f.nextID()}
		f.active[destination] = file
	}
	return file
}

// start begins a run of one task after the other, or of a batch. d may be nil.
func (t *tracker) start(batch bool, d *screen.Display, lines bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batch, t.active, t.display, t.lines = batch, batch, d, lines
}

// stop ends the run: later events are ignored.
func (t *tracker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.display, t.active = nil, false
}

// interrupt makes the tracker ignore events of files that it does not know.
func (t *tracker) interrupt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopping = true
}

// begin begins a task.
func (t *tracker) begin(current task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current, t.active = current, true
	t.files.of(current.destination)
}

// end passes on the outcome of a file.
func (t *tracker) end(file task, status result.Status, res *upload.Result, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active = t.batch
	id := t.files.of(file.destination).id
	delete(t.files.active, file.destination)
	now := time.Now()
	if t.display != nil && file.entry == "" { // the number of all files does not include entries
		t.display.End(id, status, res, now)
	}
	if t.pages != nil {
		t.pages.End(id, file.file(), status, res, err, now)
	}
	t.results.outcome(id, file, status, t.lines, res, err)
}

// refuse passes on that a task failed before it began.
func (t *tracker) refuse(file task, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.results.json {
		t.results.object("", result.NewLine(t.files.nextID(), file.file(), result.Failed, nil, err))
	}
}

// observe receives the library's events.
func (t *tracker) observe(e upload.Event) {
	if e.Kind.Terminal() {
		return // the outcome reports it
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.active {
		return // a late event of a canceled upload
	}
	file, now := t.current, time.Now()
	if t.batch {
		file = task{source: e.Path, destination: e.Spec.URL()}
	}
	switch {
	case t.batch && e.Path == "": // it concerns the whole batch
		if e.Spec.Bucket == "" {
			file.destination = "" // the event concerns the saved uploads
		}
		file.source = "listing of " + file.destination
		t.noteRun(file, e, now)
	case t.stopping && t.files.active[file.destination] == nil:
		return
	default:
		t.noteFile(file, e, now)
	}
	t.announce(file, e)
}

// noteFile passes on an event of a file.
func (t *tracker) noteFile(file task, e upload.Event, now time.Time) {
	f := t.files.of(file.destination)
	if t.display != nil {
		t.display.Note(f.id, displayName(file.source), e, now)
	}
	if t.pages != nil {
		t.pages.Note(f.id, file.source, e, now)
	}
	key := "" // a frequent event replaces its predecessor in the queue
	if e.Kind == upload.Progress || e.Kind == upload.Verifying {
		if now.Sub(f.printedAt) < time.Second {
			return
		}
		f.printedAt, key = now, e.Kind.String()+" "+file.destination
	}
	t.results.event(key, func() result.EventLine { return result.NewEventLine(f.id, file.source, file.destination, e) })
}

// noteRun passes on an event of the listing, or of the saved uploads.
func (t *tracker) noteRun(run task, e upload.Event, now time.Time) {
	t.results.event("", func() result.EventLine { return result.NewEventLine(0, "", run.destination, e) })
	if t.display == nil {
		return
	}
	name := "listing " + e.Spec.Bucket
	switch {
	case e.Store:
		name = "saved uploads"
	case e.Spec.IfGenerationMatch != nil: // of a deletion
		name = "deleting in " + e.Spec.Bucket
	}
	t.display.NoteListing(name, e, now)
}

// announce prints a message about an event, if it is one that the user should know of.
func (t *tracker) announce(file task, e upload.Event) {
	switch e.Kind {
	case upload.LeaseHeld:
		if f := t.files.of(file.destination); !f.held {
			f.held = true
			t.console.Message("%s: %s (saved upload %s)", file.about(), heldText(e, t.lease), e.ID)
		}
	case upload.Resumed:
		t.console.Message("resuming %s: %s committed (saved upload %s)", file.about(), readable.Committed(result.ProgressOf(e).Committed, result.ProgressOf(e).Size), e.ID)
	case upload.Restarted:
		t.console.Message("%s: starting over in a new session: %s", file.source, e.Cause)
	case upload.Discarded:
		t.console.Message("%s: not resuming: %s", file.source, e.Cause)
	case upload.Warning:
		t.console.Warning("%s: warning: %s", file.source, exit.Without(e.Cause, e.Err))
	case upload.InputWaits:
		if f := t.files.of(file.destination); !f.waited || e.Err != nil {
			f.waited = true
			t.console.Message("%s: the input waits: %s", file.source, e.Cause)
		}
	case upload.Undivided:
		t.console.Detail("%s: sent over one connection: %s", file.source, e.Cause)
	case upload.Divided:
		t.console.Detail("%s: sent in parts: %s", file.source, e.Cause)
	case upload.PartDone:
		t.console.Detail("%s: part %d is stored, %d of %d, %s", file.source, e.Part, e.Parts.Done, e.Parts.Count, readable.Plural(e.Parts.Connections, "connection", "connections"))
	}
}

// heldText describes the wait for the lease of another process. The lease of this process
// lasts lease: if that of the other one does not, the user may expect another wait.
func heldText(e upload.Event, lease time.Duration) string {
	text := fmt.Sprintf("%s works on it, or died: waiting up to %s for its lease", e.Cause, readable.Span(e.Delay+time.Second-1))
	if held, ok := errors.AsType[*state.HeldError](e.Err); ok && held.TTL != lease && lease != 0 {
		text += fmt.Sprintf(", which lasts %v; --state-lease=%v applies when this process has the upload", held.TTL, lease)
	}
	return text
}

// displayName returns the name of a source for people.
func displayName(source string) string {
	if source == stdinName {
		return "standard input"
	}
	return source
}
