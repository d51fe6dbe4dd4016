package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/checksum"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	target      targetFlags
	sources     sourceFlags
	extra       bool
	manifest    string
	jobs        jobsFlag
	json, quiet bool
	progress    progressMode
	key         keyFlags
	userProject string
}

func (f *verifyFlags) add(fs *pflag.FlagSet) {
	f.sources.add(fs)
	fs.BoolVar(&f.extra, "extra", false, "with -r and one directory, or --manifest: also report the objects that have no file or no record")
	fs.StringVar(&f.manifest, "manifest", "", "compare what `FILE` of cp --manifest records, instead of files")
	fs.Var(&f.jobs, "jobs", "compare `N` files at a time, or auto")
	fs.BoolVar(&f.json, "json", false, "print JSON Lines to standard output, one for each file")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print differences and errors only")
	cmdline.Common(fs, "extra", "manifest", "json", "quiet")
	f.progress.add(fs)
	fs.StringVar(&f.userProject, "user-project", "", "bill this `PROJECT` if the requester pays for the bucket")
	f.key.add(fs, "compare objects that are encrypted with the key")
	f.target.addReading(fs)
}

// check checks the flags and the sources.
func (f *verifyFlags) check(sources []string) error {
	switch {
	case len(sources) == 0 && !f.sources.list():
		return exit.Usagef("verify: want at least one SOURCE and then gs://BUCKET[/OBJECT], or --files-from or -I instead of the SOURCE")
	case len(sources) == 1 && sources[0] == stdinName:
		return exit.Usagef("verify: standard input cannot be compared; write it to a file")
	}
	if err := f.sources.check(sources); err != nil {
		return err
	}
	if err := f.checkExtra(sources); err != nil {
		return err
	}
	_, err := f.target.check()
	return err
}

// verifier compares files with their objects.
type verifier struct {
	flags     verifyFlags
	given     *pflag.FlagSet
	std       stdio
	console   *screen.Console
	out       io.Writer // standard output
	view      view
	progress  *verifyProgress
	c         *connection
	encrypted bool // a key was given
	totals    *result.Comparisons
}

func newVerify(std stdio) *cobra.Command {
	v := &verifier{std: std, totals: result.NewComparisons()}
	cmd := &cobra.Command{
		Use:   "verify [-r] SOURCE... gs://BUCKET[/OBJECT] | --manifest FILE",
		Short: "Compare files with their objects, without an upload",
		Long: `verify compares the size and the CRC32C of each SOURCE with those of its object. The
objects are those that cp with the same arguments uploads to. Nothing is uploaded
or changed. Objects without a file are ignored, unless --extra is given. If
cp --gzip made the object, the file is compressed for the comparison.

With --manifest, verify lists the buckets that FILE of cp --manifest records, and
compares size and checksum of each object with the record. No file is read.

Exit codes: 0 all are the same; 65 at least one differs, is missing, or has no file.`,
		Example: `  gcsup verify disk.img gs://my-bucket/disk.img
  gcsup verify -r photos gs://my-bucket/backup/
  gcsup verify --manifest run.jsonl`,
		SuggestFor:        []string{"check", "compare", "diff"},
		Args:              v.flags.args,
		ValidArgsFunction: v.flags.target.completePaths(&v.flags.userProject),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.given = cmd.Flags()
			if cmdline.OnCommandLine(v.given.Lookup("manifest")) { // otherwise it is that of cp
				return v.runManifest(cmd.Context())
			}
			return v.run(cmd.Context(), args[:len(args)-1], args[len(args)-1])
		},
	}
	v.flags.add(cmd.Flags())
	return cmd
}

// begin opens the output.
func (v *verifier) begin() {
	v.console, v.out = screen.NewConsole(v.std.err, v.flags.quiet), v.std.out
	if screen.SameTerminal(v.std.out, v.std.err) {
		v.out = v.console // results appear above the frame
	}
}

func (v *verifier) run(ctx context.Context, sources []string, destination string) error {
	v.begin()
	if err := v.flags.check(sources); err != nil {
		return err
	}
	v.flags.sources.tree.Private = v.flags.target.private(sources)
	if v.flags.sources.listFromStdin() {
		v.flags.progress = v.flags.progress.whileTyping(v.std.in)
	}
	v.view = v.flags.progress.view(v.std, v.flags.quiet, false)
	key, err := v.flags.key.read()
	if err != nil {
		return err
	}
	v.encrypted = !key.IsZero()
	spec := session.Spec{UserProject: v.flags.userProject, EncryptionKey: key}
	chosen, m, err := v.choose(ctx, sources, destination, spec)
	if err != nil {
		return err
	}
	defer chosen.close()
	files := -1
	if !chosen.trees {
		files = len(chosen.named)
	}
	v.view.results = v.view.results || chosen.single() && !v.flags.quiet
	v.progress = newVerifyProgress(screen.NewDisplay(screen.Run{Work: screen.Comparing, Files: files}))
	// Check the sources first: a typo must not require credentials or a bucket.
	if len(chosen.named) > 0 && allFailed(chosen.named) {
		for _, t := range chosen.named {
			if err := v.report(t, nil, t.err); err != nil {
				return err
			}
		}
		return exit.Printed(v.totals.Code)
	}
	if v.c, err = v.flags.target.open(ctx, false); err != nil {
		return err
	}
	defer v.c.close()
	if err := checkKeyTarget(key, v.c); err != nil {
		return err
	}
	if err := v.c.dial(ctx, upload.Options{Observer: v.progress.observe}); err != nil {
		return withHint(err, v.c.endpoint)
	}
	return v.compare(ctx, chosen, m)
}

