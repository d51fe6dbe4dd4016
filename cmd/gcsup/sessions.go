package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gcsup/session"
	"gcsup/upload"
)

func newSessions(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "sessions",
		Short:      "List, cancel and move saved uploads",
		SuggestFor: []string{"ls", "list", "rm", "cancel"},
		Args:       noCommand,
		RunE:       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSessionsList(std), newSessionsRm(std), newSessionsCancel(std), newSessionsExport(std), newSessionsImport(std))
	return cmd
}

func newSessionsList(std stdio) *cobra.Command {
	var target targetFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:        "list",
		Short:      "List saved uploads",
		SuggestFor: []string{"ls"},
		Long: `list shows the uploads that can be resumed, as they were last saved. SENT is the
offset up to which bytes were sent, COMMITTED the offset that the service had
acknowledged. If a request was cut off, the service may have committed more; a
resume queries it. Saved uploads that cannot be used are reported, not changed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			con := newConsole(std.err, false)
			store, err := target.existingStore()
			if err != nil {
				return err
			}
			var tokens []*session.Token
			var unusable []unusableUpload
			if store != nil {
				defer store.Close()
				if tokens, unusable, err = savedUploads(cmd.Context(), store); err != nil {
					return err
				}
			}
			switch {
			case asJSON:
				err = printSessionsJSON(std.out, tokens)
			case len(tokens) > 0:
				err = printSessions(std.out, tokens, time.Now())
			case len(unusable) == 0:
				con.message("no saved uploads")
			}
			if err != nil || len(unusable) == 0 {
				return err
			}
			for _, u := range unusable {
				con.fail(fmt.Sprintf("%s: %v", u.id, withHint(u.err, "")))
			}
			return exitCode(classify(unusable[0].err).code)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON Lines")
	target.addStateDir(cmd.Flags())
	return cmd
}

func printSessions(w io.Writer, tokens []*session.Token, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tSOURCE\tDESTINATION\tCOMMITTED\tSENT\tSIZE\tDONE\tAGE\tEXPIRES IN\tENDPOINT")
	for _, t := range tokens {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%d%%\t%s\t%s\t%s\n", t.ID, printable(t.SourcePath), printable(t.Spec.URL()),
			bytesText(t.Committed), bytesText(sentOffset(t)), bytesText(t.Source.Size), t.Committed*100/max(t.Source.Size, 1),
			formatSpan(now.Sub(t.Created)), formatSpan(t.Expires().Sub(now)), endpointText(t.Endpoint))
	}
	return tw.Flush()
}

// sentOffset returns the offset up to which bytes were sent, which is that of the
// last checkpoint or the committed offset.
func sentOffset(t *session.Token) int64 {
	return max(t.Committed, t.Checkpoint(t.Source.Size).Offset)
}

// formatSpan formats a duration in its two largest units.
func formatSpan(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d <= 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// sessionLine is a saved upload in JSON, without its session URI.
type sessionLine struct {
	V           int       `json:"v"`
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Destination string    `json:"destination"`
	Endpoint    string    `json:"endpoint"`
	Committed   int64     `json:"committed"`
	Sent        int64     `json:"sent"`
	Size        int64     `json:"size"`
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires"`
}

func printSessionsJSON(w io.Writer, tokens []*session.Token) error {
	for _, t := range tokens {
		err := printJSON(w, sessionLine{
			V: 1, Type: "session", ID: t.ID, Source: t.SourcePath, Destination: t.Spec.URL(), Endpoint: t.Endpoint,
			Committed: t.Committed, Sent: sentOffset(t), Size: t.Source.Size, Created: t.Created.UTC(), Expires: t.Expires().UTC(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// completeIDs offers the IDs of saved uploads to the shell.
func (f *targetFlags) completeIDs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	store, err := f.existingStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	if store == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer store.Close()
	ids, err := store.List(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(args, id) }), cobra.ShellCompDirectiveNoFileComp
}

func newSessionsRm(std stdio) *cobra.Command {
	var target targetFlags
	cmd := &cobra.Command{
		Use:   "rm ID...",
		Short: "Delete saved uploads on this machine",
		Long: `rm deletes saved uploads on this machine, without a request. The service drops their
bytes a week after the upload started; they cost nothing. See cancel.`,
		Args:              atLeast(1, "the ID of a saved upload, as sessions list shows it"),
		ValidArgsFunction: target.completeIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			store, err := target.openStore()
			if err != nil {
				return err
			}
			defer store.Close()
			return forEach(std, "", ids, func(id string) error { return forget(cmd.Context(), store, id) })
		},
	}
	target.addStateDir(cmd.Flags())
	return cmd
}

// forget deletes a saved upload that no process uses, even if it cannot be used.
func forget(ctx context.Context, store session.Store, id string) error {
	unlock, err := store.Lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := store.Load(ctx, id); errors.Is(err, session.ErrNoToken) {
		return err
	}
	return store.Delete(ctx, id)
}

func newSessionsCancel(std stdio) *cobra.Command {
	var target targetFlags
	cmd := &cobra.Command{
		Use:               "cancel ID...",
		Short:             "Cancel saved uploads at the service and delete them",
		Args:              atLeast(1, "the ID of a saved upload, as sessions list shows it"),
		ValidArgsFunction: target.completeIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := target.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer c.close()
			return forEach(std, c.endpoint, ids, func(id string) error {
				token, err := c.saved.Load(cmd.Context(), id)
				switch {
				case errors.Is(err, session.ErrCorruptToken):
					return forget(cmd.Context(), c.saved, id) // the session URI is lost
				case err != nil:
					return err
				case token.Endpoint != c.endpoint:
					return target.endpointMismatch(c, token)
				case c.uploader == nil:
					if err := c.dial(cmd.Context(), upload.Options{}); err != nil {
						return err
					}
				}
				return c.uploader.Cancel(cmd.Context(), id)
			})
		},
	}
	target.add(cmd.Flags())
	return cmd
}

// forEach calls do for each ID, even after a failure. The exit code is that of the
// first failure. endpoint is for hints.
func forEach(std stdio, endpoint string, ids []string, do func(id string) error) error {
	code := exitOK
	for _, id := range ids {
		err := do(id)
		if err == nil {
			continue
		}
		newConsole(std.err, false).fail(fmt.Sprintf("%s: %v", id, withHint(err, endpoint)))
		if code == exitOK {
			code = classify(err).code
		}
	}
	if code != exitOK {
		return exitCode(code)
	}
	return nil
}
