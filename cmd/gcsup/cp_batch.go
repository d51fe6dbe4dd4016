package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/upload"
)

// runBatch reports the outcomes of a batch.
func (r *reporter) runBatch(ctx context.Context, c *connection, chosen *selection, progress *batchManifest, outcomes iter.Seq2[*upload.Result, error]) error {
	r.use(c)
	defer context.AfterFunc(ctx, r.stopWaiting)()
	totals := &r.totals
	ended := map[string]bool{} // the named files whose upload ended, by destination
	reported := int64(0)
	stop := r.showBatch(ctx, chosen, progress)
	out := r.outcomes(true)
	for res, err := range outcomes {
		t := task{source: res.Path, destination: res.Spec.URL(), entry: chosen.notes.Skip(res.Path, err)}
		err = sourceError(err, res.Path)
		out.report(t, !chosen.trees, res, err)
		reported++
		if !chosen.trees {
			ended[t.destination] = true
		}
		if progress.add(res, t.entry != "", cmp.Or(err, res.SourceKept)) != nil {
			break // nothing more can be recorded
		}
	}
	stop()
	_ = r.results.queue.Flush() // before the summary; ended returns the error
	for _, text := range totals.Folded() {
		r.console.Fail(text)
	}
	r.warnAbout(chosen)
	totals.Finished = progress.finished()
	if err := progress.close(); err != nil {
		totals.Code = exit.Classify(err).Code
		r.console.Fail(withHint(err, "").Error())
	}
	if totals.Uploaded > 0 && c.emulator != nil {
		r.console.Message("%s", c.emulator.location())
	}
	interrupted := ctx.Err() != nil && !chosen.handed.all(reported) // otherwise the signal came when nothing was left to do
	if interrupted && totals.Code != exit.Temporary {
		totals.Code = exit.Classify(context.Cause(ctx)).Code
	}
	code := totals.Code // the sources that are not started below do not change it
	if chosen.trees {
		r.summarize(ctx, chosen, totals, interrupted)
	} else if interrupted {
		left := slices.DeleteFunc(slices.Clone(chosen.named), func(t task) bool { return ended[t.destination] })
		r.reportNotStarted(ctx, left, len(chosen.named))
	}
	switch {
	case chosen.single() && totals.Files()+totals.Finished == 0 && ctx.Err() == nil && code == exit.OK:
		r.console.Message("no files: %s is left out by %s", chosen.named[0].source, strings.Join(flagNames(selecting(r.given)), " or "))
	case !chosen.trees && (len(chosen.named) > 1 || totals.Finished > 0):
		r.console.Message("%s", r.totalsText(ctx, chosen, totals))
	}
	return r.ended(code)
}

// handedOut counts the jobs that an uploader got.
type handedOut struct {
	n     atomic.Int64
	ended atomic.Bool // there are no more
}

// count yields jobs.
func (h *handedOut) count(ctx context.Context, jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			h.n.Add(1)
			if !yield(job) {
				return
			}
		}
		if ctx.Err() == nil { // otherwise jobs may have ended early
			h.ended.Store(true)
		}
	}
}

// all reports whether n outcomes are those of all files.
func (h *handedOut) all(n int64) bool { return h.ended.Load() && h.n.Load() == n }

// warnAbout prints the warnings about the files that were chosen.
func (r *reporter) warnAbout(chosen *selection) {
	for _, text := range chosen.notes.Warnings() {
		r.console.Warning("warning: %s", text)
		r.results.event("", func() result.EventLine {
			return result.EventLine{V: 1, Type: "warning", Destination: chosen.destination(), Cause: text}
		})
	}
}

// totalsText returns the totals. If there is nothing to add up, it returns why.
func (r *reporter) totalsText(ctx context.Context, chosen *selection, t *result.Totals) string {
	switch {
	case !t.None():
		return t.TextNow()
	case t.Code != exit.OK || ctx.Err() != nil: // a message has the cause
		return "nothing was uploaded"
	}
	return chosen.noFiles(r.given)
}

// summarize prints the totals and how to continue.
func (r *reporter) summarize(ctx context.Context, chosen *selection, t *result.Totals, interrupted bool) {
	text := r.totalsText(ctx, chosen, t)
	if interrupted {
		text += fmt.Sprintf("; %v, the rest was not started", context.Cause(ctx))
	}
	if t.Code == exit.OK {
		r.console.Message("%s", text)
		return
	}
	r.console.Fail(text)
	if t.Code == exit.Temporary || t.NotTried > 0 {
		r.console.Fail("to continue: " + r.again())
	}
}

// showBatch shows the progress of a batch until stop is called.
func (r *reporter) showBatch(ctx context.Context, chosen *selection, progress *batchManifest) (stop func()) {
	files := -1
	if !chosen.trees {
		files = len(chosen.named)
	}
	d := screen.NewDisplay(screen.Run{Work: screen.Uploading, Files: files, Parts: r.flags.verbose, Finished: progress.finished})
	stop, stopped := r.showProgress(true, chosen.single(), d)
	if stopped != nil && chosen.sizes != nil {
		go countFiles(ctx, chosen, d, stopped)
	}
	return stop
}

// countAfter is the time after which the files of a run are counted. A shorter run
// does not read its directories twice.
const countAfter = time.Second

// countFiles counts the files of a run while it is under way.
func countFiles(ctx context.Context, chosen *selection, d *screen.Display, stopped <-chan struct{}) {
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
		d.SetTotals(files, size)
	}
}
