package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"

	"gcsup/internal/bucket"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// deletionLine is the outcome of one object without a file in JSON.
type deletionLine struct {
	V           int               `json:"v"`
	Type        string            `json:"type"`
	Status      result.Status     `json:"status"`
	Destination string            `json:"destination"`
	Generation  string            `json:"generation"` // a string, because JSON numbers lose digits
	Size        int64             `json:"size"`
	Reason      *string           `json:"reason"` // why a skipped one is not deleted
	Error       *result.ErrorLine `json:"error"`
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
		for _, text := range s.totals.Deletions.Folded() {
			s.console.Fail(text)
		}
		if s.failed == nil {
			return
		}
		s.totals.FailedWith(s.failed)
		s.tracker.refuse(s.whole, s.failed)
		s.console.Fail(s.runText(s.failed), failureAttrs(s.failed)...)
	}
}

// runText returns the text of the error that ends the run.
func (s *syncReport) runText(err error) string {
	return withHint(err, s.explain.endpoint).Error()
}

// object reports the outcome of an object without a file.
func (s *syncReport) object(o mirror.Outcome, err error) {
	d := s.totals.Deletions
	url := process.Printable("gs://" + o.Object.Bucket + "/" + o.Object.Name)
	status := result.OK
	switch {
	case o.Kind == mirror.Protect:
		status = result.Skipped
		d.Protected++
		s.console.Detail("%s is not deleted: %s", url, protectedText[o.Reason])
	case o.Planned:
		status = result.Planned
		d.Planned++
		d.PlannedBytes += o.Object.Size
	case err == nil:
		d.Deleted++
		d.Bytes += o.Object.Size
		s.console.Log().Write(slog.LevelInfo, "deleted "+url)
	default:
		status = result.Failed
		d.Failed++
		s.totals.FailedWith(err)
		outcome := ": not deleted: "
		if result.Uncertain(err) {
			outcome = ": may be deleted: "
		}
		if text := url + outcome + deletionText(err); d.Fold(err) {
			s.console.Log().Write(slog.LevelError, text, failureAttrs(err)...)
		} else {
			s.console.Fail(text, failureAttrs(err)...)
		}
	}
	switch {
	case s.results.json:
		s.results.object("", newDeletionLine(status, o, err))
	case s.results.quiet:
	case status == result.Planned:
		_, _ = fmt.Fprintf(s.results.queue, "%s  would be deleted, %s\n", url, readable.Bytes(o.Object.Size))
	case status == result.OK && s.view.results:
		_, _ = fmt.Fprintf(s.results.queue, "%s#%d  deleted, %s\n", url, o.Object.Generation, readable.Bytes(o.Object.Size))
	}
}

func newDeletionLine(status result.Status, o mirror.Outcome, err error) deletionLine {
	l := deletionLine{V: 1, Type: "deletion", Status: status, Destination: "gs://" + o.Object.Bucket + "/" + o.Object.Name, Generation: result.Generation(o.Object), Size: o.Object.Size}
	if o.Kind == mirror.Protect {
		l.Reason = new(o.Reason.String())
	}
	if err != nil {
		l.Error = result.NewErrorLine(err)
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
	if failed, ok := errors.AsType[*session.Error](err); ok && decide.Permission(failed) == bucket.PermissionDelete {
		text += "; the account needs storage.objects.delete"
	}
	return text
}

// foldersText describes the folders that are left.
func foldersText(bucket string, left mirror.FoldersLeft) string {
	why := exit.Text(left.Err)
	if errors.Is(left.Err, session.ErrPermission) {
		why += "; the account needs storage.folders.delete and storage.managedFolders.get"
	}
	if left.Count == 0 {
		return "folders may be left that are empty now, and that the next run keeps: " + why
	}
	var urls []string
	for _, name := range left.Names {
		urls = append(urls, process.Printable("gs://"+bucket+"/"+name))
	}
	list := strings.Join(urls, ", ")
	if more := left.Count - int64(len(left.Names)); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s left that may be empty now: %s: %s", readable.Plural(int(left.Count), "folder is", "folders are"), list, why)
}
