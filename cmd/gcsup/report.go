package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"gcsup/chunk"
	"gcsup/internal/cli/exitcode"
	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/printable"
	"gcsup/internal/cli/program"
	"gcsup/session"
	"gcsup/upload"
)

// task is one upload to run and to report.
type task struct {
	source      string
	destination string
	skip        bool   // a failed precondition means skipped, not failed
	listed      bool   // found in the state directory, not named by the user
	saved       string // the ID of the saved upload that the task resumes
	all         bool   // resume --all skips what cannot be resumed
	size        int64  // of the source of a saved upload
	err         error  // if not nil, the task fails with it and do is not called
	do          func(context.Context) (*upload.Result, error)
}

// reporter runs uploads one after the other and prints their events and results.
type reporter struct {
	out     *lineQueue
	console *console
	flags   outputFlags
	given   *pflag.FlagSet // for resumeCommand

	endpoint string     // in use, for hints
	saved    *lazyStore // nil if nothing is saved
	mu       sync.Mutex
	current  task
	batch    bool      // many uploads are under way, and current is not used
	active   bool      // current, or the batch, is under way
	stopping bool      // the command was interrupted: events of other files are late
	progress *progress // nil when quiet, and between runs
	display  *display  // what progress shows
	totals   runTotals
	pages    *pageRecorder // of --report; nil without

	files  map[string]*fileState // active files by destination
	lastID int
}

// fileState is what the reporter keeps of an active file.
type fileState struct {
	id        int
	printedAt time.Time // when the last frequent event was printed as JSON
	held      bool      // that another process holds the lease was reported
}

func newReporter(std stdio, flags outputFlags, given *pflag.FlagSet) *reporter {
	r := &reporter{
		out: newLineQueue(std.out), console: newQueuedConsole(std.err, flags.quiet), flags: flags, given: given,
		totals: runTotals{start: time.Now()}, files: map[string]*fileState{},
	}
	if sameTerminal(std.out, std.err) {
		r.out = newLineQueue(r.console) // results appear above the frame, too
	}
	return r
}

// open opens the files of --log-file and --report, before anything is sent.
func (r *reporter) open() error {
	if r.flags.logFile != "" {
		if err := r.console.openLog(r.flags.logFile); err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
	}
	if r.flags.report != "" {
		if err := checkWritable(r.flags.report); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
		r.pages = newPageRecorder(r.totals.start)
	}
	return nil
}

