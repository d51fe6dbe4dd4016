package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/upload/outbox"
)

func newOutboxStatus(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status DIR",
		Short: "Show the state of an outbox",
		Long: `status shows which process runs the outbox, how many files are not uploaded yet, and
what failed. If no process runs it, status counts all files in DIR, even those that
were uploaded and kept (--then=keep). It makes no request.`,
		Example: `  gcsup outbox status /var/spool/out
  gcsup outbox status /var/spool/out --json`,
		Args: cmdline.Exactly(1, "DIR"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := outbox.ReadStatus(args[0])
			if err != nil {
				return missingOutbox(args[0], err)
			}
			failed, err := outbox.Failed(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return result.Print(std.out, newOutboxLine(s, failed))
			}
			return printOutbox(std.out, s, failed, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	return cmd
}

// outboxLine is the line that outbox status --json prints.
type outboxLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	outbox.Status
	InFailed []failedLine `json:"in_failed,omitempty"`
}

// failedLine is a file in .failed.
type failedLine struct {
	Name     string    `json:"name"` // below .failed
	Size     int64     `json:"size"`
	Kind     string    `json:"kind"`
	Error    string    `json:"error"`
	Attempts int       `json:"attempts"`
	Time     time.Time `json:"time,omitzero"`
}

func newOutboxLine(s outbox.Status, failed []outbox.Failure) outboxLine {
	l := outboxLine{V: 1, Type: "outbox", Status: s}
	for _, f := range failed {
		l.InFailed = append(l.InFailed, failedLine{f.File, f.Size, f.Kind, f.Error, f.Attempts, f.Time})
	}
	return l
}

// maxShown bounds the files that status lists of each kind.
const maxShown = 10

// printOutbox prints a status for people.
func printOutbox(w io.Writer, s outbox.Status, failed []outbox.Failure, now time.Time) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(title, format string, args ...any) {
		fmt.Fprintf(out, "%s\t%s\n", title, fmt.Sprintf(format, args...))
	}
	row("outbox", "%s", process.Printable(s.Dir))
	if s.Destination != "" {
		row("destination", "%s", process.Printable(s.Destination))
	}
	switch p := s.Running; {
	case p == nil:
		row("process", "none: its files are not uploaded until one runs")
	case s.Unsaved:
		row("process", "%s, which cannot save its status: is the disk full?", processText(p, now))
	case s.Time.IsZero():
		row("process", "%s, which has saved no status: it begins, hangs or is suspended", processText(p, now))
	case s.Stale(now):
		row("process", "%s, which hangs or is suspended: its status is %s old", processText(p, now), readable.Span(now.Sub(s.Time)))
	default:
		row("process", "%s", processText(p, now))
	}
	backlog := fmt.Sprintf("%s, %s", readable.Plural(int(s.Backlog.Files), "file", "files"), readable.Bytes(s.Backlog.Bytes))
	if !s.Oldest.IsZero() {
		backlog += ", the oldest for " + readable.Span(max(now.Sub(s.Oldest), 0))
	}
	row("backlog", "%s", backlog)
	if s.Running != nil && !s.Unsaved {
		row("", "%d under way, %d ready, %d not complete yet, %d failed and wait", s.Uploading, s.Ready, s.Settling, s.Waiting)
		row("uploaded", "%s, %s since the start", readable.Plural(int(s.Uploaded.Files), "file", "files"), readable.Bytes(s.Uploaded.Bytes))
		if s.Kept > 0 {
			row("kept", "%s", readable.Plural(s.Kept, "file", "files"))
		}
		if !s.Notified {
			row("scans", "new files are found only by scans; the last ended %s ago", readable.Span(max(now.Sub(s.Scanned), 0)))
		}
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(s.Failures)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, s.Failures[kind]))
	}
	if len(kinds) > 0 {
		row("failures", "%s", process.Printable(strings.Join(kinds, ", ")))
	}
	if len(failed) > 0 {
		row("given up", "%s, %s; to try again: %s", readable.Plural(len(failed), "file", "files"), readable.Bytes(s.Failed.Bytes), retryCommand(s.Dir, ""))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for i, f := range s.Files {
		if i == maxShown {
			fmt.Fprintf(w, "  … and %d more\n", len(s.Files)-i)
			break
		}
		if _, err := fmt.Fprintf(w, "  %s\n", process.Printable(fileText(f))); err != nil {
			return err
		}
	}
	for i, f := range failed {
		if i == maxShown {
			fmt.Fprintf(w, "  … and %d more in .failed\n", len(failed)-i)
			break
		}
		if _, err := fmt.Fprintf(w, "  %s\n", process.Printable(".failed/"+f.File+"  "+f.Error)); err != nil {
			return err
		}
	}
	return nil
}

// processText describes the process that runs an outbox.
func processText(p *outbox.Process, now time.Time) string {
	if p.PID == 0 {
		return "one that is not known"
	}
	return process.Printable(fmt.Sprintf("%d on %s, for %s", p.PID, p.Host, readable.Span(now.Sub(p.Since))))
}

// fileText describes a file that is under way or waits.
func fileText(f outbox.FileStatus) string {
	text := fmt.Sprintf("%s  %s, %s", f.Name, f.State, readable.Bytes(f.Size))
	if f.Committed > 0 {
		text += ", " + readable.Bytes(f.Committed) + " are committed"
	}
	if f.Next > 0 {
		text += ", next attempt in " + readable.Span(f.Next)
	}
	if f.Error != "" {
		text += ": " + f.Error
	}
	return text
}
