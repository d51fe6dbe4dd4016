package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
	"gcsup/upload/manifest"
	"gcsup/upload/tree"
)

// submitFlags choose the files and the attributes of their objects. They have the same meaning as
// those of gcsup cp.
type submitFlags struct {
	recursive bool
	tree      cmdline.TreeFlags
	notes     cmdline.Notes // complete when all jobs were read
	manifest  string
	objects   cmdline.ObjectFlags
	state     string
	json      bool

	selection selection // without the digest of the list
	list      *pathList // of --files-from; nil if there is none
}

func (f *submitFlags) add(fs *pflag.FlagSet) {
	fs.BoolVarP(&f.recursive, "recursive", "r", false, "submit the files in directories, and in those below them")
	f.tree.Add(fs)
	fs.StringVar(&f.manifest, "manifest", "", "leave out the files that are finished according to `FILE`, the manifest of a gcsup cp")
	f.objects.Add(fs)
	fs.StringVar(&f.state, "state", "", "record the submission in the bucket of the workers, `gs://BUCKET/PREFIX`, so that work --until-empty notices if the queue was lost (default: that of gcsup-fleet up)")
	fs.BoolVar(&f.json, "json", false, "print the totals as JSON")
	cmdline.Common(fs, "recursive", "state", "json")
}

func newSubmit(std stdio) *cobra.Command {
	f, nats, service := &submitFlags{}, &natsFlags{}, &serviceFlags{}
	cmd := &cobra.Command{
		Use:   "submit [-r] SOURCE... gs://BUCKET[/OBJECT]",
		Short: "Put a tree into the queue",
		Long: `submit puts files into the queue, and uploads nothing. The objects have the names that
gcsup cp with the same arguments gives them. The workers must see each file at
the same path. If the same tree is submitted again, files that are in the queue are not
added, and finished files are left out. If a file in the queue has changed since, the exit
code is 75: submit the tree once more when the queue is empty.`,
		Example: `  gcsup-fleet submit -r /data/. gs://my-bucket/data --nats tls://nats:4222
  find /data -name '*.csv' -print0 |
    gcsup-fleet submit -0 --files-from - gs://my-bucket/`,
		Args: cmdline.AtLeast(1, "at least one SOURCE and then gs://BUCKET[/OBJECT], or --files-from"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			// Check the sources first: a typo must not require credentials or a server.
			s, done, err := f.submission(ctx, args)
			if err != nil {
				return err
			}
			defer done()
			l, err := nats.open(ctx, std)
			if err != nil {
				return err
			}
			defer l.close()
			client, err := service.connect(ctx, l.endpoint)
			if err != nil {
				return err
			}
			defer client.Close()
			if s.Uploader, err = client.Uploader(nil); err != nil {
				return err
			}
			if s.Ledger, err = f.ledger(client, l.state); err != nil {
				return err
			}
			return l.explain(f.submit(ctx, std, l.Queue, s))
		},
	}
	f.add(cmd.Flags())
	nats.add(cmd.Flags())
	nats.addCreation(cmd.Flags())
	service.add(cmd.Flags())
	return cmd
}

// check returns an error for flags that contradict each other or the arguments.
func (f *submitFlags) check(args []string) error {
	switch {
	case f.tree.FilesFrom != "" && (len(args) != 1 || f.recursive):
		return exit.Usagef("--files-from replaces SOURCE and -r: give only the destination")
	case f.tree.FilesFrom == "" && len(args) < 2:
		return exit.Usagef("want at least one SOURCE and then gs://BUCKET[/OBJECT], or --files-from")
	}
	if err := f.tree.Check(f.tree.FilesFrom != ""); err != nil {
		return err
	}
	_, _, err := splitURL("destination", args[len(args)-1])
	return err
}

// submission returns a Submission for the arguments and flags, without its Uploader. The caller must
// call done.
func (f *submitFlags) submission(ctx context.Context, args []string) (s fleet.Submission, done func(), err error) {
	if err := f.check(args); err != nil {
		return s, nil, err
	}
	if s.Settings, err = f.objects.Spec(); err != nil {
		return s, nil, err
	}
	bucket, object, err := splitURL("destination", args[len(args)-1])
	if err != nil {
		return s, nil, err
	}
	named := upload.Spec{Bucket: bucket, Object: cmp.Or(object, "x")}
	if err := named.Validate(); err != nil {
		return s, nil, err
	}
	if f.state != "" {
		if _, _, err := splitURL("--state", f.state); err != nil {
			return s, nil, err
		}
	}
	s.Settings.Bucket = bucket
	s.Listing = upload.Listing{Bucket: bucket, UserProject: s.Settings.UserProject}
	s.Jobs, s.Listing.Prefix, done, err = f.jobs(ctx, args[:len(args)-1], upload.Spec{Bucket: bucket, Object: object})
	return s, done, err
}

// ledger returns the Ledger of --state, or of that of gcsup-fleet up. It is nil if there is neither.
func (f *submitFlags) ledger(client *gcs.Client, ofUp string) (*fleet.Ledger, error) {
	url := cmp.Or(f.state, ofUp)
	if url == "" {
		return nil, nil
	}
	bucket, prefix, err := splitURL("--state", url)
	if err != nil {
		return nil, err
	}
	return fleet.NewLedger(client.HTTP(), client.Endpoint(), bucket, prefix)
}