// logger returns the logger for the library. It writes to standard error with
// --verbose, to the log file and to the report.
func (r *reporter) logger() *slog.Logger {
	var handlers []slog.Handler
	if r.flags.verbose {
		handlers = append(handlers, slog.NewTextHandler(r.console, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if r.console.log != nil {
		handlers = append(handlers, r.console.log.Handler())
	}
	if r.pages != nil {
		handlers = append(handlers, r.pages)
	}
	if len(handlers) == 0 {
		return nil
	}
	return slog.New(slog.NewMultiHandler(handlers...))
}

// close ends the run, whose error was err: it prints the last line of JSON, writes
// the report, and waits until the output is written. It returns the error of the
// command.
func (r *reporter) close(err error) error {
	code := exitcode.OK
	if err != nil {
		code = failure.Classify(err).Code
		if own, ok := errors.AsType[exitcode.Printed](err); ok {
			code = int(own)
		} else {
			r.console.logError(err.Error()) // the caller prints it
		}
	}
	elapsed := time.Since(r.totals.start)
	if r.pages != nil {
		page := page{command: displayCommand(), totals: &r.totals, elapsed: elapsed, code: code}
		if perr := r.pages.write(r.flags.report, page); perr != nil {
			perr = fmt.Errorf("--report: %w", perr)
			if err == nil {
				err, code = perr, failure.Classify(perr).Code
			} else {
				r.console.fail(perr.Error())
			}
		}
	}
	if r.flags.json {
		r.print("", r.totals.line(elapsed, code))
	}
	if ferr := r.flush(); err == nil {
		err = ferr
	}
	if lerr := r.console.closeLog(); lerr != nil && err == nil {
		err = fmt.Errorf("--log-file: %w", lerr)
	}
	return err
}

// file returns the state of the file with that destination. r.mu is held.
func (r *reporter) file(destination string) *fileState {
	f := r.files[destination]
	if f == nil {
		r.lastID++
		f = &fileState{id: r.lastID}
		r.files[destination] = f
	}
	return f
}

// warn reports what the user should know of the saved uploads.
func (r *reporter) warn(text string) { r.console.message("%s", text) }

// use makes the reporter report about the uploads of a connection.
func (r *reporter) use(c *connection) {
	r.endpoint, r.saved = c.endpoint, c.saved
}

// run runs the tasks. A task that fails does not stop those after it; the exit
// code is that of the first failure. After an interruption the remaining tasks
// are not started.
func (r *reporter) run(ctx context.Context, c *connection, tasks []task) error {
	r.use(c)
	defer context.AfterFunc(ctx, r.stopWaiting)()
	code, done, stored := exitcode.OK, 0, false
	r.mu.Lock()
	r.startProgress(len(tasks))
	if r.display != nil && len(tasks) > 1 {
		total := int64(0)
		for _, t := range tasks {
			if t.err == nil {
				total += t.size
			}
		}
		r.display.setTotals(int64(len(tasks)), total)
	}
	r.mu.Unlock()
	for _, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		r.begin(t)
		var res *upload.Result
		err := t.err
		if err == nil {
			res, err = t.do(ctx)
		}
		err = sourceError(err, t.source)
		r.end(res, err)
		if err != nil && !t.skipped(err) && code == exitcode.OK {
			code = failure.Classify(err).Code
		}
		stored = stored || err == nil
		done++
	}
	r.stopProgress()
	if stored && c.emulator != nil {
		r.console.message("%s", c.emulator.location())
	}
	if done < len(tasks) {
		if code == exitcode.OK {
			code = failure.Classify(context.Cause(ctx)).Code
		}
		r.reportNotStarted(ctx, tasks[done:], len(tasks))
	}
	r.printTotals(len(tasks))
	if err := r.flush(); err != nil {
		return err
	}
	if code != exitcode.OK {
		return exitcode.Printed(code)
	}
	return nil
}

// reportNotStarted reports the tasks that were not started, of n, because ctx is
// done.
func (r *reporter) reportNotStarted(ctx context.Context, left []task, n int) {
	if len(left) > 0 {
		_ = r.refuse(left, context.Cause(ctx))
		r.console.fail(fmt.Sprintf("not started: %d of %d sources", len(left), n))
	}
}

// refuse reports tasks that cannot start, and returns err with a hint.
func (r *reporter) refuse(tasks []task, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range tasks {
		r.totals.add(t.source, statusFailed, nil, err)
		if r.flags.json {
			r.lastID++
			r.print("", newResultLine(r.lastID, t.source, t.destination, statusFailed, nil, err))
		}
	}
	return withHint(err, r.endpoint)
}

// outputGrace is how long output may take after the command was interrupted.
const outputGrace = time.Second

// stopWaiting drops output that is not read within outputGrace.
func (r *reporter) stopWaiting() {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	go r.console.endFrames() // a terminal that blocks must not delay the timer
	time.AfterFunc(outputGrace, func() {
		r.out.close()
		r.console.queue.close()
	})
}

// flush waits until the output is written, and returns the error of standard
// output.
func (r *reporter) flush() error {
	err := r.out.flush()
	_ = r.console.queue.flush() // r.out may write to the console
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// allFailed reports whether every task has an error before it runs.
func allFailed(tasks []task) bool {
	return !slices.ContainsFunc(tasks, func(t task) bool { return t.err == nil })
}

// reportConnectError reports tasks that cannot run because there is no
// connection.
func (r *reporter) reportConnectError(ctx context.Context, tasks []task, err error) error {
	if !slices.ContainsFunc(tasks, func(t task) bool { return t.err != nil }) {
		return r.refuse(tasks, err) // one message for all
	}
	for i := range tasks {
		if tasks[i].err == nil {
			tasks[i].err = err
		}
	}
	return r.run(ctx, &connection{}, tasks)
}

// skipped reports whether err means that the task is skipped: the object that must
// not be replaced exists, or another process finished the upload after it was
// listed.
func (t task) skipped(err error) bool {
	return t.skip && errors.Is(err, session.ErrPrecondition) || t.finished(err) || t.all && notResumable(err)
}

func (t task) finished(err error) bool { return t.listed && errors.Is(err, session.ErrNoToken) }

func (r *reporter) begin(t task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.active = t, true
	r.file(t.destination)
}

// observe receives the library's events.
func (r *reporter) observe(e upload.Event) {
	if e.Kind.Terminal() {
		return // outcome reports it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.active {
		return // an upload that was cancelled does not wait for its last event
	}
	t := r.current
	if r.batch {
		t = task{source: e.Path, destination: e.Spec.URL()}
	}
	now, id := time.Now(), 0
	if !r.batch || e.Path != "" { // else it concerns the whole batch
		if r.stopping && r.files[t.destination] == nil {
			return
		}
		f := r.file(t.destination)
		id = f.id
		if r.display != nil {
			r.display.note(id, t.source, e, now)
		}
		if r.pages != nil {
			r.pages.note(id, t.source, e, now)
		}
		if r.flags.json && !r.flags.quiet {
			r.printEvent(f, t, e, now)
		}
	} else {
		if r.flags.json && !r.flags.quiet {
			r.print("", newEventLine(0, "", t.destination, e))
		}
		t.source = "listing of " + t.destination
		if r.display != nil {
			r.display.noteListing("listing "+e.Spec.Bucket, e, now)
		}
	}
	switch e.Kind {
	case upload.Held:
		if f := r.file(t.destination); !f.held {
			f.held = true
			r.console.message("%s to %s: %s works on it, or died: waiting up to %s for its lease (saved upload %s)", t.source, t.destination, e.Cause, formatSpan(e.Delay+time.Second-1), e.ID)
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
	key := "" // a frequent event replaces the one before in the queue
	if e.Kind == upload.Progress || e.Kind == upload.Verifying {
		if now.Sub(f.printedAt) < time.Second {
			return
		}
		f.printedAt, key = now, eventType(e.Kind)+" "+t.destination
	}
	r.print(key, newEventLine(f.id, t.source, t.destination, e))
}

func (r *reporter) end(res *upload.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active = false
	r.outcome(r.current, true, res, err)
}

// endOne reports the outcome of one file of a batch.
func (r *reporter) endOne(t task, named bool, res *upload.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome(t, named, res, err)
}

// outcome prints how an upload ended. named is false for one of the files in a
// directory or a list, which are counted and continued together. r.mu is held.
func (r *reporter) outcome(t task, named bool, res *upload.Result, err error) {
	status := statusOK
	switch {
	case err == nil && res.Skipped != upload.SkipNothing:
		status = statusSkipped
		if named || r.flags.verbose {
			r.console.message("skipped %s: %s", t.source, skipText(t, res))
		}
	case err == nil && res.Planned:
		status = statusPlanned
	case t.finished(err):
		status = statusSkipped
		r.console.message("skipped %s: it is no longer saved; another process finished or removed it", t.source)
	case t.all && notResumable(err):
		status = statusSkipped
		r.explainSkip(t, err)
	case t.skipped(err):
		status = statusSkipped
		r.console.message("skipped %s: %s exists", t.source, t.destination)
	case err != nil:
		status = statusFailed
		r.explain(t, res, err)
		if named && !(r.batch && r.totals.fold(err)) {
			r.explainResume(t, res, err)
		}
	}
	id := r.file(t.destination).id
	delete(r.files, t.destination)
	now := time.Now()
	r.totals.add(t.source, status, res, err)
	if r.display != nil {
		r.display.end(id, status, res, now)
	}
	if r.pages != nil {
		r.pages.end(id, t, status, res, err, now)
	}
	if status == statusOK {
		r.console.logInfo(summary(t, res))
	}
	switch {
	case r.flags.json:
		r.print("", newResultLine(id, t.source, t.destination, status, res, err))
	case r.flags.quiet:
	case status == statusOK:
		_, _ = fmt.Fprintln(r.out, summary(t, res)) // flush returns the error
	case status == statusPlanned:
		_, _ = fmt.Fprintf(r.out, "%s  would be uploaded from %s, %d bytes\n", printable.Line(t.destination), printable.Line(t.source), res.Size)
	}
}

// skipText describes why a file was skipped.
func skipText(t task, res *upload.Result) string {
	switch res.Skipped {
	case upload.SkipIdentical:
		return t.destination + " has the same bytes"
	case upload.SkipSameTime:
		return t.destination + " has the same size and modification time"
	default:
		return t.destination + " exists"
	}
}

// explain prints what went wrong.
func (r *reporter) explain(t task, res *upload.Result, err error) {
	size, file := int64(-1), false
	if res != nil {
		size, file = res.Size, res.Path != ""
		if res.Spec.Gzip {
			size = -1 // of the object
		}
	}
	text := inSizes(withHint(err, r.endpoint).Error(), err, size, file)
	if !errors.Is(err, failure.ErrSource) && !errors.Is(err, session.ErrNoToken) && !strings.HasPrefix(text, t.source+":") {
		what := t.source
		if t.destination != "" {
			what += " to " + t.destination
		}
		text = what + ": " + text
	}
	text = printablePath(text, t.source)
	if r.batch && r.totals.fold(err) {
		r.console.logError(text)
		return
	}
	r.console.fail(text)
}

// explainResume prints how to continue an upload that failed.
func (r *reporter) explainResume(t task, res *upload.Result, err error) {
	switch {
	case t.saved != "" && notResumable(err):
		r.explainDiscard(t, err)
	case errors.Is(err, session.ErrSourceChanged), errors.Is(err, failure.ErrSource): // resuming as it is fails again
	case res != nil && res.Resumable && r.resumable(res.ID):
		var same []string
		if r.given.Changed("additional-headers") {
			same = append(same, "--additional-headers")
		}
		if keyFromEnv(r.given) {
			same = append(same, encryptionKeyEnv)
		}
		also := ""
		if len(same) > 0 {
			also = " (with the same " + strings.Join(same, " and ") + ")"
		}
		r.console.fail("to resume: " + resumeCommand(program.Words(), r.given, res.ID) + also)
	case failure.Classify(err).Code == exitcode.Temporary && t.source == stdinName:
		r.console.fail("a stream cannot be resumed: run the same command again with the whole input")
	case failure.Classify(err).Code == exitcode.Temporary && !errors.Is(err, session.ErrInUse):
		r.console.fail("to continue: run the same command again")
	}
}

// resumable reports whether the upload is still saved. Its directory may be
// removed, or its state could not be written.
func (r *reporter) resumable(id string) bool {
	if r.saved == nil {
		return false
	}
	err := within(outputGrace, func() error {
		_, err := r.saved.Load(context.Background(), id)
		return err
	})
	return !errors.Is(err, session.ErrNoToken)
}

// within calls f and returns its error, or nil if f takes longer than d: a file
// server that is away can block f for good.
func within(d time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return nil
	}
}

// summary returns the line of a finished upload.
func summary(t task, res *upload.Result) string {
	o := res.Object
	text := fmt.Sprintf("%s#%s  %d bytes  crc32c %s  %s", printable.Line(t.destination), generationText(o), o.Size, chunk.EncodeCRC32C(o.CRC32C), res.Elapsed.Round(time.Millisecond))
	if res.Resumed {
		text += fmt.Sprintf("  resumed from byte %d", res.ResumedFrom)
	}
	if res.Retries > 0 {
		text += fmt.Sprintf("  retries %d, waited %s, re-sent %d bytes", res.Retries, res.Waited.Round(time.Millisecond), res.BytesResent)
	}
	if p := res.Parts; p != nil && p.Rate > 0 {
		text += fmt.Sprintf("  %s: %s", plural(p.Connections, "connection", "connections"), rateText(float64(p.Rate)))
		if p.RateOfOne > 0 && p.Connections > 1 {
			text += fmt.Sprintf(" (%s each)", rateText(float64(p.RateOfOne)))
		}
	}
	return text
}

func generationText(o *session.Object) string { return strconv.FormatInt(o.Generation, 10) }

// print queues a line of JSON. flush returns the error.
func (r *reporter) print(key string, line any) {
	if data, err := encodeLine(line); err == nil {
		_ = r.out.put(key, data)
	}
}
