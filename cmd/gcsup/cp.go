package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/chunk"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/command"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/shell"
	"gcsup/internal/contenttype"
	"gcsup/session"
	"gcsup/upload"
)

type cpFlags struct {
	target  targetFlags
	sources sourceFlags
	batch   batchFlags
	send    sendFlags
	output  outputFlags

	objects objectFlags
	spool   spoolFlags

	generation int64
	noState    bool
	restart    bool
	remove     removeFlag
	own        ownPaths     // not removed by --remove-source; set by check
	template   session.Spec // of all objects; set by check
}

func newCp(std stdio) *cobra.Command {
	f := &cpFlags{}
	cmd := &cobra.Command{
		Use:   "cp [-r] SOURCE... gs://BUCKET[/OBJECT]",
		Short: "Upload files, directories, or standard input",
		Long: `cp uploads each SOURCE: a file, a directory with -r, or "-" for standard input. With
-- COMMAND it uploads the output of COMMAND, but only if COMMAND exits with 0. If the
destination is a bucket or ends in "/", each object gets the name of its source.
With -r, the files in DIR become PREFIX/DIR/..., those in DIR/. become PREFIX/...,
and a file whose object is identical is skipped.

If an earlier upload of the same file to the same destination was interrupted,
cp resumes it. If the file has changed, cp sends nothing and exits with 65, or starts
over with --if-source-changed=restart.`,
		Example: `  gcsup cp disk.img gs://my-bucket/disk.img
  gcsup cp *.parquet gs://my-bucket/2026/
  gcsup cp -r photos gs://my-bucket/backup/
  find . -name '*.csv' -print0 | gcsup cp -0 -I gs://my-bucket/
  gcsup cp gs://my-bucket/db.sql -- pg_dump db
  gcsup cp --emulator disk.img gs://any-name/    # no account, no network`,
		SuggestFor:        []string{"copy", "upload", "put"},
		Args:              cmdline.AtLeast(1, "at least one SOURCE and then gs://BUCKET[/OBJECT]"),
		ValidArgsFunction: f.target.completePaths(f.objects.userProject()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if destination, words, ok := splitCommand(args, cmd.ArgsLenAtDash()); ok {
				return f.run(cmd, std, []string{stdinName}, destination, words)
			}
			return f.run(cmd, std, args[:len(args)-1], args[len(args)-1], nil)
		},
	}
	fs := cmd.Flags()
	f.sources.add(fs)
	f.batch.add(fs)
	fs.Int64Var(&f.generation, "if-generation-match", 0, "replace only this `GENERATION` of the object; 0: only create a new object")
	f.objects.add(fs)
	fs.BoolVar(&f.noState, "no-state", false, "save nothing: an interrupted upload cannot be resumed")
	fs.BoolVar(&f.restart, "restart", false, "discard the saved upload of each source and start over")
	f.remove.add(fs)
	f.spool.add(fs)
	f.target.addSaving(fs)
	f.send.add(fs)
	f.output.add(fs)
	return cmd
}

// run uploads the sources, or the output of the command words if there are any. The source is then "-".
func (f *cpFlags) run(cmd *cobra.Command, std stdio, sources []string, destination string, words []string) (err error) {
	stream := len(sources) == 1 && sources[0] == stdinName
	if stream && words == nil || f.sources.listFromStdin() {
		f.output.progress = f.output.progress.whileTyping(std.in)
	}
	r := newReporter(std, f.output, newCommandLine(cmd.Context(), cmd.Flags()))
	defer func() { err = r.close(err) }()
	refused := make([]task, len(sources))
	for i, source := range sources {
		refused[i] = task{source: source, destination: destination}
	}
	if words != nil {
		refused[0].source = words[0]
	}
	opts, err := f.check(cmd.Flags(), sources)
	if err != nil {
		return r.refuse(refused, err)
	}
	if err := r.open(); err != nil {
		return r.refuse(refused, err)
	}
	r.warnOfName(destination)
	if stream {
		return f.runStream(cmd, std, r, opts, refused[0], words)
	}
	announce := func(what string) { announceTyping(r.console, std.in, what) }
	chosen, err := f.sources.choose(cmd.Context(), std, announce, sources, destination, f.template, f.batch.sorted)
	if err != nil {
		return r.refuse(refused, err)
	}
	defer chosen.close()
	chosen.jobs = withGzip(chosen.jobs, f.objects.gzip)
	return f.runFiles(cmd, r, opts, chosen)
}