// submit puts the files into the queue.
func (f *submitFlags) submit(ctx context.Context, std stdio, q *fleet.Queue, s fleet.Submission) error {
	refused := false
	s.Report = func(job upload.Job, err error) {
		if job.Path == "" {
			std.message("warning: each destination is looked up, because the bucket cannot be listed: %v", err)
			return
		}
		text := err.Error()
		if !strings.HasPrefix(text, job.Path+": ") {
			text = job.Path + ": " + text
		}
		std.message("%s", text)
		refused = true
	}
	if f.list != nil {
		digest, err := f.list.read()
		if err != nil {
			return err
		}
		f.selection.List = digest
	}
	var err error
	if s.Name, err = f.selection.name(); err != nil {
		return err
	}
	done, err := fleet.Submit(ctx, q, s)
	for _, text := range f.notes.Warnings() {
		std.message("warning: %s", text)
	}
	if printErr := f.print(std, done); err == nil {
		err = printErr
	}
	if done.Changed > 0 {
		std.message("%d files, or the settings of their objects, differ from those in the queue: submit again when gcsup-fleet status --wait has returned", done.Changed)
	}
	switch {
	case err == nil && refused:
		return exit.Printed(exit.NoInput)
	case err == nil && done.Changed > 0:
		return exit.Printed(exit.Temporary)
	}
	return err
}

// jobs returns the files, sorted by object, and a prefix of the names of all objects.
func (f *submitFlags) jobs(ctx context.Context, sources []string, spec session.Spec) (jobs iter.Seq[upload.Job], prefix string, done func(), err error) {
	done = func() {}
	stdin := func() (io.Reader, error) { return os.Stdin, nil }
	opts, err := f.tree.Options(&f.notes, stdin)
	if err != nil {
		return nil, "", done, err
	}
	opts.Sorted = true
	if dir, err := process.StateDir(); err == nil {
		opts.Private = []string{dir}
	}
	placed, prefix, err := tree.Place(sources, spec, f.recursive)
	if err != nil {
		return nil, "", done, err
	}
	if f.selection, err = newSelection(sources, &f.tree, &opts, f.manifest); err != nil {
		return nil, "", done, err
	}
	if f.tree.FilesFrom != "" {
		in, sep, openErr := f.tree.OpenList(stdin)
		if openErr != nil {
			return nil, "", done, openErr
		}
		f.list = &pathList{in: in, memory: listMemory}
		done = func() { _ = f.list.Close() }
		jobs, err = tree.List(ctx, f.list, sep, spec, &opts)
	} else {
		jobs, err = walk(ctx, placed, spec, &opts)
	}
	if err != nil {
		return nil, "", done, err
	}
	jobs = f.regular(jobs)
	if f.manifest == "" {
		return jobs, prefix, done, nil
	}
	jobs, done, err = f.unfinished(ctx, jobs, done)
	return jobs, prefix, done, err
}

// walk returns the files of the arguments.
func walk(ctx context.Context, placed []tree.Placed, spec session.Spec, opts *tree.Options) (iter.Seq[upload.Job], error) {
	var sources []tree.Source
	for _, p := range placed {
		switch {
		case p.Err != nil && p.IsDir:
			return nil, exit.Usagef("%s is a directory; to submit the files in it, add -r", p.Path)
		case p.Err != nil:
			return nil, exit.WithKind(p.Err, exit.ErrSource)
		}
		sources = append(sources, p.Source)
	}
	spec.Object = "" // the names of the sources are complete
	t, err := tree.New(sources, spec, opts)
	if err != nil {
		return nil, err
	}
	return t.Walk(ctx), nil
}

// regular returns jobs without the entries that are skipped because they are not files.
func (f *submitFlags) regular(jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			if f.notes.Skip(job.Path, job.Err) == "" && !yield(job) {
				return
			}
		}
	}
}

// unfinished returns jobs without those that are finished according to the manifest.
func (f *submitFlags) unfinished(ctx context.Context, jobs iter.Seq[upload.Job], done func()) (iter.Seq[upload.Job], func(), error) {
	if _, err := os.Stat(f.manifest); err != nil {
		return nil, done, exit.WithKind(fmt.Errorf("--manifest: %w", err), exit.ErrSource) // manifest.Open would create it
	}
	m, err := manifest.Open(f.manifest, "") // the workers decide on the endpoint
	if err != nil {
		return nil, done, err
	}
	rest := func(yield func(upload.Job) bool) {
		for job, err := range m.Skip(ctx, jobs) {
			if err != nil {
				job = upload.Job{Path: f.manifest, Err: err}
			}
			if !yield(job) {
				return
			}
		}
	}
	return rest, func() {
		_ = m.Close()
		done()
	}, nil
}

// print prints the totals.
func (f *submitFlags) print(std stdio, s fleet.Submitted) error {
	if f.json {
		return json.NewEncoder(std.out).Encode(struct {
			V        int    `json:"v"`
			Type     string `json:"type"`
			Files    int64  `json:"files"`
			Bytes    int64  `json:"bytes"`
			Queued   int64  `json:"queued_before"`
			Changed  int64  `json:"changed"` // of Queued
			Finished int64  `json:"finished_before"`
			Failed   int64  `json:"failed"`
			Skipped  int    `json:"skipped"` // entries that are not files
		}{1, "submitted", s.Files, s.Bytes, s.Queued, s.Changed, s.Finished, s.Failed, f.notes.Skipped()})
	}
	_, err := fmt.Fprintf(std.out, "submitted %d files, %s; %d in the queue before, %d finished before, %d refused\n",
		s.Files, humanize.IBytes(uint64(s.Bytes)), s.Queued, s.Finished, s.Failed)
	return err
}
