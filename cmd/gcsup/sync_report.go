package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// deletionLine is the outcome of one object without a file in JSON.
type deletionLine struct {
	V           int        `json:"v"`
	Type        string     `json:"type"`
	Status      string     `json:"status"`
	Destination string     `json:"destination"`
	Generation  string     `json:"generation"` // a string, because JSON numbers lose digits
	Size        int64      `json:"size"`
	Reason      *string    `json:"reason"` // why a skipped one is not deleted
	Error       *errorLine `json:"error"`
}

// syncReport reports what happens to objects without a file, and to the run as a whole.
type syncReport struct {
	*reporter
	whole  task
	failed error // ends the run
}

// leftOut reports whether err is that of a file that cp leaves out without a result.
func leftOut(err error) bool {
	entry, ok := errors.AsType[*tree.EntryError](err)
	return ok && (entry.Kind == tree.LeftOut || entry.Kind == tree.Link)
}

// files yields the outcomes of files, and reports all others.
func (s *syncReport) files(ctx context.Context, outcomes iter.Seq2[mirror.Outcome, error]) iter.Seq2[*upload.Result, error] {
	return func(yield func(*upload.Result, error) bool) {
		for o, err := range outcomes {
			switch {
			case o.Result != nil:
				if !leftOut(err) && !yield(o.Result, err) {
					return
				}
			case o.Object != nil:
				s.object(o, err)
			case ctx.Err() == nil: // the end of a run that is interrupted is reported with it
				s.failed = err
			}
		}
	}
}

// before yields outcomes, and then reports what ended the run.
func (s *syncReport) before(outcomes iter.Seq2[*upload.Result, error]) iter.Seq2[*upload.Result, error] {
	return func(yield func(*upload.Result, error) bool) {
		for res, err := range outcomes {
			if !yield(res, err) {
				return
			}
		}
		if s.failed == nil {
			return
		}
		for _, text := range s.totals.deletions.folded() {
			s.console.fail(text)
		}
		s.totals.failedWith(s.failed)
		s.tracker.refuse(s.whole, s.failed)
		s.console.fail(s.runText(s.failed), failureAttrs(s.failed)...)
	}
}

// runText returns the text of the error that ends the run.
func (s *syncReport) runText(err error) string {
	return withHint(err, s.explain.endpoint).Error()
}

// object reports the outcome of an object without a file.
func (s *syncReport) object(o mirror.Outcome, err error) {
	d := s.totals.deletions
	url := process.Printable("gs://" + o.Object.Bucket + "/" + o.Object.Name)
	status := statusOK
	switch {
	case o.Kind == mirror.Protect:
		status = statusSkipped
		d.Protected++
		s.console.detail("%s is not deleted: %s", url, protectedText[o.Reason])
	case o.Planned:
		status = statusPlanned
		d.Planned++
		d.PlannedBytes += o.Object.Size
	case err == nil:
		d.Deleted++
		d.Bytes += o.Object.Size
		s.console.logInfo("deleted " + url)
	default:
		status = statusFailed
		d.Failed++
		s.totals.failedWith(err)
		if text := url + ": not deleted: " + deletionText(err); d.fold(err) {
			s.console.logError(text, failureAttrs(err)...)
		} else {
			s.console.fail(text, failureAttrs(err)...)
		}
	}
	switch {
	case s.results.json:
		s.results.object("", newDeletionLine(status, o, err))
	case s.results.quiet:
	case status == statusPlanned:
		_, _ = fmt.Fprintf(s.results.queue, "%s  would be deleted, %s\n", url, bytesText(o.Object.Size))
	case status == statusOK && s.view.results:
		_, _ = fmt.Fprintf(s.results.queue, "%s#%d  deleted, %s\n", url, o.Object.Generation, bytesText(o.Object.Size))
	}
}

func newDeletionLine(status string, o mirror.Outcome, err error) deletionLine {
	l := deletionLine{V: 1, Type: "deletion", Status: status, Destination: "gs://" + o.Object.Bucket + "/" + o.Object.Name, Generation: generationText(o.Object), Size: o.Object.Size}
	if o.Kind == mirror.Protect {
		l.Reason = new(o.Reason.String())
	}
	if err != nil {
		l.Error = newErrorLine(err)
	}
	return l
}

// protectedText explains for people why an object without a file is not deleted.
var protectedText = map[mirror.Reason]string{
	mirror.Excluded:    "its file would be left out; --delete-excluded deletes it",
	mirror.Skipped:     "a file was skipped, and it may be its object",
	mirror.Temporary:   "it may be a part of an upload",
	mirror.SavedUpload: "it may be a saved upload of --state",
	mirror.Folder:      "it is a folder",
	mirror.Appeared:    "its file was made during the run",
}

// deletionText returns the text of the error of a deletion. The advice about uploads does not apply.
func deletionText(err error) string {
	text := exit.Text(err)
	if failed, ok := errors.AsType[*session.Error](err); ok && failed.Permission == session.PermissionDelete {
		text += "; the account needs storage.objects.delete"
	}
	return text
}

// deletionTotals adds up the outcomes of the objects without a file. It is also the field of a
// summaryLine.
type deletionTotals struct {
	Deleted      int   `json:"deleted"`
	Planned      int   `json:"planned"`
	Protected    int   `json:"protected"`
	Failed       int   `json:"failed"`
	Bytes        int64 `json:"bytes"`
	PlannedBytes int64 `json:"planned_bytes"`

	notTried, exhausted, interrupted int // of those that failed
}

// fold counts a deletion that ended with err, and reports whether it is only counted in messages,
// because others with the same cause were named.
func (d *deletionTotals) fold(err error) bool {
	for _, group := range []struct {
		is    error
		count *int
	}{{upload.ErrNotTried, &d.notTried}, {session.ErrRetriesExhausted, &d.exhausted}, {context.Canceled, &d.interrupted}} {
		if errors.Is(err, group.is) {
			*group.count++
			return *group.count > maxLeftOver
		}
	}
	return false
}

// folded returns a message for the deletions that were only counted. d may be nil.
func (d *deletionTotals) folded() (messages []string) {
	if d == nil {
		return nil
	}
	n := 0
	for _, count := range []int{d.notTried, d.exhausted, d.interrupted} {
		n += max(count-maxLeftOver, 0)
	}
	if n > 0 {
		messages = append(messages, "and "+plural(n, "more object was not deleted", "more objects were not deleted"))
	}
	return messages
}

// texts returns the totals in words. d may be nil.
func (d *deletionTotals) texts() (parts []string) {
	if d == nil {
		return nil
	}
	if d.Deleted > 0 {
		parts = append(parts, fmt.Sprintf("%s deleted (%s)", plural(d.Deleted, "object", "objects"), bytesText(d.Bytes)))
	}
	if d.Planned > 0 {
		parts = append(parts, fmt.Sprintf("%s would be deleted (%s)", plural(d.Planned, "object", "objects"), bytesText(d.PlannedBytes)))
	}
	if d.Protected > 0 {
		parts = append(parts, plural(d.Protected, "object", "objects")+" without a file kept")
	}
	if d.Failed > 0 {
		parts = append(parts, plural(d.Failed, "object", "objects")+" not deleted")
	}
	return parts
}
