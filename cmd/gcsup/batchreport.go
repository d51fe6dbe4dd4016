package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"gcsup/internal/cli/exitcode"
	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/program"
	"gcsup/internal/cli/statedir"
	"gcsup/upload"
)

// maxFailures is how many failed files are named at the end of a batch.
const maxFailures = 100

// maxLeftOver is the maximum number of interrupted files, and of files that were not
// tried, that are named at the end of a batch. All have the same cause.
const maxLeftOver = 3

// runTotals adds up the outcomes of a run.
type runTotals struct {
	start time.Time

	uploaded, planned, skipped, failed, notTried, interrupted int

	finished int   // files that the manifest records as finished
	bytes    int64 // of the uploaded files
	sent     int64 // handed to the network
	resent   int64 // of those, that were handed over before
	requests int
	retries  int
	waited   time.Duration
	failures []string
	code     int // the exit code of a batch
}

// add adds the outcome of one file.
func (t *runTotals) add(source, status string, res *upload.Result, err error) {
	if res != nil {
		t.sent += res.BytesSent
		t.resent += res.BytesResent
		t.requests += res.Requests
		t.retries += res.Retries
		t.waited += res.Waited
	}
	switch {
	case status == statusSkipped:
		t.skipped++
	case status == statusPlanned:
		t.planned++
	case status == statusOK:
		t.uploaded++
		t.bytes += res.Size
	case errors.Is(err, upload.ErrNotTried):
		t.notTried++
	case errors.Is(err, context.Canceled):
		t.interrupted++
	default:
		t.failed++
		if t.failed <= maxFailures {
			text := err.Error()
			if !strings.HasPrefix(text, source+":") {
				text = source + ": " + text
			}
			t.failures = append(t.failures, printablePath(text, source))
		}
	}
	if res != nil && res.Leftover != nil && t.code == exitcode.OK {
		t.code = failure.Classify(res.Leftover).Code
	}
	if status != statusFailed {
		return
	}
	// 75 if the same command can finish anything, else the first failure's code.
	if code := failure.Classify(err).Code; t.code == exitcode.OK || code == exitcode.Temporary {
		t.code = code
	}
}

// fold reports whether a file that ended with err is only counted in messages,
// because others with the same cause were named.
func (t *runTotals) fold(err error) bool {
	switch {
	case errors.Is(err, upload.ErrNotTried):
		return t.notTried >= maxLeftOver
	case errors.Is(err, context.Canceled):
		return t.interrupted >= maxLeftOver
	}
	return false
}

// folded returns a message for each group of files that were only counted.
func (t *runTotals) folded() (messages []string) {
	if n := t.interrupted - maxLeftOver; n > 0 {
		messages = append(messages, "and "+plural(n, "more file was interrupted", "more files were interrupted"))
	}
	if n := t.notTried - maxLeftOver; n > 0 {
		messages = append(messages, "and "+plural(n, "more file was not tried", "more files were not tried"))
	}
	return messages
}

// files returns how many files ended in this run.
func (t *runTotals) files() int {
	return t.uploaded + t.planned + t.skipped + t.failed + t.notTried + t.interrupted
}

// rate returns the average of the bytes sent per second, or 0 if it is unknown.
func (t *runTotals) rate(elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return float64(t.sent) / elapsed.Seconds()
}