// runStream uploads standard input, or the output of the command words.
func (f *cpFlags) runStream(cmd *cobra.Command, std stdio, r *reporter, opts upload.Options, t task, words []string) error {
	bucket, object, err := parseDestination(t.destination)
	if err == nil && (object == "" || strings.HasSuffix(object, "/")) {
		err = exit.Usagef("a stream has no name; name the object: %s/NAME", strings.TrimSuffix(t.destination, "/"))
	}
	if err != nil {
		return r.refuse([]task{t}, err)
	}
	spec := f.template
	spec.Bucket, spec.Object, spec.DefaultContentType = bucket, object, contenttype.Of(object)
	spec.Gzip = f.objects.gzip.compresses(stdinName, object)
	if f.batch.noClobber {
		spec.IfGenerationMatch, spec.NoClobber, t.skip = new(int64), true, true
	}
	if err := spec.Validate(); err != nil {
		return r.refuse([]task{t}, err)
	}
	// Check the source first: a mistake must not require credentials or a bucket.
	var program *command.Command
	if words == nil {
		t.err = checkStdin(std.in)
	} else {
		program, t.err = r.newCommand(std, words)
	}
	if t.err != nil {
		return r.run(cmd.Context(), &connection{}, []task{t})
	}
	opts.Spool = f.spool.spool()
	c, err := f.connect(cmd, r, opts)
	if err != nil {
		return r.reportConnectError(cmd.Context(), []task{t}, err)
	}
	defer c.close()
	defer f.target.rememberRates(c, r, opts.RequestRates)()
	if words == nil {
		announceTyping(r.console, std.in, "the content of the object")
		announcePipe(r.console, std, t.destination)
	}
	name := ""
	if words != nil && opts.Spool != nil && !c.saved.shared {
		r.use(c)
		name = f.target.commandName(r, words)
		r.explain.announceEarlierStream(cmd.Context(), name, t.destination)
	}
	t.do = func(ctx context.Context) (*upload.Result, error) {
		if words != nil {
			return uploadOutput(ctx, c.uploader, program, name, spec)
		}
		return c.uploader.Reader(ctx, newInterruptible(std.in), spec)
	}
	return r.run(cmd.Context(), c, []task{t})
}

// runFiles uploads the files that were chosen.
func (f *cpFlags) runFiles(cmd *cobra.Command, r *reporter, opts upload.Options, chosen *selection) error {
	// Check the sources first: a typo must not require credentials or a bucket.
	if len(chosen.named) > 0 && allFailed(chosen.named) {
		c := &connection{}
		if !f.noState {
			c.saved = f.target.lazyStore(c) // for hints
			defer c.close()
		}
		return r.run(cmd.Context(), c, chosen.named)
	}
	c, err := f.connect(cmd, r, opts)
	if err != nil {
		return r.reportConnectError(cmd.Context(), chosen.named, err)
	}
	defer c.close()
	defer f.target.rememberRates(c, r, opts.RequestRates)()
	if chosen.shard.Count > 1 {
		opts.RequestRates.Share(chosen.shard.Index, chosen.shard.Count)
	}
	ctx, jobs := cmd.Context(), chosen.jobs
	r.use(c)
	if !f.restart && !f.batch.dryRun {
		saved := r.explain.savedUploads(ctx)
		r.explain.announceMoved(saved, chosen.named)
		if chosen.single() {
			r.explain.announceEarlierFile(ctx, saved, chosen.named[0])
		}
	}
	var progress *batchManifest
	if f.batch.manifest != "" {
		check := f.batch.manifestCheck && f.batch.recorded(chosen.shard)
		if progress, err = openManifest(f.batch.manifestFile(chosen.shard), c.endpoint); err != nil {
			return r.refuse(chosen.named, err)
		}
		if check {
			listing := upload.Listing{Bucket: chosen.bucket, Prefix: chosen.prefix, UserProject: f.template.UserProject}
			jobs = progress.lookedUp(ctx, c.uploader, listing, jobs)
		}
		jobs = progress.unfinished(ctx, jobs)
	}
	if opts.RateLimit != nil {
		defer toggleOnSignal(opts.RateLimit, r.console)()
	}
	jobs = chosen.handed.count(ctx, jobs)
	var order jobOrder
	if f.batch.dryRun {
		jobs = order.jobs(jobs)
	}
	up, err := f.remove.uploader(c.uploader, f.own)
	if err != nil {
		return r.refuse(chosen.named, err)
	}
	outcomes := up.Files(ctx, jobs, f.batchOptions(chosen))
	if f.batch.dryRun {
		outcomes = order.outcomes(outcomes)
	}
	return r.runBatch(ctx, c, chosen, progress, outcomes)
}

