package main

import (
	"context"
	"errors"
	"slices"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// task is one upload to run and to report.
type task struct {
	source      string
	destination string
	skip        bool      // a failed precondition means skipped, not failed
	listed      bool      // found in the state directory, not named by the user
	saved       string    // the ID of the saved upload that the task resumes
	all         bool      // resume --all skips what cannot be resumed
	entry       tree.Kind // of an entry that is skipped, because it is not a file
	size        int64     // of the source of a saved upload
	err         error     // if not nil, the task fails with this error, and do is not called
	do          func(context.Context) (*upload.Result, error)
}

// about names the source and the destination, for messages.
func (t task) about() string {
	if t.destination == "" {
		return t.source
	}
	return t.source + " to " + t.destination
}

// file returns what results have of the task.
func (t task) file() result.File {
	return result.File{Source: t.source, Destination: t.destination, Entry: t.entry}
}

// allFailed reports whether every task has an error before it runs.
func allFailed(tasks []task) bool {
	return !slices.ContainsFunc(tasks, func(t task) bool { return t.err == nil })
}

// skipped reports whether err means that the task is skipped: the object that must
// not be replaced exists, or another process finished the upload after it was
// listed.
func (t task) skipped(err error) bool {
	return t.skip && errors.Is(err, session.ErrPrecondition) || t.finished(err) || t.all && exit.NotResumable(err)
}

func (t task) finished(err error) bool { return t.listed && errors.Is(err, state.ErrNotFound) }
