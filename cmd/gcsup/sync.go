package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/contenttype"
	"gcsup/internal/objectmeta"
	"gcsup/upload"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// syncCommand is a run of sync. It has the flags of cp that are right for one directory.
type syncCommand struct {
	cp  cpFlags
	std stdio

	delete, deleteExcluded bool
	maxDelete              maxDeleteFlag
}

func newSync(std stdio) *cobra.Command {
	s := &syncCommand{std: std}
	cmd := &cobra.Command{
		Use:   "sync DIR gs://BUCKET[/PREFIX]",
		Short: "Make a prefix equal to a directory",
		Long: `sync uploads the files of DIR, and of the directories below it, that have no object
or a different one: DIR/a becomes PREFIX/a. It compares size and CRC32C.

With --delete it then deletes the objects below PREFIX/ that have no file, each by the
generation that was listed. It deletes nothing if a file was not uploaded or a directory
not read, if DIR has no files, or if --max-delete would be exceeded. In a bucket with
hierarchical namespace it also deletes the folders that these deletions emptied.

If sync is interrupted or killed, run it again.`,
		Example: `  gcsup sync photos gs://my-bucket/photos
  gcsup sync --delete --dry-run photos gs://my-bucket/photos
  gcsup sync --delete --exclude '*.tmp' /srv/data gs://my-bucket/data`,
		SuggestFor:        []string{"mirror", "rsync"},
		Args:              cmdline.Exactly(2, "DIR and gs://BUCKET[/PREFIX]"),
		ValidArgsFunction: s.cp.target.completePaths(s.cp.objects.userProject()),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd, args[0], args[1])
		},
	}
	s.add(cmd.Flags())
	return cmd
}

// add adds the flags. Those of cp have the same texts.
func (s *syncCommand) add(fs *pflag.FlagSet) {
	fs.BoolVar(&s.delete, "delete", false, "delete the objects that have no file, after all files were uploaded")
	fs.BoolVar(&s.deleteExcluded, "delete-excluded", false, "with --delete: also delete the objects of files that are left out")
	fs.Var(&s.maxDelete, "max-delete", "with --delete: delete nothing if more than `N` objects, or N% of them, have no file (default: 50%)")
	cmdline.Common(fs, "delete", "max-delete")
	addOnly(fs, s.cp.sources.tree.Add, append([]string{"follow-symlinks", "ignore-symlinks", "strict"}, cmdline.Selecting...)...)
	addOnly(fs, s.cp.batch.add, "skip-identical", "jobs", "dry-run")
	compare := fs.Lookup("skip-identical")
	s.cp.batch.skipIdentical, compare.DefValue = skipByCRC32C, skipByCRC32C
	s.cp.objects.add(fs)
	fs.BoolVar(&s.cp.noState, "no-state", false, "save nothing: an interrupted upload cannot be resumed")
	fs.BoolVar(&s.cp.restart, "restart", false, "discard the saved upload of each source and start over")
	s.cp.target.addSaving(fs)
	s.cp.send.add(fs)
	s.cp.output.add(fs)
}

// addOnly adds those flags of add that have one of the names.
func addOnly(fs *pflag.FlagSet, add func(*pflag.FlagSet), names ...string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(all)
	for _, name := range names {
		fs.AddFlag(all.Lookup(name))
	}
}

// maxDeleteFlag is --max-delete.
type maxDeleteFlag struct {
	limit mirror.Limit
	set   bool
}

func (m *maxDeleteFlag) Type() string { return "N" }

func (m *maxDeleteFlag) String() string {
	if !m.set {
		return ""
	}
	return m.limit.String()
}

func (m *maxDeleteFlag) Set(text string) (err error) {
	m.limit, err = mirror.ParseLimit(text)
	m.set = err == nil
	return err
}

// check refuses contradictory flags, and returns the library's options.
func (s *syncCommand) check(given *pflag.FlagSet, dir string) (upload.Options, error) {
	compare := given.Lookup("skip-identical")
	switch {
	case s.deleteExcluded && !s.delete:
		return upload.Options{}, exit.Usagef("--delete-excluded needs --delete")
	case s.cp.batch.skipIdentical == skipOff && !cmdline.FromEnvironment(compare) && !cmdline.FromFile(compare):
		return upload.Options{}, exit.Usagef("--skip-identical=off: sync uploads only what differs; to upload all files, run %s cp -r", process.Words())
	case s.maxDelete.set && !s.delete:
		return upload.Options{}, exit.Usagef("--max-delete needs --delete")
	case dir == stdinName:
		return upload.Options{}, exit.Usagef("DIR -: want a directory; to upload standard input, run %s cp -, and for a directory of that name, write ./-", process.Words())
	case strings.HasPrefix(dir, urlPrefix):
		return upload.Options{}, exit.Usagef("DIR %q: want a directory; to download or copy objects, run: gcloud storage rsync", dir)
	}
	if s.cp.batch.skipIdentical == skipOff { // it is there for cp -r
		s.cp.batch.skipIdentical = skipByCRC32C
	}
	return s.cp.check(given, []string{dir})
}

