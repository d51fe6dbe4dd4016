package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload"
)

type cpFlags struct {
	place  placeFlags
	send   sendFlags
	output outputFlags

	generation  int64
	noClobber   bool
	contentType string
}

func newCp(std stdio) *cobra.Command {
	f := &cpFlags{}
	cmd := &cobra.Command{
		Use:   "cp SOURCE... gs://BUCKET[/OBJECT]",
		Short: "Upload files, or standard input",
		Long: `cp uploads each SOURCE, a file or "-" for standard input. A destination that is a
bucket, or ends in "/", takes the name of each source.

If the same file was interrupted on its way to the same destination, cp goes on
where the service stands. If the file has changed since, nothing is sent.`,
		Example: `  gcsup cp disk.img gs://my-bucket/disk.img
  gcsup cp *.parquet gs://my-bucket/2026/
  pg_dump db | gcsup cp - gs://my-bucket/db.sql
  gcsup cp --emulator disk.img gs://any-name/    # no account, no network`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, std, args[:len(args)-1], args[len(args)-1])
		},
	}
	fs := cmd.Flags()
	fs.Int64Var(&f.generation, "if-generation-match", 0, "replace only this `GENERATION` of the object; 0: only if there is none")
	fs.BoolVarP(&f.noClobber, "no-clobber", "n", false, "skip a source whose object exists")
	fs.StringVar(&f.contentType, "content-type", "", "the objects' `TYPE` (default: by the name's extension, else application/octet-stream)")
	f.place.add(fs)
	f.send.add(fs)
	f.output.add(fs)
	return cmd
}

func (f *cpFlags) run(cmd *cobra.Command, std stdio, sources []string, destination string) error {
	r := newReporter(std, f.output, cmd.Flags())
	var c *connection
	tasks := make([]task, len(sources))
	for i, source := range sources {
		tasks[i] = task{source: source, destination: destination, skip: f.noClobber}
	}
	jobs, err := plan(sources, destination)
	if err != nil {
		return r.refuse(tasks, err)
	}
	for i, j := range jobs {
		spec := f.spec(j, cmd.Flags().Changed("if-generation-match"))
		tasks[i].destination = spec.URL()
		tasks[i].do = func(ctx context.Context) (*upload.Result, error) {
			if j.source == stdinName {
				return c.uploader.Reader(ctx, std.in, spec)
			}
			if err := checkSource(j.source, spec); err != nil {
				return nil, err
			}
			return c.uploader.File(ctx, j.source, spec)
		}
	}
	if f.noClobber && cmd.Flags().Changed("if-generation-match") {
		return r.refuse(tasks, usagef("--no-clobber and --if-generation-match exclude each other"))
	}
	if cmd.Flags().Changed("if-generation-match") && f.generation < 0 {
		return r.refuse(tasks, usagef("--if-generation-match %d: a generation is not negative", f.generation))
	}
	opts, err := f.send.options()
	if err != nil {
		return r.refuse(tasks, err)
	}
	opts.Observer, opts.Logger = r.observe, f.output.logger(r.console)
	files := slices.ContainsFunc(sources, func(s string) bool { return s != stdinName })
	if c, err = f.place.connect(cmd.Context(), opts, files); err != nil {
		return r.refuse(tasks, err)
	}
	defer c.close()
	return r.run(cmd.Context(), c, tasks)
}

// spec is the object that a job makes.
func (f *cpFlags) spec(j job, generation bool) session.Spec {
	spec := session.Spec{Bucket: j.bucket, Object: j.object, ContentType: f.contentType}
	if spec.ContentType == "" {
		spec.ContentType = contentType(j.source, j.object)
	}
	switch {
	case f.noClobber:
		spec.IfGenerationMatch = new(int64)
	case generation:
		spec.IfGenerationMatch = new(f.generation)
	}
	return spec
}

// checkSource refuses what is no file, and says what to do.
func checkSource(path string, spec session.Spec) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var what string
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = fmt.Sprintf("a directory, and cp does not go into directories; name the files in it, as in %s/*", shellQuote(path))
	case mode&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeDevice) != 0:
		what = fmt.Sprintf("a pipe or a device; upload what it gives as a stream: gcsup cp - %s < %s", shellQuote(spec.URL()), shellQuote(path))
	default:
		what = mode.Type().String()
	}
	return kinded{fmt.Errorf("%s: %w: %s", path, chunk.ErrNotRegular, what), errSource}
}
