package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/screen"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// pruner deletes saved uploads that cannot be resumed.
type pruner struct {
	target        targetFlags
	missingSource bool
	dryRun        bool
	json          bool

	std     stdio
	console *screen.Console
	c       *connection
}

func newUploadsPrune(std stdio) *cobra.Command {
	p := &pruner{std: std}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete saved uploads that the service no longer holds",
		Long: `prune asks the service about each saved upload to the endpoint in use, and deletes
those that the service confirms as gone, and those that are finished. It cancels and
deletes spooled streams whose input did not end and, with --missing-source, uploads
whose source does not exist. It also removes what is left of uploads that are "to be
removed", such as streams in parts whose process died. It keeps a spooled stream that
is gone at the service if its bytes are on disk, because they may be the only copy. It
never deletes an upload because of its age, or because the service cannot be reached.`,
		Example: `  gcsup uploads prune --dry-run
  gcsup uploads prune`,
		SuggestFor: []string{"clean", "gc"},
		Args:       cmdline.NoArgs,
		RunE:       func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&p.missingSource, "missing-source", false, "also cancel and delete uploads whose source does not exist")
	fs.BoolVar(&p.dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	fs.BoolVar(&p.json, "json", false, "print JSON Lines, one for each saved upload")
	cmdline.Common(fs, "missing-source", "dry-run", "json")
	p.target.addSaving(fs)
	return cmd
}

func (p *pruner) run(ctx context.Context) (err error) {
	if p.c, p.console, err = p.target.openSaved(ctx, p.std); err != nil {
		return err
	}
	defer p.c.close()
	if p.target.storeMissing() {
		if !p.json {
			p.console.Message("no saved uploads")
		}
		return nil
	}
	if err := p.connect(ctx); err != nil {
		return withHint(err, p.c.endpoint)
	}
	code, all, pruned := exit.OK, 0, 0
	for u, err := range p.c.uploader.Prune(ctx, &upload.PruneOptions{MissingSource: p.missingSource, DryRun: p.dryRun}) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && u.ID == "": // the store cannot be read
			return err
		}
		all++
		if u.Deleted {
			pruned++
		}
		action, reason := outcomeOf(u, err)
		if reason == reasonError {
			p.console.Fail(aboutUpload(u.ID, withHint(err, p.c.endpoint)))
			if code == exit.OK {
				code = exit.Classify(err).Code
			}
		}
		if !p.json {
			p.explain(u, reason, err)
			continue
		}
		if reason != reasonError && reason != reasonUnusable {
			err = nil // the reason explains it
		}
		if err := printAction(p.std.out, action, reason, u.SavedUpload, p.dryRun, err); err != nil {
			return err
		}
	}
	left, err := p.c.saved.sweep(ctx, p.dryRun)
	if err != nil {
		return withHint(err, p.c.endpoint)
	}
	if !p.json {
		verb := "deleted"
		if p.dryRun {
			verb = "would be deleted"
		}
		if left > 0 {
			p.console.Message("%s %s", readable.Plural(left, "lease of a process that died before it saved an upload", "leases of processes that died before they saved an upload"), verb)
		}
		p.console.Message("%d of %s %s", pruned, readable.Plural(all, "saved upload", "saved uploads"), verb)
	}
	if code != exit.OK {
		return exit.Printed(code)
	}
	return nil
}

// connect makes the uploader. It looks for credentials only if the service will be
// asked about an upload.
func (p *pruner) connect(ctx context.Context) (err error) {
	saved, _, err := savedUploads(ctx, p.c)
	if err != nil {
		return err
	}
	here := func(s upload.SavedUpload) bool { return s.Endpoint == p.c.endpoint }
	if slices.ContainsFunc(saved, here) {
		return p.c.dial(ctx, upload.Options{Observer: func(e upload.Event) {
			p.c.observe(e)
			if e.Kind == upload.Warning {
				p.console.Message("%s: warning: %s", e.ID, exit.Without(e.Cause, e.Err))
			}
		}})
	}
	p.c.uploader, err = p.c.offline(p.c.endpoint)
	return err
}

// outcomeOf returns what happened to a saved upload, and why.
func outcomeOf(u upload.Pruned, err error) (action, reason string) {
	switch {
	case u.Source() == "": // only the ID is known
		return actionKept, reasonUnusable
	case errors.Is(err, session.ErrURIMismatch):
		return actionKept, reasonEndpoint
	case errors.Is(err, state.ErrInUse):
		return actionKept, reasonInUse
	case err != nil:
		return actionKept, reasonError
	case u.SourceMissing && u.Deleted:
		return actionCanceled, reasonMissingSource
	case u.Incomplete && u.State == upload.SessionOpen && u.Deleted:
		return actionCanceled, reasonIncomplete
	}
	action, reason = actionKept, reasonOpen
	if u.Deleted {
		action = actionDeleted
		reason = reasonGone
	}
	switch {
	case u.State == upload.SessionFinished:
		reason = reasonFinished
	case u.State == upload.SessionOpen && u.Deleted: // of temporary objects
		reason = reasonOver
	case u.State == upload.SessionGone: // the bytes of a spooled stream are on disk
		reason = reasonGone
	}
	return action, reason
}

// explain prints for people why an upload was deleted, or kept although the service
// was not asked about it.
func (p *pruner) explain(u upload.Pruned, reason string, err error) {
	switch reason {
	case reasonUnusable:
		p.console.Message("kept %s, which cannot be used: %v", u.ID, withHint(err, ""))
	case reasonEndpoint:
		p.console.Message("kept %s: it was started at %s", uploadText(u.SavedUpload), endpointText(u.Endpoint))
	case reasonInUse:
		p.console.Message("kept %s: %v", uploadText(u.SavedUpload), err)
	}
	if !u.Deleted {
		if reason == reasonGone {
			p.console.Message("kept %s: the service holds nothing of it, and all its bytes may be in %s; resume it or cancel it", uploadText(u.SavedUpload), u.Spool)
		}
		return
	}
	verb, why := "deleted", "the service holds nothing of it"
	switch reason {
	case reasonMissingSource:
		verb, why = "canceled and deleted", "its source does not exist"
		if !p.dryRun {
			why += fmt.Sprintf("; %s were committed", readable.Committed(u.Stored, u.Size))
		}
	case reasonIncomplete:
		verb, why = "canceled and deleted", "its input did not end"
	case reasonOver:
		why = "its object was made, or it was abandoned; only temporary objects were left"
	case reasonFinished:
		why = "the upload was finished already, and the object was made"
	}
	if p.dryRun {
		verb = "would " + strings.NewReplacer("canceled", "cancel", "deleted", "delete").Replace(verb)
	}
	p.console.Message("%s %s: %s", verb, uploadText(u.SavedUpload), why)
}
