package main

import (
	"errors"
	"io/fs"

	"gcsup/chunk"
	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/program"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// notResumable reports whether a saved upload cannot be resumed as it is: its source
// is no file, does not exist or has changed, or it is damaged or of a newer version.
// Every later run would fail in the same way. A source that cannot be read for another
// reason may be readable in the next run.
func notResumable(err error) bool {
	noSource := errors.Is(err, failure.ErrSource) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, chunk.ErrNotRegular))
	return noSource || errors.Is(err, session.ErrSourceChanged) || errors.Is(err, upload.ErrSourceNeeded) ||
		errors.Is(err, state.ErrCorruptToken) || errors.Is(err, state.ErrTokenVersion)
}

// explainSkip prints why resume --all skipped an upload, even with --quiet.
func (r *reporter) explainSkip(t task, err error) {
	what := t.source
	if t.destination != "" {
		what += " to " + t.destination
	}
	r.console.fail("skipped " + what + ": " + withHint(err, r.endpoint).Error())
	r.explainDiscard(t, err)
}

// explainDiscard prints how to discard a saved upload, or how to resume it if its
// source does not exist but may have been moved.
func (r *reporter) explainDiscard(t task, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		r.console.fail("if the source was moved: " + resumeCommand(program.Words(), r.given, t.saved) + " --source=PATH")
	}
	command := "sessions cancel"
	if errors.Is(err, state.ErrCorruptToken) || errors.Is(err, state.ErrTokenVersion) {
		command = "sessions rm" // the session URI is not known
	}
	r.console.fail("to discard it: " + savedCommand(program.Words(), r.given, command, t.saved))
}