// connect finds the endpoint and the credentials.
func (f *cpFlags) connect(cmd *cobra.Command, r *reporter, opts upload.Options) (*connection, error) {
	opts.Observer, opts.Logger = r.observe, r.logger()
	c, err := f.target.open(cmd.Context(), !f.noState)
	if err != nil {
		return nil, err
	}
	c.warn, c.policy, c.retryFor = r.warn, opts.Policy, opts.RetryFor
	err = checkKeyTarget(f.template.EncryptionKey, c)
	if err == nil {
		err = c.dial(cmd.Context(), opts)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// check refuses contradictory flags and returns the library's options. It sets
// f.template.
func (f *cpFlags) check(given *pflag.FlagSet, sources []string) (upload.Options, error) {
	stream := len(sources) == 1 && sources[0] == stdinName
	if i := slices.IndexFunc(sources, func(s string) bool { return strings.HasPrefix(s, urlPrefix) }); i >= 0 {
		return upload.Options{}, exit.Usagef("source %q: only files and directories are uploaded; to download or copy objects, run: gcloud storage cp", sources[i])
	}
	switch {
	case f.noState && f.target.emulator.on && f.target.emulator.dir == "":
		return upload.Options{}, exit.Usagef("--no-state: the emulator keeps its objects in the state directory; name another directory with --emulator=DIR")
	case f.send.parallelBy == "multipart" && (f.batch.noClobber || given.Changed("if-generation-match")):
		return upload.Options{}, exit.Usagef("--parallel-by=multipart: a multipart upload has no precondition such as --no-clobber or --if-generation-match; use --parallel-by=compose")
	case f.batch.dryRun && f.output.report == stdoutName:
		return upload.Options{}, exit.Usagef("--report=- and --dry-run both write to standard output: give --report a file")
	case stream && bool(f.remove):
		return upload.Options{}, exit.Usagef("--remove-source: a stream is no file that can be removed")
	case f.generation < 0:
		return upload.Options{}, exit.Usagef("--if-generation-match %d: a generation is not negative", f.generation)
	}
	if f.remove {
		f.sources.removed = true
		if f.own = f.target.ownPaths(given); f.batch.manifest != "" {
			shard, err := f.sources.parseShard()
			if err != nil {
				return upload.Options{}, err
			}
			manifest := f.batch.manifestFile(shard)
			f.own = f.own.with("--manifest", manifest, false).with("the lock of --manifest", manifest+".lock", false)
		}
		if err := f.own.checkSources(sources); err != nil {
			return upload.Options{}, err
		}
	}
	f.sources.tree.Private = f.target.private(sources)
	if err := f.sources.check(sources); err != nil {
		return upload.Options{}, err
	}
	if err := f.spool.check(given, stream); err != nil {
		return upload.Options{}, err
	}
	if err := f.batch.check(stream); err != nil {
		return upload.Options{}, err
	}
	if stream {
		if err := checkStream(given); err != nil {
			return upload.Options{}, err
		}
	}
	if _, err := f.target.check(); err != nil {
		return upload.Options{}, err
	}
	opts, err := f.send.options()
	if err == nil {
		f.template, err = f.objects.spec(stream)
	}
	if given.Changed("if-generation-match") {
		f.template.IfGenerationMatch = new(f.generation)
	}
	if f.skipsByDefault() {
		f.batch.skipIdentical, f.batch.skipIfListed = skipByCRC32C, true
	}
	opts.Restart, opts.DetectContentType = f.restart, http.DetectContentType
	return opts, err
}

// skipsByDefault reports whether identical files are skipped although no flag says so. With attributes or
// a precondition, the user may want a new object with the same bytes. A manifest skips without a listing.
func (f *cpFlags) skipsByDefault() bool {
	compared := session.Spec{EncryptionKey: f.template.EncryptionKey, UserProject: f.template.UserProject}
	return f.sources.recursive && f.batch.skipIdentical == "" && !f.batch.noClobber && f.batch.manifest == "" && !f.restart &&
		!f.objects.preservePOSIX && reflect.DeepEqual(f.template, compared)
}

// batchOptions returns the library's options for the files that were chosen.
func (f *cpFlags) batchOptions(chosen *selection) *upload.BatchOptions {
	o := f.batch.options(chosen)
	o.PreservePOSIX = f.objects.preservePOSIX
	if o.Listing != nil {
		o.Listing.UserProject = f.template.UserProject
	}
	return o
}

// checkStdin refuses a closed standard input. Reading it returns no bytes, and
// the upload would create an empty object.
func checkStdin(in io.Reader) error {
	if f, ok := in.(*os.File); ok && closedAtStart(f) {
		return exit.WithKind(errors.New("standard input is closed: redirect it with < FILE, or with < "+os.DevNull+" for an empty object"), exit.ErrSource)
	}
	return nil
}

// unlessDone calls f and returns its error. If ctx ends first, it returns the cause
// of ctx: a file server that does not respond can block f indefinitely.
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
	case mode.IsRegular() && info.Size() > 0:
		// chunk.Open reads, which would change the access time that
		// --preserve-posix writes.
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
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
		what = "it is a directory; to upload the files in it, add -r"
	case mode&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeDevice) != 0:
		what = "it is a pipe or a device; " + streamHint(path, spec)
	default:
		what = mode.Type().String()
	}
	return exit.WithKind(fmt.Errorf("%s: %w: %s", path, chunk.ErrNotRegular, what), exit.ErrSource)
}

// streamHint returns the command that uploads a source as a stream.
func streamHint(path string, spec session.Spec) string {
	return fmt.Sprintf("upload its content as a stream: %s cp - %s < %s", process.Words(), shell.Quote(spec.URL()), shell.Quote(path))
}
