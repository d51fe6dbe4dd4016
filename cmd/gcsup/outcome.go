package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gcsup/chunk"
	"gcsup/internal/cli/exitcode"
	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/printable"
	"gcsup/internal/cli/program"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

func (r *reporter) begin(t task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.active = t, true
	r.files.of(t.destination)
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

// outcome prints how an upload ended. named is false for a file of a directory or a
// list: such files are only counted, and one command resumes all of them. The caller
// holds r.mu.
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
	case t.entry != "":
		status = statusSkipped
		r.detail("skipped %s", err)
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
	if res != nil && res.Leftover != nil {
		r.console.message("what is left is billed; to remove it: gcsup sessions prune")
	}
	id := r.files.of(t.destination).id
	delete(r.files.active, t.destination)
	now := time.Now()
	r.totals.add(t.source, status, res, err)
	if r.progress != nil && t.entry == "" { // the number of all files does not include entries
		r.progress.display.end(id, status, res, now)
	}
	if r.pages != nil {
		r.pages.end(id, t, status, res, err, now)
	}
	if status == statusOK {
		r.console.logInfo(summary(t, res))
	}
	switch {
	case r.flags.json:
		r.print("", newResultLine(id, t, status, res, err))
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
	if !errors.Is(err, failure.ErrSource) && !errors.Is(err, state.ErrNoToken) && !strings.HasPrefix(text, t.source+":") {
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
	case notResumable(err), errors.Is(err, failure.ErrSource), errors.Is(err, state.ErrInUse),
		errors.Is(err, state.ErrInsecurePermissions), errors.Is(err, session.ErrURIMismatch): // a resume would fail again
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
	case failure.Classify(err).Code == exitcode.Temporary:
		r.console.fail("to continue: run the same command again")
	}
}

// resumable reports whether the upload is still saved. Its directory may have been
// removed, or the upload may never have been written.
func (r *reporter) resumable(id string) bool {
	if r.saved == nil {
		return false
	}
	err := within(outputGrace, func() error {
		_, err := r.saved.Load(context.Background(), id)
		return err
	})
	return !errors.Is(err, state.ErrNoToken)
}

// within calls f and returns its error, or nil if f takes longer than d: a file
// server that does not respond can block f indefinitely.
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
	text := fmt.Sprintf("%s#%s  %d bytes", printable.Line(t.destination), generationText(o), o.Size)
	if o.HasCRC32C {
		text += "  crc32c " + chunk.EncodeCRC32C(o.CRC32C)
	}
	text += "  " + res.Elapsed.Round(time.Millisecond).String()
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
