package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/screen"
	"gcsup/session/state"
	"gcsup/upload"
)

// canceler cancels saved uploads at the service.
type canceler struct {
	all       bool
	olderThan time.Duration

	target targetFlags
	json   bool

	std     stdio
	console *screen.Console
	c       *connection

	warnings sync.Map // about an upload, by ID
	held     sync.Map // IDs of uploads whose wait for a lease was reported
}

func newUploadsCancel(std stdio) *cobra.Command {
	x := &canceler{std: std}
	cmd := &cobra.Command{
		Use:   "cancel [ID... | --all] [--older-than DURATION]",
		Short: "Cancel saved uploads at the service and delete them",
		Long: `cancel cancels the sessions of saved uploads, so that the service drops their bytes, and
deletes the saved uploads. Give IDs, or --all or --older-than for the uploads to the
endpoint in use: a variable such as GCSUP_ALL cannot replace them. An upload is kept,
with exit code 75, if a process is working on it, or if the service does not confirm that
its parts are removed.`,
		Example: `  gcsup uploads cancel 5f0c2f7d
  gcsup uploads cancel --older-than 3d`,
		Args: func(cmd *cobra.Command, ids []string) error {
			bulk := x.all || cmd.Flags().Changed("older-than")
			switch {
			case len(ids) > 0 && bulk:
				return exit.Usagef("give IDs, or --all or --older-than, not both; see %s", cmdline.HelpOf(cmd))
			case len(ids) == 0 && !bulk:
				return exit.Usagef("uploads cancel: want the ID of a saved upload, as uploads list shows it, or --all or --older-than; see %s", cmdline.HelpOf(cmd))
			}
			return nil
		},
		ValidArgsFunction: x.target.completeIDs,
		RunE: func(cmd *cobra.Command, ids []string) (err error) {
			ctx := cmd.Context()
			if x.c, x.console, err = x.target.openSaved(ctx, std); err != nil {
				return err
			}
			defer x.c.close()
			if len(ids) > 0 {
				return forEach(ctx, std, x.c, x.json, ids, func(id string) error { return x.cancel(ctx, id) })
			}
			return x.cancelMany(ctx)
		},
	}
	cmd.Flags().BoolVar(&x.all, "all", false, "cancel all saved uploads to the endpoint in use")
	cmdline.DurationVar(cmd.Flags(), &x.olderThan, "older-than", 0, "cancel the saved uploads to the endpoint in use that were started more than `DURATION` ago, such as 3d")
	cmd.Flags().BoolVar(&x.json, "json", false, "print JSON Lines, one for each upload")
	cmdline.Common(cmd.Flags(), "all", "older-than", "json")
	x.target.addSaving(cmd.Flags())
	return cmd
}

// cancelMany cancels the saved uploads to the endpoint in use that are old enough. It keeps
// those that cannot be used.
func (x *canceler) cancelMany(ctx context.Context) error {
	saved, unusable, err := savedUploads(ctx, x.c)
	if err != nil {
		return withHint(err, x.c.endpoint)
	}
	all := len(saved) + len(unusable)
	started := time.Now().Add(-x.olderThan)
	saved = slices.DeleteFunc(saved, func(u upload.SavedUpload) bool { return u.Started.After(started) })
	var ids []string
	for _, u := range saved {
		switch {
		case u.Endpoint == x.c.endpoint:
			ids = append(ids, u.ID)
		case x.json:
			if err := printAction(x.std.out, actionKept, reasonEndpoint, u, false, nil); err != nil {
				return err
			}
		default:
			x.console.Message("kept %s: it was started at %s", uploadText(u), endpointText(u.Endpoint))
		}
	}
	for _, u := range unusable {
		if !x.json {
			x.console.Message("kept %s, which cannot be used: %v", u.id, withHint(u.err, ""))
			continue
		}
		if err := printAction(x.std.out, actionKept, reasonUnusable, upload.SavedUpload{ID: u.id}, false, u.err); err != nil {
			return err
		}
	}
	canceled := 0
	err = forEach(ctx, x.std, x.c, x.json, ids, func(id string) error {
		err := x.cancel(ctx, id)
		if errors.Is(err, state.ErrNotFound) {
			return nil // another process finished or removed it meanwhile
		}
		if err == nil {
			canceled++
		}
		return err
	})
	if !x.json {
		x.console.Message("%d of %s canceled", canceled, readable.Plural(all, "saved upload", "saved uploads"))
	}
	return err
}

// observe gets the events of the library.
func (x *canceler) observe(e upload.Event) {
	x.c.observe(e)
	switch e.Kind {
	case upload.Warning:
		x.warnings.Store(e.ID, exit.Without(e.Cause, e.Err))
	case upload.LeaseHeld:
		if _, reported := x.held.LoadOrStore(e.ID, true); !reported {
			x.console.Message("%s: %s", e.ID, heldText(e, x.target.state.lease))
		}
	}
}

// cancel cancels a saved upload at the service, deletes it and prints what it did.
func (x *canceler) cancel(ctx context.Context, id string) error {
	c, con, out := x.c, x.console, x.std.out
	doc, err := c.saved.Load(ctx, id)
	switch {
	case errors.Is(err, state.ErrCorrupt):
		if _, err := forget(ctx, c.saved, id); err != nil {
			return err
		}
		if x.json {
			return printAction(out, actionDeleted, reasonUnusable, upload.SavedUpload{ID: id}, false, nil)
		}
		con.Message("deleted the saved upload %s, which was damaged; the service drops its session a week after it started", id)
		return nil
	case err != nil:
		return err
	case doc.Endpoint != c.endpoint:
		return x.target.endpointMismatch(c, doc.Endpoint)
	}
	if c.uploader == nil {
		if err := c.dial(ctx, upload.Options{Observer: x.observe}); err != nil {
			return err
		}
	}
	if err := c.uploader.Cancel(ctx, id); err != nil {
		return err
	}
	_, exists := x.warnings.Load(id)
	switch {
	case x.json && exists:
		return printAction(out, actionDeleted, reasonFinished, upload.Describe(doc), false, nil)
	case x.json:
		return printAction(out, actionCanceled, reasonRequested, upload.Describe(doc), false, nil)
	case exists:
		con.Message("deleted %s: the upload was finished already, and the object was made", uploadText(upload.Describe(doc)))
	default:
		con.Message("canceled %s: %s were committed", uploadText(upload.Describe(doc)), committedText(doc))
	}
	return nil
}
