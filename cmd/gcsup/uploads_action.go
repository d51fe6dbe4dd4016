package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/session/state"
	"gcsup/upload"
)

// The actions of uploads prune, rm and cancel on a saved upload.
const (
	actionDeleted  = "deleted"  // on this machine
	actionCanceled = "canceled" // at the service, and deleted
	actionKept     = "kept"
)

// The reasons for an action.
const (
	reasonRequested     = "requested"
	reasonGone          = "gone"     // the service holds nothing of it
	reasonFinished      = "finished" // the object exists
	reasonOver          = "over"     // only temporary objects were left
	reasonMissingSource = "missing_source"
	reasonIncomplete    = "incomplete" // the input of a spooled stream did not end
	reasonOpen          = "open"       // the service holds it
	reasonInUse         = "in_use"
	reasonUnusable      = "unusable"
	reasonEndpoint      = "other_endpoint"
	reasonError         = "error"
)

// actionLine is the outcome for a saved upload, in JSON. A field that is not known,
// because the upload cannot be read, is null.
type actionLine struct {
	V           int               `json:"v"`
	Type        string            `json:"type"`
	Action      string            `json:"action"`
	Reason      string            `json:"reason"`
	DryRun      bool              `json:"dry_run"`
	ID          string            `json:"id"`
	Source      *string           `json:"source"`
	Destination *string           `json:"destination"`
	Endpoint    *string           `json:"endpoint"`
	Committed   *int64            `json:"committed"`
	Size        *int64            `json:"size"`
	Error       *result.ErrorLine `json:"error"`
}

// printAction prints the outcome for a saved upload as one line of JSON. Only the ID
// of u must be known. err is the error that kept the upload, or nil.
func printAction(w io.Writer, action, reason string, u upload.SavedUpload, dryRun bool, err error) error {
	l := actionLine{V: 1, Type: "action", Action: action, Reason: reason, DryRun: dryRun, ID: u.ID}
	if source := u.Source(); source != "" {
		destination := u.Spec.URL()
		l.Source, l.Destination, l.Endpoint = &source, &destination, &u.Endpoint
		l.Committed, l.Size = &u.Committed, &u.Size
	}
	if err != nil {
		l.Error = result.NewErrorLine(err)
	}
	if err := result.Print(w, l); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// openSaved finds the endpoint and the saved uploads for a command about them, which prints messages
// on the console.
func (f *targetFlags) openSaved(ctx context.Context, std stdio) (c *connection, con *screen.Console, err error) {
	con = screen.NewConsole(std.err, false)
	if c, err = f.open(ctx, true); err == nil {
		c.warn = func(text string) { con.Warning("%s", text) }
	}
	return c, con, err
}

// aboutUpload returns the message of an error that concerns a saved upload.
func aboutUpload(id string, err error) string {
	if errors.Is(err, state.ErrNotFound) { // contains the ID
		return err.Error()
	}
	return id + ": " + exit.Text(err)
}

// uploadText names a saved upload in a message.
func uploadText(s upload.SavedUpload) string {
	return fmt.Sprintf("%s (%s to %s)", s.ID, process.Printable(s.Source()), process.Printable(s.Spec.URL()))
}

// forEach calls do for each ID, which may be abbreviated, even after a failure. The exit
// code is that of the first failure. With asJSON, a failure has a line on standard output,
// too.
func forEach(ctx context.Context, std stdio, c *connection, asJSON bool, ids []string, do func(id string) error) error {
	code := exit.OK
	type target struct {
		id  string
		err error
	}
	var targets []target
	for _, text := range ids { // before one is deleted: an ambiguous text must not become unique
		id, err := completeID(ctx, c.saved, text)
		targets = append(targets, target{cmp.Or(id, text), err})
	}
	for _, t := range targets {
		id, err := t.id, t.err
		if err == nil {
			err = do(id)
		}
		if err == nil {
			continue
		}
		screen.NewConsole(std.err, false).FailBlock(process.PrintableError(aboutUpload(id, withHint(err, c.endpoint)), err))
		if asJSON {
			if err := printAction(std.out, actionKept, reasonError, upload.SavedUpload{ID: id}, false, err); err != nil {
				return err
			}
		}
		if code == exit.OK {
			code = exit.Classify(err).Code
		}
	}
	if code != exit.OK {
		return exit.Printed(code)
	}
	return nil
}
