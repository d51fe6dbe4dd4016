package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/shell"
	"gcsup/internal/sourcefile"
	"gcsup/session/state"
	"gcsup/upload"
)

func newUploadsShow(std stdio) *cobra.Command {
	var target targetFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a saved upload, and what the service holds of it",
		Long: `show asks the service for the committed offset of an upload. It prints the offset, and
whether the source has changed since the upload started. It changes nothing. An upload
that a process is working on is shown as it was last saved.`,
		Example:           `  gcsup uploads show 5f0c2f7d`,
		Args:              cmdline.Exactly(1, "the ID of one saved upload, as uploads list shows it"),
		ValidArgsFunction: target.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, _, err := target.openSaved(ctx, std)
			if err != nil {
				return err
			}
			defer c.close()
			id, err := completeID(ctx, c.saved, args[0])
			if err != nil {
				return withHint(err, c.endpoint)
			}
			doc, err := c.saved.Load(ctx, id)
			if err != nil {
				return withHint(err, c.endpoint)
			}
			d := details{doc: doc, source: sourceState(doc)}
			err = d.ask(ctx, &target, c)
			if err != nil && !errors.Is(err, state.ErrInUse) {
				return withHint(fmt.Errorf("%s: %w", id, err), c.endpoint)
			}
			if asJSON {
				return result.Print(std.out, d.line())
			}
			return d.print(std.out, resumeCommand(process.Words(), cmd.Flags(), doc.ID), time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	cmdline.Common(cmd.Flags(), "json")
	target.addSaving(cmd.Flags())
	return cmd
}

// The states of the source of a saved upload.
const (
	sourceSame       = "unchanged"
	sourceChanged    = "changed"
	sourceMissing    = "missing"
	sourceUnreadable = "unreadable"
	sourceSpooled    = "spooled"
	sourceIncomplete = "incomplete"
	sourceNamed      = "not a file: only the program that began the upload can resume it"
)

// sourceState compares the source with the file that the upload started with.
func sourceState(doc *state.Upload) string {
	switch {
	case doc.Spool != nil && upload.Describe(doc).Incomplete:
		return sourceIncomplete
	case doc.Spool != nil:
		return sourceSpooled
	case doc.SourceIdentity != "":
		return sourceNamed
	}
	identity, err := sourcefile.StatIdentity(doc.SourcePath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sourceMissing
	case err != nil:
		return sourceUnreadable
	case identity.Size != doc.Source.Size:
		return sourceChanged
	case doc.Source.ModTimeNS == 0: // an import: only the bytes matter
	case sourcefile.Compare(doc.Source, identity) == sourcefile.Different:
		return sourceChanged
	}
	return sourceSame
}

// details is what uploads show prints of an upload.
type details struct {
	doc     *state.Upload
	source  string
	holding upload.Holding
	inUse   error // set if another process works on the upload; the service was then not asked
}

// ask asks the service what it holds. The error wraps [state.ErrInUse] if another
// process is working on the upload.
func (d *details) ask(ctx context.Context, target *targetFlags, c *connection) error {
	if d.doc.Endpoint != c.endpoint {
		return target.endpointMismatch(c, d.doc.Endpoint)
	}
	if err := c.dial(ctx, upload.Options{Observer: c.observe}); err != nil {
		return err
	}
	var err error
	if d.holding, err = c.uploader.Query(ctx, d.doc.ID); err != nil {
		if errors.Is(err, state.ErrInUse) {
			d.inUse = err
		}
		return err
	}
	d.doc, err = c.saved.Load(ctx, d.doc.ID) // another process may have continued it before the query
	return err
}

// print prints the details for people.
func (d *details) print(w io.Writer, resume string, now time.Time) error {
	t, saved := d.doc, upload.Describe(d.doc)
	size := saved.Size
	var service, next string
	switch {
	case d.inUse != nil:
		service, next = "not asked: "+d.inUse.Error(), ""
	case d.holding.State == upload.SessionOpen:
		service = readable.Committed(d.holding.Stored, size) + " are committed"
		if size >= 0 {
			service += fmt.Sprintf(" (%d%%)", readable.CommittedPercent(d.holding.Stored, size))
		}
		next = resume
	case d.holding.State == upload.SessionFinished:
		service, next = "the upload is finished: the object was made", resume+"  (compares the object, then deletes this)"
	default:
		service, next = "the session is gone: nothing is committed", process.Words()+" uploads prune"
	}
	source := d.source
	switch {
	case d.source == sourceChanged && d.holding.State == upload.SessionOpen:
		source += " since the upload started"
		next += "\n\tto upload the changed file, run the command again with --if-source-changed=restart"
	case d.source == sourceSpooled:
		source = "a stream that has ended, in " + saved.Spool
	case d.source == sourceIncomplete && d.inUse != nil:
		source = "a stream that has not ended, in " + saved.Spool
	case d.source != sourceSame && d.holding.State == upload.SessionOpen:
		next = process.Words() + " uploads cancel " + t.ID
		if d.source == sourceIncomplete {
			source = "a stream that did not end, in " + saved.Spool + ": the object cannot be made"
		}
		if d.source == sourceMissing {
			to := "PATH"
			if path := renamed(t); path != "" {
				to = shell.Quote(path)
			}
			next += "\n\tif the source was moved: " + resume + " --source=" + to
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"ID", t.ID},
		{"source", process.Printable(saved.Source())},
		{"", source},
		{"destination", process.Printable(t.Spec.URL())},
		{"endpoint", process.Printable(endpointText(t.Endpoint))},
		{"service", service},
		{"last saved", fmt.Sprintf("%s committed, %s sent", readable.Committed(saved.Committed, size), readable.Bytes(saved.Sent))},
		{"started", fmt.Sprintf("%s (%s ago)", t.Created.Local().Format("2006-01-02 15:04:05"), readable.Span(now.Sub(t.Created)))},
		{"expires in", formatExpiry(saved, now)},
		{"next", next},
	} {
		if row[1] != "" {
			fmt.Fprintf(tw, "%s\t%s\n", row[0], row[1])
		}
	}
	return tw.Flush()
}

// showLine is a saved upload in JSON with what the service holds of it.
type showLine struct {
	sessionLine
	State       *string `json:"state"`             // null if the service was not asked
	Stored      *int64  `json:"service_committed"` // committed bytes; null if there is no open session
	SourceState string  `json:"source_state"`
	InUse       bool    `json:"in_use"`
}

// stateText returns the name of a state in JSON.
func stateText(state upload.SessionState) string {
	if state == upload.SessionCanceled {
		return "canceled"
	}
	return state.String()
}

func (d *details) line() showLine {
	return showLine{
		sessionLine: newSessionLine(upload.Describe(d.doc)), SourceState: d.source, InUse: d.inUse != nil,
		State:  result.Known(stateText(d.holding.State), d.holding.State != upload.SessionUnknown),
		Stored: result.Known(d.holding.Stored, d.holding.State == upload.SessionOpen),
	}
}
