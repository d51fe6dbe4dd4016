package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"gcsup/upload"
)

// maxFailures is how many failed files are named at the end of a batch.
const maxFailures = 100

// batchTotals adds up the outcomes of a batch.
type batchTotals struct {
	uploaded, planned, skipped, failed, notTried, interrupted int

	finished int   // files that the manifest has as finished
	bytes    int64 // of the uploaded files
	failures []string
	code     int // the exit code
}

// add adds the outcome of one file.
func (t *batchTotals) add(res *upload.Result, err error) {
	switch {
	case err == nil && res.Skipped != upload.SkipNothing:
		t.skipped++
	case err == nil && res.Planned:
		t.planned++
	case err == nil:
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
			if !strings.HasPrefix(text, res.Path+":") {
				text = res.Path + ": " + text
			}
			t.failures = append(t.failures, printablePath(text, res.Path))
		}
	}
	if err == nil {
		return
	}
	// 75 if the same command can finish anything, else the first failure's code.
	if code := classify(err).code; t.code == exitOK || code == exitTemporary {
		t.code = code
	}
}

// text returns the totals as one line.
func (t *batchTotals) text() string {
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
	return strings.Join(parts, ", ")
}

// runBatch reports the outcomes of a batch.
func (r *reporter) runBatch(ctx context.Context, c *connection, chosen *selection, progress *record, outcomes iter.Seq2[*upload.Result, error]) error {
	r.endpoint, r.saved = c.endpoint, c.saved
	defer context.AfterFunc(ctx, r.stopWaiting)()
	var totals batchTotals
	ended := map[string]bool{} // the named files that ended, by destination
	r.beginBatch(chosen.single())
	for res, err := range outcomes {
		t := task{source: res.Path, destination: res.Spec.URL()}
		err = sourceError(err, res.Path)
		totals.add(res, err)
		r.endOne(t, chosen, res, err)
		if !chosen.trees {
			ended[t.destination] = true
		}
		if progress.add(res, err) != nil {
			break // nothing more can be recorded
		}
	}
	r.endBatch()
	totals.finished = progress.finished()
	if err := progress.close(); err != nil {
		totals.code = classify(err).code
		r.console.fail(withHint(err, "").Error())
	}
	if totals.uploaded > 0 && c.emulator != nil {
		r.console.message("%s", c.emulator.location())
	}
	if ctx.Err() != nil && totals.code != exitTemporary {
		totals.code = classify(context.Cause(ctx)).code
	}
	if chosen.trees {
		r.summarize(ctx, &totals)
	} else if ctx.Err() != nil {
		left := slices.DeleteFunc(slices.Clone(chosen.named), func(t task) bool { return ended[t.destination] })
		r.reportNotStarted(ctx, left, len(chosen.named))
	} else if totals.finished > 0 {
		r.console.message("%s", totals.text())
	}
	if err := r.flush(); err != nil {
		return err
	}
	if totals.code != exitOK {
		return exitCode(totals.code)
	}
	return nil
}

// summarize prints the totals, the failed files and how to continue.
func (r *reporter) summarize(ctx context.Context, t *batchTotals) {
	text := t.text()
	if ctx.Err() != nil {
		text += fmt.Sprintf("; %v, the rest was not started", context.Cause(ctx))
	}
	if t.code == exitOK {
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
	if t.code == exitTemporary || t.notTried > 0 {
		r.console.fail("to continue: " + r.continueCommand())
	}
}

// continueCommand returns the command that uploads what is left of a batch: the
// same one, which skips the files that are finished. A user can paste it in the
// same directory. As resumeCommand, it contains two variables, but no headers.
func (r *reporter) continueCommand() string {
	words := continueArgs(os.Args[1:])
	if !slices.ContainsFunc([]string{"no-clobber", "skip-identical", "manifest"}, r.given.Changed) {
		words = slices.Insert(words, min(1, len(words)), "--skip-identical") // after cp
	}
	if dir := os.Getenv(stateDirEnv); dir != "" && !r.given.Changed("state-dir") && !r.given.Changed("no-state") {
		words = slices.Insert(words, min(1, len(words)), "--state-dir="+absolute(dir))
	}
	for i, word := range words {
		words[i] = shellQuote(word)
	}
	text := program() + " " + strings.Join(words, " ")
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); host != "" && !r.given.Changed("emulator") && runtime.GOOS != "windows" {
		text = "STORAGE_EMULATOR_HOST=" + shellQuote(host) + " " + text
	}
	var same []string
	if r.given.Changed("additional-headers") {
		same = append(same, "--additional-headers")
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

func (r *reporter) beginBatch(single bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.batch, r.printedAt = true, true, map[string]time.Time{}
	if r.flags.quiet || single {
		return // the bar of a single file begins with its first event
	}
	r.progress = startProgress(r.console, newBatchView(), !r.flags.verbose)
}

func (r *reporter) endBatch() {
	r.mu.Lock()
	p := r.progress
	r.progress, r.active = nil, false
	r.mu.Unlock()
	if p != nil {
		p.stop()
	}
}

// endOne reports the outcome of one file.
func (r *reporter) endOne(t task, chosen *selection, res *upload.Result, err error) {
	r.mu.Lock()
	p := r.progress
	delete(r.printedAt, t.destination)
	r.mu.Unlock()
	if p != nil {
		p.ended(res, err)
		if chosen.single() {
			r.endBatch()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome(t, !chosen.trees, res, err)
}
