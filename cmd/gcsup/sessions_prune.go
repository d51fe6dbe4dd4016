package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

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
	asker   *asker // nil before the first request
}

func newSessionsPrune(std stdio) *cobra.Command {
	p := &pruner{std: std}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete saved uploads that the service no longer holds",
		Long: `prune asks the service about each saved upload to the endpoint in use, and deletes
those that it confirms as gone. With --missing-source it also cancels and deletes
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
	tokens, unusable, err := savedUploads(ctx, p.c.saved)
	if err != nil {
		return err
	}
	code, pruned := exitOK, 0
	fail := func(id string, err error) {
		p.console.fail(id + ": " + withHint(err, p.c.endpoint).Error())
		if code == exitOK {
			code = classify(err).code
		}
	}
	for _, u := range unusable {
		p.console.message("kept %s, which cannot be used: %v", u.id, withHint(u.err, ""))
	}
	for _, t := range tokens {
		deleted, err := p.prune(ctx, t)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, session.ErrInUse):
			p.console.message("kept %s: %v", uploadText(t), err)
		case errors.Is(err, session.ErrNoToken): // another process finished it
		case err != nil:
			fail(t.ID, err)
		}
		if deleted {
			pruned++
		}
	}
	verb := "deleted"
	if p.dryRun {
		verb = "would be deleted"
	}
	p.console.message("%d of %d saved uploads %s", pruned, len(tokens)+len(unusable), verb)
	if code != exitOK {
		return exitCode(code)
	}
	return nil
}

// prune deletes one upload if the service confirms that it is gone, or if its
// source is missing and that was asked for.
func (p *pruner) prune(ctx context.Context, token *session.Token) (deleted bool, err error) {
	if token.Endpoint != p.c.endpoint {
		p.console.message("kept %s: it was started at %s", uploadText(token), endpointText(token.Endpoint))
		return false, nil
	}
	h, deleted, err := p.pruneGone(ctx, token)
	if err != nil || deleted || h.gone() {
		return deleted, err
	}
	if !p.missingSource || !missing(token.SourcePath) {
		return false, nil
	}
	if p.dryRun {
		p.console.message("would cancel and delete %s: its source does not exist", uploadText(token))
		return true, nil
	}
	if err := p.c.uploader.Cancel(ctx, token.ID); err != nil {
		return false, err
	}
	p.console.message("cancelled and deleted %s: its source does not exist; %s were stored", uploadText(token), storedText(h.stored, token.Source.Size))
	return true, nil
}

// pruneGone asks the service about an upload, and deletes it if it is gone. It
// holds the lock meanwhile.
func (p *pruner) pruneGone(ctx context.Context, token *session.Token) (h holding, deleted bool, err error) {
	unlock, err := p.c.saved.Lock(ctx, token.ID)
	if err != nil {
		return h, false, err
	}
	defer unlock()
	// The upload may have continued before the lock was taken.
	if token, err = p.c.saved.Load(ctx, token.ID); err != nil {
		return h, false, err
	}
	if p.asker == nil {
		if err := p.c.dial(ctx, upload.Options{}); err != nil {
			return h, false, err
		}
		if p.asker, err = p.c.asker(); err != nil {
			return h, false, err
		}
	}
	if h, err = p.asker.ask(ctx, token); err != nil {
		return h, false, err
	}
	switch {
	case !h.gone():
		return h, false, nil
	case p.dryRun:
		p.console.message("would delete %s: the service holds nothing of it", uploadText(token))
		return h, true, nil
	}
	if err := p.c.saved.Delete(ctx, token.ID); err != nil {
		return h, false, err
	}
	p.console.message("deleted %s: the service holds nothing of it", uploadText(token))
	return h, true, nil
}

// missing reports whether the file does not exist. Another error, such as that of a
// directory that cannot be read, is no proof.
func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
