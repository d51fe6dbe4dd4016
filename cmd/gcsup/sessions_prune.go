package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gcsup/session"
	"gcsup/upload"
)

// pruner deletes saved uploads that cannot be resumed.
type pruner struct {
	target        targetFlags
	missingSource bool
	dryRun        bool

	std     stdio
	console *console
	c       *connection
}

func newSessionsPrune(std stdio) *cobra.Command {
	p := &pruner{std: std}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete saved uploads that the service no longer holds",
		Long: `prune asks the service about each saved upload to the endpoint in use, and deletes
those that it confirms as gone, and those that are finished. With --missing-source it also cancels and deletes
those whose source does not exist. It never deletes an upload because of its age,
or because the service was not reached.`,
		SuggestFor: []string{"clean", "gc"},
		Args:       noArgs,
		RunE:       func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&p.missingSource, "missing-source", false, "also cancel and delete uploads whose source does not exist")
	fs.BoolVar(&p.dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	p.target.add(fs)
	return cmd
}

func (p *pruner) run(ctx context.Context) (err error) {
	p.console = newConsole(p.std.err, false)
	if p.c, err = p.target.open(ctx, true); err != nil {
		return err
	}
	defer p.c.close()
	if p.target.storeMissing() {
		p.console.message("no saved uploads")
		return nil
	}
	if err := p.connect(ctx); err != nil {
		return withHint(err, p.c.endpoint)
	}
	code, all, pruned := exitOK, 0, 0
	for u, err := range p.c.uploader.Prune(ctx, &upload.PruneOptions{MissingSource: p.missingSource, DryRun: p.dryRun}) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && u.ID == "": // the store cannot be read
			return err
		case err != nil && !p.explainKept(u, err):
			p.console.fail(u.ID + ": " + withHint(err, p.c.endpoint).Error())
			if code == exitOK {
				code = classify(err).code
			}
		case u.Deleted:
			p.explainDeleted(u)
			pruned++
		}
		all++
	}
	verb := "deleted"
	if p.dryRun {
		verb = "would be deleted"
	}
	p.console.message("%d of %d saved uploads %s", pruned, all, verb)
	if code != exitOK {
		return exitCode(code)
	}
	return nil
}

// connect makes the uploader. It looks for credentials only if the service will be
// asked about an upload.
func (p *pruner) connect(ctx context.Context) (err error) {
	saved, _, err := savedUploads(ctx, p.c.saved)
	if err != nil {
		return err
	}
	here := func(s upload.SavedUpload) bool { return s.Endpoint == p.c.endpoint }
	if slices.ContainsFunc(saved, here) {
		return p.c.dial(ctx, upload.Options{})
	}
	p.c.uploader, err = upload.New(nil, &upload.Options{Endpoint: p.c.endpoint, Store: p.c.saved})
	return err
}

// explainKept prints why an upload is kept that the service was not asked about. It
// returns false for an error of the service.
func (p *pruner) explainKept(u upload.Pruned, err error) bool {
	switch {
	case u.Source() == "": // nothing is known of it but the ID
		p.console.message("kept %s, which cannot be used: %v", u.ID, withHint(err, ""))
	case u.Endpoint != p.c.endpoint:
		p.console.message("kept %s: it was started at %s", uploadText(u.SavedUpload), endpointText(u.Endpoint))
	case errors.Is(err, session.ErrInUse):
		p.console.message("kept %s: %v", uploadText(u.SavedUpload), err)
	default:
		return false
	}
	return true
}

// explainDeleted prints why an upload was deleted, or would be.
func (p *pruner) explainDeleted(u upload.Pruned) {
	verb, why := "deleted", "the service holds nothing of it"
	switch {
	case u.SourceMissing:
		verb, why = "cancelled and deleted", "its source does not exist"
		if !p.dryRun {
			why += fmt.Sprintf("; %s were stored", storedText(u.Stored, u.Size))
		}
	case u.State == upload.SessionFinished:
		why = "the upload was finished already, and the object exists"
	}
	if p.dryRun {
		verb = "would " + strings.NewReplacer("cancelled", "cancel", "deleted", "delete").Replace(verb)
	}
	p.console.message("%s %s: %s", verb, uploadText(u.SavedUpload), why)
}