// choose returns the files. The mirror is nil without --extra.
func (v *verifier) choose(ctx context.Context, sources []string, destination string, spec session.Spec) (*selection, *mirror.Mirror, error) {
	if v.flags.extra {
		return v.chooseExtra(ctx, sources[0], destination, spec)
	}
	announce := func(what string) { announceTyping(v.console, v.std.in, what) }
	chosen, err := v.flags.sources.choose(ctx, v.std, announce, sources, destination, spec, func(tree.Shard) bool { return true })
	return chosen, nil, err
}

// compare compares all files, and the objects of m if it is not nil.
func (v *verifier) compare(ctx context.Context, chosen *selection, m *mirror.Mirror) error {
	opts := v.flags.jobs.options()
	opts.Sizes = chosen.sizes
	if !chosen.single() {
		opts.Listing = &upload.Listing{Bucket: chosen.bucket, Prefix: chosen.prefix, UserProject: v.flags.userProject}
	}
	stop := v.showProgress(ctx, chosen)
	defer stop()
	results := v.c.uploader.Compare(ctx, chosen.jobs, &opts)
	if m != nil {
		results = v.withExtra(ctx, m)
	}
	for res, err := range results {
		if res == nil { // of the listing
			stop()
			return withHint(err, v.c.endpoint)
		}
		if err == nil {
			err = v.difference(res)
		}
		err = ofComparison(ctx, err)
		t := task{source: res.Path, destination: res.Spec.URL(), entry: chosen.notes.Skip(res.Path, err)}
		if err := v.report(t, res, err); err != nil {
			return err
		}
	}
	stop()
	if ctx.Err() != nil {
		v.console.Message("%s; the rest was not compared", v.totals.Text())
		return context.Cause(ctx)
	}
	for _, text := range chosen.notes.Warnings() {
		v.console.Message("warning: %s", text)
	}
	if v.totals.None() {
		v.console.Message("%s", chosen.noFiles(v.given))
	} else {
		v.console.Message("%s", v.totals.Text())
	}
	if v.totals.Code != exit.OK {
		return exit.Printed(v.totals.Code)
	}
	return nil
}

// ofComparison returns the error of a file. That of an interruption describes an upload.
func ofComparison(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*upload.InterruptedError](err); ok && ctx.Err() != nil {
		return fmt.Errorf("not compared: %w", context.Cause(ctx))
	}
	return err
}

// showProgress shows the progress until stop is called.
func (v *verifier) showProgress(ctx context.Context, chosen *selection) (stop func()) {
	if v.view.progress == progressOff {
		return func() {}
	}
	end, stopped := v.view.start(v.console, v.progress.display)
	if chosen.sizes != nil {
		go countFiles(ctx, chosen, v.progress.display, stopped)
	}
	interrupted := context.AfterFunc(ctx, v.console.EndFrames)
	return sync.OnceFunc(func() {
		interrupted()
		end()
	})
}

// difference returns an error that describes how an object differs from its file, or nil.
func (v *verifier) difference(res *upload.Result) error {
	var text string
	destination, o := res.Spec.URL(), res.Object
	switch d := res.Difference; {
	case d == upload.ObjectEqual:
		return nil
	case d == upload.ObjectMissing:
		text = "there is no " + destination
	case d == upload.SizeDiffers && o.Gzip:
		text = fmt.Sprintf("%s is compressed from %d bytes, the file has %d", destination, o.UncompressedSize, res.Size)
	case d == upload.SizeDiffers:
		text = fmt.Sprintf("%s has %d bytes, the file has %d", destination, o.Size, res.Size)
	case v.encrypted: // an object without the key is not the same
		text = destination + " has the same size, but another CRC32C, or is not encrypted with the key"
	case d == upload.ChecksumMissing:
		text = destination + " has no CRC32C to compare with; if it is encrypted with a customer-supplied key, give that with --encryption-key-file"
	case o.Gzip:
		text = fmt.Sprintf("%s is not what this version of the program compresses the file to (%d bytes, CRC32C %s)", destination, o.Size, checksum.Encode(o.CRC32C))
	default:
		text = fmt.Sprintf("%s has the same size, but another CRC32C (%s)", destination, checksum.Encode(o.CRC32C))
	}
	return exit.WithKind(errors.New(text), exit.ErrDiffers)
}
