package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/screen"
	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// explainer prints what went wrong with an upload, and what the user can do.
type explainer struct {
	console  *screen.Console
	command  commandLine
	endpoint string     // in use, for hints
	saved    *lazyStore // nil if nothing is saved
}

// failed prints what went wrong. If brief is true, the text is only logged.
func (x *explainer) failed(t task, res *upload.Result, err error, brief bool) {
	size, file := int64(-1), false
	if res != nil {
		size, file = res.Size, res.Path != ""
		if res.Spec.Gzip {
			size = -1 // of the object
		}
	}
	text := inSizes(withHint(err, x.endpoint).Error(), err, size, file)
	if !errors.Is(err, exit.ErrSource) && !errors.Is(err, state.ErrNotFound) && !strings.HasPrefix(text, t.source+":") {
		text = t.about() + ": " + text
	}
	block, attrs := process.PrintableError(text, err), failureAttrs(err)
	if brief {
		x.console.Log().Write(slog.LevelError, string(block), attrs...)
		return
	}
	x.console.FailBlock(block, attrs...)
}

// kept prints why a source is not removed, although its object exists. If brief is true, the
// text is only logged.
func (x *explainer) kept(t task, err error, brief bool) {
	text := t.source + ": not removed, although " + t.destination + " exists: " + exit.Text(err)
	if brief {
		x.console.Log().Write(slog.LevelError, text, failureAttrs(err)...)
		return
	}
	x.console.Fail(text, failureAttrs(err)...)
}

// failureAttrs returns what the log file has of an error besides its text.
func failureAttrs(err error) []slog.Attr {
	attrs := []slog.Attr{slog.String("kind", exit.Classify(err).Kind)}
	if e, ok := errors.AsType[*session.Error](err); ok && e.Op != "" {
		attrs = append(attrs, slog.String("operation", string(e.Op)))
	}
	return attrs
}

// howToContinue prints how to continue an upload that failed.
func (x *explainer) howToContinue(t task, res *upload.Result, err error) {
	if by, ok := errors.AsType[*occupiedError](err); ok {
		x.chooseOne(by)
		return
	}
	switch {
	case t.saved == "" && errors.Is(err, exit.ErrSource) && errors.Is(err, fs.ErrNotExist):
		x.missing(t)
	case t.saved != "" && exit.NotResumable(err):
		x.howToDiscard(t, err)
	case errors.Is(err, upload.ErrIncomplete) && res != nil && res.ID != "":
		x.console.Fail("to remove what is left: " + savedCommand(process.Words(), x.command.given, "uploads cancel", res.ID))
	case errors.Is(err, session.ErrOutcomeUnknown) && res != nil && res.Resumable: // a resume would ask again
		x.console.Fail("to keep the object at " + process.Printable(t.destination) + ": " + savedCommand(process.Words(), x.command.given, "uploads cancel", res.ID))
		x.console.Fail("to upload the file again: run cp again with --restart; to replace an object, the account needs storage.objects.delete")
	case exit.NotResumable(err), errors.Is(err, exit.ErrSource), errors.Is(err, state.ErrInUse),
		errors.Is(err, state.ErrInsecurePermissions), errors.Is(err, session.ErrURIMismatch): // a resume would fail again
	case res != nil && res.Resumable && x.resumable(res.ID):
		x.console.Fail("to resume: " + x.command.resume(res.ID))
		if errors.Is(err, session.ErrPrecondition) { // a resume fails again, until the object has changed
			x.console.Fail("to discard it: " + savedCommand(process.Words(), x.command.given, "uploads cancel", res.ID))
		}
	case exit.Classify(err).Code == exit.Temporary && t.source == stdinName:
		x.console.Fail("a stream cannot be resumed: run the same command again with the whole input")
	case exit.Classify(err).Code == exit.Temporary:
		x.console.Fail("to continue: run the same command again")
	}
}

// skipped prints why resume --all skipped an upload, even with --quiet.
func (x *explainer) skipped(t task, err error) {
	x.console.Fail("skipped " + t.about() + ": " + withHint(err, x.endpoint).Error())
	x.howToDiscard(t, err)
}

// howToDiscard prints how to discard a saved upload, or how to resume it if its
// source does not exist but may have been moved.
func (x *explainer) howToDiscard(t task, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		if doc, lerr := x.saved.Load(context.Background(), t.saved); lerr == nil {
			x.sourceMoved(doc)
		}
	}
	command := "uploads cancel"
	if errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrVersion) {
		command = "uploads rm" // the session URI is not known
	}
	x.console.Fail("to discard it: " + savedCommand(process.Words(), x.command.given, command, t.saved))
}

// resumable reports whether the upload is still saved. Its directory may have been
// removed, or the upload may never have been written.
func (x *explainer) resumable(id string) bool {
	if x.saved == nil {
		return false
	}
	ctx, stop := context.WithTimeout(context.Background(), grace.Look)
	defer stop()
	err := unlessDone(ctx, func() error {
		_, err := x.saved.Load(ctx, id)
		return err
	})
	return !errors.Is(err, state.ErrNotFound)
}

// inSizes returns the text of an error for people: the bytes of an interrupted
// upload become "19 of 100 MiB are committed". size is that of the object, or negative
// if it is not known. file is false for a stream. text contains the error's own
// text.
func inSizes(text string, err error, size int64, file bool) string {
	e, ok := errors.AsType[*upload.InterruptedError](err)
	if !ok {
		return text
	}
	committed := readable.Bytes(e.Committed) + " were committed" // a stream cannot be resumed
	if file {
		committed = readable.Range(e.Committed, e.Sent, size) + " are committed"
	}
	return strings.Replace(text, fmt.Sprintf("%d bytes committed of %d sent", e.Committed, e.Sent), committed, 1)
}
