package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// statusFlags choose what status prints.
type statusFlags struct {
	nats               natsFlags
	json, failed, wait bool
}

func newStatus(std stdio) *cobra.Command {
	f := &statusFlags{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the state of the fleet",
		Long: `status prints how much is done, active, waiting and failed, and what each worker does. With
--wait it shows the progress until the queue is empty: on a terminal in one line, otherwise
in a line every 10 seconds on standard error, and with --json in a line every second on
standard output. The exit code is 0 only if all that was submitted is done: it is 65 if
files failed, and 75 if the queue was lost, if its server has ended, or if it is not known
what was submitted.`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, std) },
	}
	f.nats.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print one line of JSON; with --failed, one for each file; with --wait, also the progress")
	cmd.Flags().BoolVar(&f.failed, "failed", false, "print the files that failed, with their keys for retry and forget, and their reasons")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until the queue is empty, and show the progress")
	return cmd
}

func (f *statusFlags) run(cmd *cobra.Command, std stdio) error {
	ctx := cmd.Context()
	l, err := f.nats.open(ctx, std)
	if f.wait && errors.Is(err, fleet.ErrNoQueue) {
		return fmt.Errorf("%w: %w", fleet.ErrUnknownTotal, err)
	}
	if err != nil {
		return err
	}
	if !f.wait {
		defer l.close()
		return l.explain(f.print(ctx, std.out, l.Queue))
	}
	progress := newProgress(std, f.json)
	defer progress.clear()
	var out bytes.Buffer
	err = f.settle(ctx, &out, l, progress)
	if err != nil && l.abandoned() {
		// The process with the server has ended, perhaps because its work is done.
		l.close()
		if l, err = f.nats.open(ctx, std); err != nil {
			return err
		}
		out.Reset()
		err = f.settle(ctx, &out, l, progress)
	}
	defer l.close()
	progress.clear()
	if _, failed := out.WriteTo(std.out); err == nil {
		err = failed
	}
	return l.explain(err)
}

// settle waits until the queue is empty, and prints what status prints then to out.
func (f *statusFlags) settle(ctx context.Context, out io.Writer, l *link, p *progress) error {
	settled := f.await(ctx, l, p)
	if settled != nil && !errors.Is(settled, fleet.ErrFilesFailed) {
		return settled
	}
	err := f.print(ctx, out, l.Queue)
	if err == nil && settled != nil {
		err = exit.Printed(exit.Data) // the output has the files that failed
	}
	return err
}

func (f *statusFlags) print(ctx context.Context, out io.Writer, q *fleet.Queue) error {
	if f.failed {
		return printFailed(ctx, out, q, f.json)
	}
	return printAll(ctx, out, q, f.json)
}

// errAbandoned means that no process serves the queue any longer.
var errAbandoned = errors.New("files are left, and no process serves the queue: start gcsup-fleet up, or work")

// await waits until the queue is empty, and returns whether it is settled, see
// [fleet.Queue.Settled]. If no process serves the queue any longer, the error is errAbandoned. It retries requests
// that time out, unless the permissions do not allow them.
func (f *statusFlags) await(ctx context.Context, l *link, p *progress) error {
	var next time.Time // when the progress is shown again
	for {
		ask, cancel := context.WithTimeout(ctx, 10*time.Second)
		tasks, err := l.Tasks(ask)
		if err == nil && tasks == 0 {
			// With millions of records, this takes longer than ask permits.
			if err = l.explain(l.Settled(ctx, nil)); !unsettled(err) {
				cancel()
				return err
			}
		}
		gone := l.abandoned()
		if began := time.Now(); err == nil && !gone && !began.Before(next) {
			s, failed := l.Status(ask)
			if failed == nil {
				p.show(s, time.Now())
			} else if failed = l.explain(failed); errors.Is(failed, nats.ErrPermissionViolation) {
				err = failed
			}
			// With millions of tasks, a look takes long: it must not load the servers.
			next = time.Now().Add(max(p.every, 10*time.Since(began)))
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case gone:
			return errAbandoned
		case err != nil && !unsettled(err):
			return err
		}
		sleep(ctx, time.Second)
	}
}

