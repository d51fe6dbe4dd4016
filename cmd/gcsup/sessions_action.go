package main

import (
	"fmt"
	"io"

	"gcsup/internal/cli/result"
	"gcsup/upload"
)

// The actions of sessions prune, rm and cancel on a saved upload.
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