// text returns the totals as one line.
func (t *runTotals) text(elapsed time.Duration) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{t.uploaded, fmt.Sprintf("uploaded (%s)", bytesText(t.bytes))},
		{t.planned, "would be uploaded"}, {t.skipped, "skipped"}, {t.finished, "finished before"}, {t.failed, "failed"},
		{t.interrupted, "interrupted"}, {t.notTried, "not tried"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "no files"
	}
	if t.retries > 0 {
		parts = append(parts, plural(t.retries, "retry", "retries"))
	}
	text := fmt.Sprintf("%s: %s in %v", plural(t.files()+t.finished, "file", "files"), strings.Join(parts, ", "), roundElapsed(elapsed))
	if rate := t.rate(elapsed); t.sent > 0 && rate > 0 {
		text += ", " + rateText(rate)
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// roundElapsed rounds d to what a person reads.
func roundElapsed(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// line returns the totals for --json.
func (t *runTotals) line(elapsed time.Duration, code int) summaryLine {
	return summaryLine{
		V: 1, Type: "summary", Files: t.files(), Uploaded: t.uploaded, Planned: t.planned, Skipped: t.skipped,
		Failed: t.failed + t.interrupted + t.notTried, Interrupted: t.interrupted, NotTried: t.notTried, FinishedBefore: t.finished,
		Bytes: t.bytes, BytesSent: t.sent, BytesResent: t.resent, Requests: t.requests, Retries: t.retries,
		WaitedMS: t.waited.Milliseconds(), ElapsedMS: elapsed.Milliseconds(),
		BytesPerS: known(int64(t.rate(elapsed)), elapsed > 0), ExitCode: code,
	}
}

// runBatch reports the outcomes of a batch.
func (r *reporter) runBatch(ctx context.Context, c *connection, chosen *selection, progress *record, outcomes iter.Seq2[*upload.Result, error]) error {
	r.use(c)
	defer context.AfterFunc(ctx, r.stopWaiting)()
	totals := &r.totals
	ended := map[string]bool{} // the named files whose upload ended, by destination
	r.beginBatch(ctx, chosen, progress)
	for res, err := range outcomes {
		t := task{source: res.Path, destination: res.Spec.URL(), entry: chosen.notes.Skip(res.Path, err)}
		err = sourceError(err, res.Path)
		r.endOne(t, !chosen.trees, res, err)
		if !chosen.trees {
			ended[t.destination] = true
		}
		if progress.add(res, t.entry != "", err) != nil {
			break // nothing more can be recorded
		}
	}
	r.stopProgress()
	for _, text := range totals.folded() {
		r.console.fail(text)
	}
	r.warnAbout(chosen)
	totals.finished = progress.finished()
	if err := progress.close(); err != nil {
		totals.code = failure.Classify(err).Code
		r.console.fail(withHint(err, "").Error())
	}
	if totals.uploaded > 0 && c.emulator != nil {
		r.console.message("%s", c.emulator.location())
	}
	if ctx.Err() != nil && totals.code != exitcode.Temporary {
		totals.code = failure.Classify(context.Cause(ctx)).Code
	}
	code := totals.code // the sources that are not started below do not change it
	if chosen.trees {
		r.summarize(ctx, totals)
	} else if ctx.Err() != nil {
		left := slices.DeleteFunc(slices.Clone(chosen.named), func(t task) bool { return ended[t.destination] })
		r.reportNotStarted(ctx, left, len(chosen.named))
	}
	if !chosen.trees {
		r.printTotals(max(len(chosen.named), totals.finished+1))
	}
	if err := r.flush(); err != nil {
		return err
	}
	if code != exitcode.OK {
		return exitcode.Printed(code)
	}
	return nil
}

// warnAbout prints the warnings about the files that were chosen.
func (r *reporter) warnAbout(chosen *selection) {
	for _, text := range chosen.notes.Warnings() {
		r.console.message("warning: %s", text)
		if r.flags.json && !r.flags.quiet {
			r.print("", eventLine{V: 1, Type: "warning", Destination: chosen.destination(), Cause: text})
		}
	}
}

// printTotals prints the totals of a run of n files, unless n is 1.
func (r *reporter) printTotals(n int) {
	if n > 1 {
		r.console.message("%s", r.totals.text(time.Since(r.totals.start)))
	}
}

// summarize prints the totals, the failed files and how to continue.
func (r *reporter) summarize(ctx context.Context, t *runTotals) {
	text := t.text(time.Since(t.start))
	if ctx.Err() != nil {
		text += fmt.Sprintf("; %v, the rest was not started", context.Cause(ctx))
	}
	if t.code == exitcode.OK {
		r.console.message("%s", text)
		return
	}
	r.console.fail(text)
	if t.failed > 1 {
		for _, f := range t.failures {
			r.console.fail("failed: " + f)
		}
		if more := t.failed - len(t.failures); more > 0 {
			r.console.fail(fmt.Sprintf("failed: and %d more", more))
		}
	}
	if t.code == exitcode.Temporary || t.notTried > 0 {
		r.console.fail("to continue: " + r.continueCommand())
	}
}

// continueCommand returns the command that uploads the rest of a batch. It is the
// command of this run, which then skips finished files. A user can paste it in the
// same directory. Like the result of resumeCommand, it contains two environment
// variables, but no headers.
func (r *reporter) continueCommand() string {
	words := continueArgs(os.Args[1:])
	words = slices.Insert(words, min(1, len(words)), wordsFromEnv(r.given)...) // they may be set for this run only
	if !slices.ContainsFunc([]string{"no-clobber", "skip-identical", "manifest"}, r.given.Changed) {
		words = slices.Insert(words, min(1, len(words)), "--skip-identical") // after cp
	}
	if dir := os.Getenv(statedir.Env); dir != "" && !slices.ContainsFunc([]string{"state-dir", "state", "no-state"}, r.given.Changed) {
		words = slices.Insert(words, min(1, len(words)), "--state-dir="+program.Absolute(dir))
	}
	for i, word := range words {
		words[i] = program.Quote(word)
	}
	text := program.Words() + " " + strings.Join(words, " ")
	if host := emulatorHost(r.given); host != "" {
		text = "STORAGE_EMULATOR_HOST=" + program.Quote(host) + " " + text
	}
	var same []string
	if r.given.Changed("additional-headers") {
		same = append(same, "--additional-headers")
	}
	if keyFromEnv(r.given) {
		same = append(same, encryptionKeyEnv)
	}
	if r.given.Changed("read-paths-from-stdin") {
		same = append(same, "standard input")
	}
	if len(same) > 0 {
		text += " (with the same " + strings.Join(same, " and ") + ")"
	}
	return text
}

// continueArgs returns the arguments of a command without the headers, which may
// be secret, and without --restart, which would discard what was sent.
func continueArgs(args []string) (kept []string) {
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		switch name {
		case "--":
			return append(kept, args[i:]...)
		case "--additional-headers":
			if !hasValue {
				i++
			}
		case "--restart":
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}

// countAfter is the time after which the files of a run are counted. A shorter run
// does not read its directories twice.
const countAfter = time.Second

func (r *reporter) beginBatch(ctx context.Context, chosen *selection, progress *record) {
	files := -1
	if !chosen.trees {
		files = len(chosen.named)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.batch = true, true
	d := newDisplay(files)
	d.finished = progress.finished
	r.startProgress(d)
	if r.progress != nil && chosen.sizes != nil {
		go r.count(ctx, chosen, d, r.progress.stopped)
	}
}

// count counts the files of a run while it is under way.
func (r *reporter) count(ctx context.Context, chosen *selection, d *display, stopped <-chan struct{}) {
	select {
	case <-stopped:
		return
	case <-ctx.Done():
		return
	case <-time.After(countAfter):
	}
	files, size := int64(0), int64(0)
	for _, t := range chosen.named {
		if t.err != nil {
			files++
		}
	}
	for n := range chosen.sizes {
		files++
		size += n
		select {
		case <-stopped:
			return
		default:
		}
	}
	if ctx.Err() == nil {
		d.setTotals(files, size)
	}
}

// startProgress starts to show d, unless the command is quiet. The caller holds r.mu,
// and must not change d afterwards without its mutex.
func (r *reporter) startProgress(d *display) {
	if r.flags.quiet {
		return
	}
	d.parts = r.flags.verbose
	r.progress = startProgress(r.console, d, !r.flags.verbose) // the log would push the frame around
}

// stopProgress ends the run: later events are ignored.
func (r *reporter) stopProgress() {
	r.mu.Lock()
	p := r.progress
	r.progress, r.active = nil, false
	r.mu.Unlock()
	if p != nil {
		p.stop()
	}
}
