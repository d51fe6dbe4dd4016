package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/tty"
	"gcsup/session"
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

func newSessionsList(std stdio) *cobra.Command {
	var target targetFlags
	var asJSON, refresh bool
	cmd := &cobra.Command{
		Use:        "list",
		Short:      "List saved uploads",
		SuggestFor: []string{"ls"},
		Long: `list shows the uploads that can be resumed, as they were last saved. STORED is what
the service had acknowledged. If a request was cut off, it may hold more: --refresh
queries the service. Saved uploads that cannot be used are reported, not changed.

The service drops a session a week after its start, and a multipart upload never.`,
		Example: `  gcsup sessions list
  gcsup sessions list --refresh --json`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			con := newConsole(std.err, false)
			c, err := target.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer c.close()
			c.warnOn(con)
			saved, unusable, err := savedUploads(cmd.Context(), c)
			if err != nil {
				return withHint(err, c.endpoint)
			}
			if refresh {
				if err := c.refresh(cmd.Context(), con, saved); err != nil {
					return withHint(err, c.endpoint)
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
				con.fail(aboutUpload(u.id, withHint(u.err, "")))
			}
			return exit.Printed(exit.Classify(unusable[0].err).Code)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON Lines")
	cmd.Flags().BoolVar(&refresh, "refresh", false, "query the service for what it stores of each upload")
	target.addSaving(cmd.Flags())
	return cmd
}

// refresh replaces the committed offsets of saved uploads by what the service stores. It
// reports the uploads whose state it cannot learn.
func (c *connection) refresh(ctx context.Context, con *console, saved []upload.SavedUpload) error {
	if err := c.dial(ctx, upload.Options{}); err != nil {
		return err
	}
	for i := range saved {
		s := &saved[i]
		if s.Endpoint != c.endpoint {
			continue
		}
		switch holding, err := c.uploader.Query(ctx, s.ID); {
		case ctx.Err() != nil:
			return err
		case err != nil:
			con.message("%s is shown as it was last saved: %v", s.ID, err)
		case holding.State == upload.SessionOpen:
			s.Committed = holding.Stored
		case holding.State == upload.SessionFinished:
			s.Committed = max(s.Size, 0)
		default:
			s.Committed = 0
		}
	}
	return nil
}

// printSessions prints each upload on three lines: the last two are its source
// and its destination, which can be long. On a terminal they are shortened.
func printSessions(w io.Writer, saved []upload.SavedUpload, now time.Time) error {
	columns, _, terminal := tty.Size(w)
	shortened := func(text string) string {
		if text = process.Printable(text); terminal {
			text = shortenPath(text, columns-3)
		}
		return text
	}
	// A tabwriter aligns only adjacent lines, and other lines are between these.
	rows := [][4]string{{"ID", "STORED", "AGE", "EXPIRES IN"}}
	for _, u := range saved {
		rows = append(rows, [4]string{u.ID, storedShare(u.Committed, u.Size),
			formatSpan(now.Sub(u.Started)), formatExpiry(u, now)})
	}
	var widths [3]int
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], len(row[i]))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "%-*s  %-*s  %-*s  %s\n", widths[0], row[0], widths[1], row[1], widths[2], row[2], row[3])
		if i > 0 {
			u := saved[i-1]
			fmt.Fprintf(&b, "  %s\n  %s%s\n", shortened(sourceText(u)), shortened(u.Spec.URL()), otherEndpoint(u.Endpoint))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sourceText describes the source of a saved upload.
func sourceText(u upload.SavedUpload) string {
	switch {
	case u.Spool == "":
		return u.Source()
	case !u.Incomplete:
		return u.Source() + "  in " + u.Spool
	}
	return u.Source() + "  in " + u.Spool + ", the input has not ended"
}

// otherEndpoint returns a remark for an upload that was not started at the default
// endpoint.
func otherEndpoint(endpoint string) string {
	if endpoint == session.DefaultEndpoint {
		return ""
	}
	return "\n  at " + process.Printable(endpointText(endpoint))
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

// formatExpiry formats the time until the session expires, if it does.
func formatExpiry(u upload.SavedUpload, now time.Time) string {
	switch {
	case u.ToRemove:
		return "to be removed"
	case u.Expires.IsZero():
		return "never"
	}
	return formatSpan(u.Expires.Sub(now))
}

// sessionLine is a saved upload in JSON, without its session URI.
type sessionLine struct {
	V           int        `json:"v"`
	Type        string     `json:"type"`
	ID          string     `json:"id"`
	Source      string     `json:"source"`
	Destination string     `json:"destination"`
	Endpoint    string     `json:"endpoint"`
	Committed   int64      `json:"committed"`
	Sent        int64      `json:"sent"`
	Size        *int64     `json:"size"`
	Created     time.Time  `json:"created"`
	Expires     *time.Time `json:"expires"` // null if never
	ToRemove    bool       `json:"to_remove"`

	// For a stream in a spool.
	Spool      string `json:"spool,omitempty"`
	Incomplete bool   `json:"incomplete,omitempty"`
}

func newSessionLine(s upload.SavedUpload) sessionLine {
	return sessionLine{
		V: 1, Type: "session", ID: s.ID, Source: s.Source(), Destination: s.Spec.URL(), Endpoint: s.Endpoint,
		Committed: s.Committed, Sent: s.Sent, Size: known(s.Size, s.Size >= 0), Created: s.Started.UTC(), Expires: known(s.Expires.UTC(), !s.Expires.IsZero()), ToRemove: s.ToRemove,
		Spool: s.Spool, Incomplete: s.Incomplete,
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rm ID...",
		Short: "Delete saved uploads",
		Long: `rm deletes saved uploads, without a request about them. The service drops their bytes a
week after the upload started; they cost nothing. The temporary objects of an upload
that is sent in parts (--parallel) stay, and are billed: rm prints their prefix, and
cancel deletes them.`,
		Example:           `  gcsup sessions rm 5f0c2f7d`,
		Args:              cmdline.AtLeast(1, "the ID of a saved upload, as sessions list shows it"),
		ValidArgsFunction: target.completeIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := target.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer c.close()
			con := newConsole(std.err, false)
			c.warnOn(con)
			return forEach(cmd.Context(), std, c, asJSON, ids, func(id string) error {
				token, err := forget(cmd.Context(), c.saved, id)
				if err == nil && token != nil && token.Parts != nil {
					what, where := partsText(token)
					con.message("warning: %s stay, and are billed: %s", what, where)
				}
				switch {
				case err != nil:
					return err
				case asJSON && token == nil:
					return printAction(std.out, actionDeleted, reasonUnusable, upload.SavedUpload{ID: id}, false, nil)
				case asJSON:
					return printAction(std.out, actionDeleted, reasonRequested, upload.Describe(token), false, nil)
				case token == nil:
					con.message("deleted the saved upload %s, which could not be used", id)
				case token.Parts != nil:
					con.message("deleted %s: %s were stored", uploadText(upload.Describe(token)), storedText(upload.Describe(token).Committed, token.ObjectSize()))
				default:
					con.message("deleted %s: %s were stored; the service drops them in %s", uploadText(upload.Describe(token)),
						storedText(token.Committed, token.ObjectSize()), formatSpan(time.Until(token.Expires())))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON Lines, one for each upload")
	target.addSaving(cmd.Flags())
	return cmd
}

// partsText describes what an upload in parts has stored at the service, and where.
func partsText(t *state.Token) (what, where string) {
	if t.Parts.Upload.IsZero() {
		return "the temporary objects of " + t.ID, fmt.Sprintf("gs://%s/%s*", process.Printable(t.Spec.Bucket), t.Parts.Prefix)
	}
	return "the parts of " + t.ID, "multipart upload to " + process.Printable(t.Spec.URL())
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

// forget deletes a saved upload that no process uses, even if it cannot be used.
// The Token is nil if it could not be read.
func forget(ctx context.Context, store state.Store, id string) (*state.Token, error) {
	unlock, err := store.Lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	token, err := store.Load(ctx, id)
	if errors.Is(err, state.ErrNoToken) {
		return nil, err
	}
	if err == nil {
		if err := upload.RemoveSpool(ctx, token); err != nil {
			return nil, err
		}
	}
	return token, store.Delete(ctx, id)
}

// canceler cancels saved uploads at the service.
type canceler struct {
	all       bool
	olderThan time.Duration

	target targetFlags
	json   bool

	std     stdio
	console *console
	c       *connection

	warnings sync.Map // about an upload, by ID
	held     sync.Map // IDs of uploads whose wait for a lease was reported
}

func newSessionsCancel(std stdio) *cobra.Command {
	x := &canceler{std: std}
	cmd := &cobra.Command{
		Use:   "cancel [ID... | --all] [--older-than DURATION]",
		Short: "Cancel saved uploads at the service and delete them",
		Long: `cancel cancels the sessions of saved uploads, so that the service drops their bytes, and
deletes the saved uploads: those with the given IDs, all to the endpoint in use, or those
of them that were started long ago. The environment does not set --all here. An upload
that a process is working on is kept, and the exit code is 75. So is one whose parts the
service does not confirm as removed.`,
		Example: `  gcsup sessions cancel 5f0c2f7d
  gcsup sessions cancel --older-than 3d`,
		Args: func(cmd *cobra.Command, ids []string) error {
			bulk := x.all || cmd.Flags().Changed("older-than")
			switch {
			case len(ids) > 0 && bulk:
				return exit.Usagef("give IDs, or --all or --older-than, not both; see %s", cmdline.HelpOf(cmd))
			case len(ids) == 0 && !bulk:
				return exit.Usagef("sessions cancel: want the ID of a saved upload, as sessions list shows it, or --all or --older-than; see %s", cmdline.HelpOf(cmd))
			}
			return nil
		},
		ValidArgsFunction: x.target.completeIDs,
		RunE: func(cmd *cobra.Command, ids []string) (err error) {
			ctx := cmd.Context()
			x.console = newConsole(std.err, false)
			if x.c, err = x.target.open(ctx, true); err != nil {
				return err
			}
			defer x.c.close()
			x.c.warnOn(x.console)
			if len(ids) > 0 {
				return forEach(ctx, std, x.c, x.json, ids, func(id string) error { return x.cancel(ctx, id) })
			}
			return x.cancelMany(ctx)
		},
	}
	cmd.Flags().BoolVar(&x.all, "all", false, "cancel all saved uploads to the endpoint in use")
	cmdline.DurationVar(cmd.Flags(), &x.olderThan, "older-than", 0, "cancel the saved uploads to the endpoint in use that were started more than `DURATION` ago, such as 3d")
	cmd.Flags().BoolVar(&x.json, "json", false, "print JSON Lines, one for each upload")
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
			x.console.message("kept %s: it was started at %s", uploadText(u), endpointText(u.Endpoint))
		}
	}
	for _, u := range unusable {
		if !x.json {
			x.console.message("kept %s, which cannot be used: %v", u.id, withHint(u.err, ""))
			continue
		}
		if err := printAction(x.std.out, actionKept, reasonUnusable, upload.SavedUpload{ID: u.id}, false, u.err); err != nil {
			return err
		}
	}
	canceled := 0
	err = forEach(ctx, x.std, x.c, x.json, ids, func(id string) error {
		err := x.cancel(ctx, id)
		if errors.Is(err, state.ErrNoToken) {
			return nil // another process finished or removed it meanwhile
		}
		if err == nil {
			canceled++
		}
		return err
	})
	if !x.json {
		x.console.message("%d of %s canceled", canceled, plural(all, "saved upload", "saved uploads"))
	}
	return err
}

// observe gets the events of the library.
func (x *canceler) observe(e upload.Event) {
	x.c.observe(e)
	switch e.Kind {
	case upload.Warning:
		x.warnings.Store(e.ID, exit.Without(e.Cause, e.Err))
	case upload.Held:
		if _, reported := x.held.LoadOrStore(e.ID, true); !reported {
			x.console.message("%s: %s", e.ID, heldText(e, x.target.state.lease))
		}
	}
}

// cancel cancels a saved upload at the service, deletes it and prints what it did.
func (x *canceler) cancel(ctx context.Context, id string) error {
	c, con, out := x.c, x.console, x.std.out
	token, err := c.saved.Load(ctx, id)
	switch {
	case errors.Is(err, state.ErrCorruptToken):
		if _, err := forget(ctx, c.saved, id); err != nil {
			return err
		}
		if x.json {
			return printAction(out, actionDeleted, reasonUnusable, upload.SavedUpload{ID: id}, false, nil)
		}
		con.message("deleted the saved upload %s, which was damaged; the service drops its session a week after it started", id)
		return nil
	case err != nil:
		return err
	case token.Endpoint != c.endpoint:
		return x.target.endpointMismatch(c, token.Endpoint)
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
		return printAction(out, actionDeleted, reasonFinished, upload.Describe(token), false, nil)
	case x.json:
		return printAction(out, actionCanceled, reasonRequested, upload.Describe(token), false, nil)
	case exists:
		con.message("deleted %s: the upload was finished already, and the object exists", uploadText(upload.Describe(token)))
	default:
		con.message("canceled %s: %s were stored", uploadText(upload.Describe(token)), storedText(upload.Describe(token).Committed, token.ObjectSize()))
	}
	return nil
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
		newConsole(std.err, false).fail(aboutUpload(id, withHint(err, c.endpoint)))
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
