package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/screen"
	"gcsup/session/state"
	"gcsup/upload"
)

func newSessions(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, check, delete and move saved uploads",
		Example: `  gcsup sessions list
  gcsup sessions prune`,
		Args: cmdline.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSessionsList(std), newSessionsShow(std), newSessionsPrune(std), newSessionsRm(std), newSessionsCancel(std),
		newSessionsExport(std), newSessionsImport(std),
	)
	return cmd
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
	if errors.Is(err, state.ErrNoToken) { // contains the ID
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