// unsettled reports whether an error means that the queue has tasks, or that NATS has not answered yet.
func unsettled(err error) bool {
	return errors.Is(err, fleet.ErrNotEmpty) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// printAll prints the status of the fleet.
func printAll(ctx context.Context, out io.Writer, q *fleet.Queue, asJSON bool) error {
	s, err := q.Status(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	return printStatus(out, s)
}

// printStatus prints the totals and the workers as tables.
func printStatus(out io.Writer, s *fleet.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, c fleet.Count, note string) {
		fmt.Fprintf(w, "%s\t%d files\t%s\t%s\n", name, c.Files, humanize.IBytes(uint64(c.Bytes)), note)
	}
	existed := fmt.Sprintf("%d of them existed already", s.Skipped)
	if s.Changed > 0 {
		existed += fmt.Sprintf(", %d were not as they were submitted", s.Changed)
	}
	row("done", s.Done, existed)
	row("active", s.Active, "")
	row("waiting", s.Waiting, fmt.Sprintf("%d tasks have been retried", s.Retried))
	fmt.Fprintf(w, "failed\t%d files\t\t\n", s.Failed)
	for _, f := range s.Failures {
		fmt.Fprintf(w, "  %s\t%d files\t\t%s: %s\n", f.Kind, f.Files, process.Printable(f.Example), process.Printable(f.Reason))
	}
	eta, limit := "unknown", "none"
	if s.ETA != nil {
		eta = (time.Duration(*s.ETA) * time.Second).String()
	}
	if s.RateLimit > 0 {
		limit = humanize.IBytes(uint64(s.RateLimit)) + "/s"
	}
	fmt.Fprintf(w, "rate\t%s/s\t\ttime left %s, limit %s\n", humanize.IBytes(uint64(s.Rate)), eta, limit)
	if s.Draining {
		fmt.Fprintf(w, "draining\t\t\tthe workers take no new tasks: see drain --off\n")
	}
	fmt.Fprintf(w, "\nworker\tstate\trate\tupload\n")
	for _, worker := range s.Workers {
		fmt.Fprintf(w, "%s\t%s\t%s/s\t\n", worker.Name, worker.Condition, humanize.IBytes(uint64(worker.Rate)))
		for _, o := range worker.Outages {
			fmt.Fprintf(w, "\twaits\t\tgs://%s fails since %s: %s\n", process.Printable(o.Bucket), o.Since.Format(time.DateTime), process.Printable(o.Reason))
		}
		for _, bucket := range slices.Sorted(maps.Keys(worker.RequestRates)) {
			fmt.Fprintf(w, "\tpaced\t\tall workers together: %.0f requests/s to gs://%s\n", worker.RequestRates[bucket], process.Printable(bucket))
		}
		for _, a := range worker.Active {
			more := ""
			if a.Files > 1 {
				more = fmt.Sprintf(" and %d more", a.Files-1)
			}
			fmt.Fprintf(w, "\t\t%s of %s\t%s%s\n", humanize.IBytes(uint64(a.Committed)), humanize.IBytes(uint64(a.Size)), process.Printable(a.Destination), more)
		}
	}
	return w.Flush()
}

// failedLine is a line of status --failed --json: a dead letter.
type failedLine struct {
	V           int       `json:"v"`
	Type        string    `json:"type"`
	Key         string    `json:"key"` // for retry and forget
	Source      string    `json:"source"`
	Destination string    `json:"destination"`
	Kind        string    `json:"kind"`
	Reason      string    `json:"reason"`
	Failures    int       `json:"failures"`
	Time        time.Time `json:"time"`
}

// printFailed prints each dead letter.
func printFailed(ctx context.Context, out io.Writer, q *fleet.Queue, asJSON bool) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return q.Failed(ctx, func(key string, l fleet.DeadLetter) error {
		line := failedLine{V: 1, Type: "failed", Key: key, Kind: l.Kind, Reason: l.Reason, Failures: l.Failures, Time: l.Time}
		if l.Task != nil && len(l.Task.Files) > 0 {
			f := l.Task.Files[0]
			line.Source, line.Destination = f.Path, "gs://"+l.Task.Settings.Bucket+"/"+f.Object
		}
		if asJSON {
			return enc.Encode(line)
		}
		_, err := fmt.Fprintf(out, "%s  %s: %s (%s, %d failures)\n", key, process.Printable(line.Source), process.Printable(line.Reason), line.Kind, line.Failures)
		return err
	})
}
