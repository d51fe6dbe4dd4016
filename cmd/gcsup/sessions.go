package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gcsup/session"
	"gcsup/upload"
)

func newSessions(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, check, delete and move saved uploads",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSessionsList(std), newSessionsShow(std), newSessionsPrune(std), newSessionsRm(std), newSessionsCancel(std),
		newSessionsExport(std), newSessionsImport(std),
	)
	return cmd
}

func newSessionsList(std stdio) *cobra.Command {
	var target targetFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:        "list",
		Short:      "List saved uploads",
		SuggestFor: []string{"ls"},
		Long: `list shows the uploads that can be resumed, as they were last saved. STORED is what
the service had acknowledged. If a request was cut off, it may hold more; sessions
show asks it. Saved uploads that cannot be used are reported, not changed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			con := newConsole(std.err, false)
			store, err := target.existingStore()
			if err != nil {
				return err
			}
			var saved []upload.SavedUpload
			var unusable []unusableUpload
			if store != nil {
				defer store.Close()
				if saved, unusable, err = savedUploads(cmd.Context(), store); err != nil {
					return err
				}
			}
			switch {
			case asJSON:
				err = printSessionsJSON(std.out, saved)
			case len(saved) > 0:
				err = printSessions(std.out, saved, time.Now())
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

// printSessions prints each upload on three lines: the last two are its source
// and its destination, which can be long. On a terminal they are shortened.
func printSessions(w io.Writer, saved []upload.SavedUpload, now time.Time) error {
	columns, _, terminal := terminalSize(w)
	fit := func(text string) string {
		if text = printable(text); terminal {
			text = shortenPath(text, columns-3)
		}
		return text
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tSTORED\tAGE\tEXPIRES IN")
	for _, t := range saved {
		fmt.Fprintf(tw, "%s\t%s (%d%%)\t%s\t%s\n", t.ID, storedText(t.Committed, t.Size), storedPercent(t.Committed, t.Size),
			formatSpan(now.Sub(t.Started)), formatSpan(t.Expires.Sub(now)))
		fmt.Fprintf(tw, "  %s\n  %s%s\n", fit(t.Source()), fit(t.Spec.URL()), otherEndpoint(t.Endpoint))
	}
	return tw.Flush()
}

// otherEndpoint returns a remark for an upload that was not started at the default
// endpoint.
func otherEndpoint(endpoint string) string {
	if endpoint == session.DefaultEndpoint {
		return ""
	}
	return "\n  at " + printable(endpointText(endpoint))
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

func newSessionLine(s upload.SavedUpload) sessionLine {
	return sessionLine{
		V: 1, Type: "session", ID: s.ID, Source: s.Source(), Destination: s.Spec.URL(), Endpoint: s.Endpoint,
		Committed: s.Committed, Sent: s.Sent, Size: s.Size, Created: s.Started.UTC(), Expires: s.Expires.UTC(),
	}
}

func printSessionsJSON(w io.Writer, saved []upload.SavedUpload) error {
	for _, s := range saved {
		if err := printJSON(w, newSessionLine(s)); err != nil {
			return err
		}
	}
	return nil
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
			con := newConsole(std.err, false)
			return forEach(std, "", ids, func(id string) error {
				token, err := forget(cmd.Context(), store, id)
				switch {
				case err != nil:
				case token == nil:
					con.message("deleted the saved upload %s, which could not be used", id)
				default:
					con.message("deleted %s: %s were stored; the service drops them in %s", uploadText(upload.Describe(token)),
						storedText(token.Committed, token.Source.Size), formatSpan(time.Until(token.Expires())))
				}
				return err
			})
		},
	}
	target.addStateDir(cmd.Flags())
	return cmd
}

// uploadText names a saved upload in a message.
func uploadText(s upload.SavedUpload) string {
	return fmt.Sprintf("%s (%s to %s)", s.ID, printable(s.Source()), printable(s.Spec.URL()))
}

// forget deletes a saved upload that no process uses, even if it cannot be used.
// The Token is nil if it could not be read.
func forget(ctx context.Context, store session.Store, id string) (*session.Token, error) {
	unlock, err := store.Lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	token, err := store.Load(ctx, id)
	if errors.Is(err, session.ErrNoToken) {
		return nil, err
	}
	return token, store.Delete(ctx, id)
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
			var finished sync.Map // IDs of uploads whose object exists
			return forEach(std, c.endpoint, ids, func(id string) error { return cancelUpload(cmd.Context(), std, &target, c, &finished, id) })
		},
	}
	target.add(cmd.Flags())
	return cmd
}

// cancelUpload cancels a saved upload at the service, deletes it and prints what it
// did. finished gets the IDs of uploads that were finished already.
func cancelUpload(ctx context.Context, std stdio, target *targetFlags, c *connection, finished *sync.Map, id string) error {
	con := newConsole(std.err, false)
	token, err := c.saved.Load(ctx, id)
	switch {
	case errors.Is(err, session.ErrCorruptToken):
		if _, err := forget(ctx, c.saved, id); err != nil {
			return err
		}
		con.message("deleted the saved upload %s, which was damaged; the service drops its session a week after it started", id)
		return nil
	case err != nil:
		return err
	case token.Endpoint != c.endpoint:
		return target.endpointMismatch(c, token.Endpoint)
	}
	if c.uploader == nil {
		observer := func(e upload.Event) {
			if e.Kind == upload.Warning {
				finished.Store(e.ID, nil)
			}
		}
		if err := c.dial(ctx, upload.Options{Observer: observer}); err != nil {
			return err
		}
	}
	if err := c.uploader.Cancel(ctx, id); err != nil {
		return err
	}
	if _, ok := finished.Load(id); ok {
		con.message("deleted %s: the upload was finished already, and the object exists", uploadText(upload.Describe(token)))
		return nil
	}
	con.message("cancelled %s: %s were stored", uploadText(upload.Describe(token)), storedText(token.Committed, token.Source.Size))
	return nil
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
