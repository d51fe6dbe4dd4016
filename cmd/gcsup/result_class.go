package main

import (
	"log/slog"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/upload"
)

// outcomes reports how the files of a run end.
type outcomes struct {
	tracker *tracker
	explain *explainer
	console *screen.Console
	totals  *result.Totals
	batch   bool
}

// report reports the outcome of a file. named is false for a file of a directory or a list:
// such files are only counted, and one command resumes all of them.
func (o *outcomes) report(t task, named bool, res *upload.Result, err error) {
	status := o.classify(t, named, res, err)
	if status == result.Failed {
		counted := o.batch && o.totals.Fold(err)
		o.explain.failed(t, res, err, counted)
		if named && !counted {
			o.explain.howToContinue(t, res, err)
		}
	}
	if res != nil && res.Leftover != nil {
		o.console.Message("what is left is billed; to remove it: gcsup uploads prune")
	}
	if res != nil && res.SourceKept != nil {
		o.explain.kept(t, res.SourceKept, o.batch && o.totals.FoldKept())
	}
	o.totals.Add(status, res, err)
	if status == result.OK && o.console.Log().Handler() != nil {
		o.console.Log().Write(slog.LevelInfo, result.Text(t.destination, res))
	}
	o.tracker.end(t, status, res, err)
}

// classify returns the status of a file, and prints why it was skipped.
func (o *outcomes) classify(t task, named bool, res *upload.Result, err error) result.Status {
	switch {
	case err == nil && res.Skipped != upload.SkipNothing:
		if text := "skipped %s: %s"; named {
			o.console.Message(text, t.source, skipText(t, res))
		} else {
			o.console.Detail(text, t.source, skipText(t, res))
		}
		return result.Skipped
	case err == nil && res.Planned:
		return result.Planned
	case err == nil:
		return result.OK
	case t.entry != "":
		o.console.Detail("skipped %s", err)
		return result.Skipped
	case t.finished(err):
		o.console.Message("skipped %s: it is no longer saved; another process finished or removed it", t.source)
		return result.Skipped
	case t.all && exit.NotResumable(err):
		o.explain.skipped(t, err)
		return result.Skipped
	case t.skipped(err):
		o.console.Message("skipped %s: %s exists", t.source, t.destination)
		return result.Skipped
	}
	return result.Failed
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