func (s *syncCommand) run(cmd *cobra.Command, dir, destination string) (err error) {
	r := newReporter(s.std, s.cp.output, newCommandLine(cmd.Context(), cmd.Flags()))
	defer func() { err = r.close(err) }()
	whole := []task{{source: dir, destination: destination}}
	opts, err := s.check(cmd.Flags(), dir)
	if err == nil {
		err = r.open()
	}
	if err != nil {
		return r.refuse(whole, err)
	}
	r.warnOfName(destination)
	chosen, err := s.choose(cmd.Context(), r, dir, destination)
	if err != nil {
		return r.refuse(whole, sourceError(err, dir))
	}
	c, err := s.cp.connect(cmd, r, opts)
	if err != nil {
		return r.reportConnectError(cmd.Context(), whole, err)
	}
	defer c.close()
	if opts.RateLimit != nil {
		defer toggleOnSignal(opts.RateLimit, r.console)()
	}
	report := &syncReport{reporter: r, whole: whole[0]}
	if s.delete {
		r.totals.Deletions = &result.Deletions{}
	}
	outcomes := report.files(cmd.Context(), chosen.mirror.Run(cmd.Context(), c.uploader))
	if s.cp.batch.dryRun {
		outcomes = chosen.order.outcomes(outcomes)
	}
	return r.runBatch(cmd.Context(), c, &chosen.selection, nil, report.before(outcomes))
}

// syncSelection is what sync makes equal.
type syncSelection struct {
	selection
	mirror *mirror.Mirror
	order  jobOrder
}

// choose returns the files and the objects.
func (s *syncCommand) choose(ctx context.Context, r *reporter, dir, destination string) (*syncSelection, error) {
	bucket, object, err := parseDestination(destination)
	if err != nil {
		return nil, err
	}
	spec := s.cp.template
	spec.Bucket, spec.Object = bucket, "x"
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	spec.Object = object
	chosen := &syncSelection{selection: selection{trees: true, args: []string{dir}, bucket: bucket, close: func() {}}}
	batch := s.cp.batch.jobs.options()
	batch.Skip, batch.DryRun, batch.PreservePOSIX = s.cp.batch.skip(), s.cp.batch.dryRun, s.cp.objects.preservePOSIX
	opts := &mirror.Options{
		Batch: batch, Delete: s.delete, DeleteExcluded: s.deleteExcluded, MaxDelete: s.maxDelete.limit, Strict: s.cp.sources.tree.Strict, Reserved: s.reserved(bucket),
		Deleting: func(n int64) {
			r.console.Message("deleting %s without a file", readable.Plural(int(n), "object", "objects"))
		},
		FoldersLeft: func(left mirror.FoldersLeft) { r.console.Warning("warning: %s", foldersText(bucket, left)) },
		Prepare: func(job *upload.Job) {
			job.Spec.DefaultContentType = contenttype.Of(job.Path)
			job.Spec.Gzip = s.cp.objects.gzip.compresses(job.Path, job.Spec.Object)
			if s.cp.batch.dryRun && !leftOut(job.Err) {
				chosen.order.add(*job)
			}
		},
	}
	err = unlessDone(ctx, func() (err error) { // patterns can come from a FIFO or a terminal, and DIR can be on a file server
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = exit.Usagef("%s is not a directory; to upload a file, run %s cp", dir, process.Words())
		}
		if err == nil {
			opts.Tree, err = s.treeOptions(r, chosen)
		}
		if err == nil {
			chosen.mirror, err = mirror.New(dir, spec, opts)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	chosen.prefix, chosen.sizes = chosen.mirror.Prefix(), chosen.mirror.Sizes(ctx)
	return chosen, nil
}

// treeOptions returns the options of the flags that choose files.
func (s *syncCommand) treeOptions(r *reporter, chosen *syncSelection) (tree.Options, error) {
	paths := s.cp.sources.paths()
	return paths.Options(&chosen.notes, func() (io.Reader, error) {
		announceTyping(r.console, s.std.in, paths.FromStdin())
		return newInterruptible(s.std.in), checkStdin(s.std.in)
	})
}

// reserved returns the prefix of the saved uploads of --state, if they are in the bucket.
func (s *syncCommand) reserved(bucket string) []string {
	of, prefix, ok := objectmeta.SplitURL(s.cp.target.state.url)
	if !ok || of != bucket || strings.Trim(prefix, "/") == "" {
		return nil // those at the top of a bucket are known by their names
	}
	return []string{strings.Trim(prefix, "/") + "/"}
}
