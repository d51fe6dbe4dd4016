package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload"
)

type cpFlags struct {
	target targetFlags
	send   sendFlags
	output outputFlags

	generation  int64
	noClobber   bool
	noState     bool
	contentType string
	restart     bool
}

func newCp(std stdio) *cobra.Command {
	f := &cpFlags{}
	cmd := &cobra.Command{
		Use:   "cp SOURCE... gs://BUCKET[/OBJECT]",
		Short: "Upload files, or standard input",
		Long: `cp uploads each SOURCE, a file or "-" for standard input. If the destination is a
bucket or ends in "/", each object gets the name of its source.

If an earlier upload of the same file to the same destination was interrupted,
cp resumes it at the committed offset. If the file has changed, cp sends nothing.`,
		Example: `  gcsup cp disk.img gs://my-bucket/disk.img
  gcsup cp *.parquet gs://my-bucket/2026/
  pg_dump db | gcsup cp - gs://my-bucket/db.sql
  gcsup cp --emulator disk.img gs://any-name/    # no account, no network`,
		SuggestFor: []string{"copy", "upload", "put"},
		Args:       atLeast(2, "at least one SOURCE and then gs://BUCKET[/OBJECT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, std, args[:len(args)-1], args[len(args)-1])
		},
	}
	fs := cmd.Flags()
	fs.Int64Var(&f.generation, "if-generation-match", 0, "replace only this `GENERATION` of the object; 0: only create a new object")
	fs.BoolVarP(&f.noClobber, "no-clobber", "n", false, "skip a source whose object exists")
	fs.StringVar(&f.contentType, "content-type", "", "content `TYPE` of the objects (default: by the name's extension, else application/octet-stream)")
	fs.BoolVar(&f.noState, "no-state", false, "save nothing: an interrupted upload cannot be resumed")
	fs.BoolVar(&f.restart, "restart", false, "discard the saved upload of each source and start over")
	f.target.add(fs)
	f.send.add(fs)
	f.output.add(fs)
	return cmd
}

func (f *cpFlags) run(cmd *cobra.Command, std stdio, sources []string, destination string) error {
	r := newReporter(std, f.output, cmd.Flags())
	defer r.flush()
	tasks := make([]task, len(sources))
	for i, source := range sources {
		tasks[i] = task{source: source, destination: destination, skip: f.noClobber}
	}
	jobs, err := plan(sources, destination)
	if err != nil {
		return r.refuse(tasks, err)
	}
	specs := make([]session.Spec, len(jobs))
	for i, j := range jobs {
		specs[i] = f.spec(j, cmd.Flags().Changed("if-generation-match"))
		tasks[i].destination = specs[i].URL()
	}
	opts, err := f.check(cmd.Flags(), specs)
	if err != nil {
		return r.refuse(tasks, err)
	}

	// Check sources first: a typo must not require credentials or a bucket.
	var c *connection
	for i, j := range jobs {
		if j.source == stdinName {
			tasks[i].err = checkStdin(std.in)
			tasks[i].do = func(ctx context.Context) (*upload.Result, error) {
				return c.uploader.Reader(ctx, newInterruptible(std.in), specs[i])
			}
			continue
		}
		tasks[i].err = unlessDone(cmd.Context(), func() error { return checkSource(j.source, specs[i]) })
		tasks[i].do = func(ctx context.Context) (*upload.Result, error) {
			return c.uploader.File(ctx, j.source, specs[i])
		}
	}
	if allFailed(tasks) {
		return r.run(cmd.Context(), &connection{}, tasks)
	}
	opts.Observer, opts.Logger = r.observe, f.output.logger(r.console)
	if c, err = f.target.open(cmd.Context(), !f.noState); err != nil {
		return r.reportConnectError(cmd.Context(), tasks, err)
	}
	defer c.close()
	if err := c.dial(cmd.Context(), opts); err != nil {
		return r.reportConnectError(cmd.Context(), tasks, err)
	}
	return r.run(cmd.Context(), c, tasks)
}

// check refuses contradictory flags and returns the options for the others.
func (f *cpFlags) check(given *pflag.FlagSet, specs []session.Spec) (upload.Options, error) {
	switch {
	case f.noClobber && given.Changed("if-generation-match"):
		return upload.Options{}, usagef("--no-clobber and --if-generation-match exclude each other")
	case f.noState && given.Changed("state-dir"):
		return upload.Options{}, usagef("--no-state and --state-dir exclude each other")
	case f.noState && f.target.emulator.on && f.target.emulator.dir == "":
		return upload.Options{}, usagef("--no-state: the emulator keeps its objects in the state directory; name another directory with --emulator=DIR")
	case f.generation < 0:
		return upload.Options{}, usagef("--if-generation-match %d: a generation is not negative", f.generation)
	}
	for _, spec := range specs {
		if err := spec.Validate(); err != nil {
			return upload.Options{}, err
		}
	}
	if _, err := f.target.check(); err != nil {
		return upload.Options{}, err
	}
	opts, err := f.send.options()
	opts.Restart = f.restart
	return opts, err
}

// spec returns the Spec of the object that j makes. generation reports whether
// --if-generation-match was given.
func (f *cpFlags) spec(j job, generation bool) session.Spec {
	spec := session.Spec{
		Bucket: j.bucket, Object: j.object,
		ContentType: f.contentType, DefaultContentType: contentType(j.source, j.object),
	}
	switch {
	case f.noClobber:
		spec.IfGenerationMatch, spec.NoClobber = new(int64), true
	case generation:
		spec.IfGenerationMatch = new(f.generation)
	}
	return spec
}

// checkStdin refuses a closed standard input. Reading it returns no bytes, and
// the upload would create an empty object.
func checkStdin(in io.Reader) error {
	if f, ok := in.(*os.File); ok && closedAtStart(f) {
		return kindError{errors.New("standard input is closed: redirect it with < FILE, or with < " + os.DevNull + " for an empty object"), errSource}
	}
	return nil
}

// unlessDone calls f and returns its error, or why ctx is done: a file server that
// is away can block f for good.
func unlessDone(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// checkSource refuses a source that is not a regular file or cannot be read. The
// error explains what to do.
func checkSource(path string, spec session.Spec) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var what string
	switch mode := info.Mode(); {
	case mode.IsRegular():
		src, err := chunk.Open(path)
		if err == nil {
			return src.Close()
		}
		if !errors.Is(err, chunk.ErrNotRegular) {
			return err
		}
		what = "it has more content than its size; " + streamHint(path, spec)
	case mode.IsDir():
		what = fmt.Sprintf("it is a directory, which cp does not walk; name its files, as in %s/*", shellQuote(strings.TrimSuffix(path, "/")))
	case mode&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeDevice) != 0:
		what = "it is a pipe or a device; " + streamHint(path, spec)
	default:
		what = mode.Type().String()
	}
	return kindError{fmt.Errorf("%s: %w: %s", path, chunk.ErrNotRegular, what), errSource}
}

// streamHint returns the command that uploads a source as a stream.
func streamHint(path string, spec session.Spec) string {
	return fmt.Sprintf("upload its content as a stream: %s cp - %s < %s", program(), shellQuote(spec.URL()), shellQuote(path))
}
