package main

import (
	"gcsup/upload"
)

// outcomes reports how the files of a run end.
type outcomes struct {
	tracker *tracker
	explain *explainer
	console *console
	totals  *runTotals
	batch   bool
}

// report reports the outcome of a file. named is false for a file of a directory or a list:
// such files are only counted, and one command resumes all of them.
func (o *outcomes) report(t task, named bool, res *upload.Result, err error) {
	status := o.classify(t, named, res, err)
	if status == statusFailed {
		counted := o.batch && o.totals.fold(err)
		o.explain.failed(t, res, err, counted)
		if named && !counted {
			o.explain.howToContinue(t, res, err)
		}
	}
	if res != nil && res.Leftover != nil {
		o.console.message("what is left is billed; to remove it: gcsup sessions prune")
	}
	if res != nil && res.SourceKept != nil {
		o.explain.kept(t, res.SourceKept, o.batch && o.totals.kept >= maxLeftOver)
	}
	o.totals.add(status, res, err)
	if status == statusOK && o.console.log.Handler() != nil {
		o.console.log.Info(summary(t, res))
	}
	o.tracker.end(t, status, res, err)
}

// classify returns the status of a file, and prints why it was skipped.
func (o *outcomes) classify(t task, named bool, res *upload.Result, err error) string {
	switch {
	case err == nil && res.Skipped != upload.SkipNothing:
		if text := "skipped %s: %s"; named {
			o.console.message(text, t.source, skipText(t, res))
		} else {
			o.console.detail(text, t.source, skipText(t, res))
		}
		return statusSkipped
	case err == nil && res.Planned:
		return statusPlanned
	case err == nil:
		return statusOK
	case t.entry != "":
		o.console.detail("skipped %s", err)
		return statusSkipped
	case t.finished(err):
		o.console.message("skipped %s: it is no longer saved; another process finished or removed it", t.source)
		return statusSkipped
	case t.all && notResumable(err):
		o.explain.skipped(t, err)
		return statusSkipped
	case t.skipped(err):
		o.console.message("skipped %s: %s exists", t.source, t.destination)
		return statusSkipped
	}
	return statusFailed
}

// skipText describes why a file was skipped.
func skipText(t task, res *upload.Result) string {
	switch {
	case res.SourceRemoved:
		return t.destination + " has the same bytes, and the source is removed"
	case res.Skipped == upload.SkipIdentical:
		return t.destination + " has the same bytes"
	case res.Skipped == upload.SkipSameTime:
		return t.destination + " has the same size and modification time"
	default:
		return t.destination + " exists"
	}
}
