package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/session"
	"gcsup/upload"
)

func newUploadsList(std stdio) *cobra.Command {
	var target targetFlags
	var asJSON, refresh bool
	cmd := &cobra.Command{
		Use:        "list",
		Short:      "List saved uploads",
		SuggestFor: []string{"ls"},
		Long: `list shows the uploads that can be resumed, as they were last saved. COMMITTED is what
the service had committed. If a request was cut off, it may have more: --refresh
queries the service. Saved uploads that cannot be used are reported, not changed.

The service drops a session a week after its start, and a multipart upload never.`,
		Example: `  gcsup uploads list
  gcsup uploads list --refresh --json`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, con, err := target.openSaved(cmd.Context(), std)
			if err != nil {
				return err
			}
			defer c.close()
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
				err = printUploadsJSON(std.out, saved)
			case len(saved) > 0:
				err = printUploads(std.out, saved, time.Now())
			case len(unusable) == 0:
				con.Message("no saved uploads")
			}
			if err != nil || len(unusable) == 0 {
				return err
			}
			for _, u := range unusable {
				con.Fail(aboutUpload(u.id, withHint(u.err, "")))
			}
			return exit.Printed(exit.Classify(unusable[0].err).Code)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON Lines")
	cmd.Flags().BoolVar(&refresh, "refresh", false, "query the service for what it stores of each upload")
	cmdline.Common(cmd.Flags(), "json", "refresh")
	target.addSaving(cmd.Flags())
	return cmd
}

// refresh replaces the committed offsets of saved uploads by what the service stores. It
// reports the uploads whose state it cannot learn.
func (c *connection) refresh(ctx context.Context, con *screen.Console, saved []upload.SavedUpload) error {
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
			con.Message("%s is shown as it was last saved: %v", s.ID, err)
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

// printUploads prints each upload on three lines: the last two are its source
// and its destination, which can be long. On a terminal they are shortened.
func printUploads(w io.Writer, saved []upload.SavedUpload, now time.Time) error {
	columns, _, terminal := process.Terminal(w)
	shortened := func(text string) string {
		if text = process.Printable(text); terminal {
			text = readable.ShortenPath(text, columns-3)
		}
		return text
	}
	// A tabwriter aligns only adjacent lines, and other lines are between these.
	rows := [][4]string{{"ID", "COMMITTED", "AGE", "EXPIRES IN"}}
	for _, u := range saved {
		rows = append(rows, [4]string{u.ID, readable.CommittedShare(u.Committed, u.Size),
			readable.Span(now.Sub(u.Started)), formatExpiry(u, now)})
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

// formatExpiry formats the time until the session expires, if it does.
func formatExpiry(u upload.SavedUpload, now time.Time) string {
	switch {
	case u.ToRemove:
		return "to be removed"
	case u.Expires.IsZero():
		return "never"
	}
	return readable.Span(u.Expires.Sub(now))
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
		V: 1, Type: "saved_upload", ID: s.ID, Source: s.Source(), Destination: s.Spec.URL(), Endpoint: s.Endpoint,
		Committed: s.Committed, Sent: s.Sent, Size: result.Known(s.Size, s.Size >= 0), Created: s.Started.UTC(), Expires: result.Known(s.Expires.UTC(), !s.Expires.IsZero()), ToRemove: s.ToRemove,
		Spool: s.Spool, Incomplete: s.Incomplete,
	}
}

func printUploadsJSON(w io.Writer, saved []upload.SavedUpload) error {
	for _, s := range saved {
		if err := result.Print(w, newSessionLine(s)); err != nil {
			return err
		}
	}
	return nil
}
