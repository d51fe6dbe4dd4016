package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/chunk"
	"gcsup/internal/cli/exitcode"
	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/usage"
	"gcsup/session"
	"gcsup/session/bucket"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// The statuses of a verifyLine, besides statusFailed.
const (
	statusSame    = "same"
	statusDiffers = "differs"
	statusMissing = "missing"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	target      targetFlags
	sources     sourceFlags
	jobs        int
	json, quiet bool
	progress    progressMode
	key         keyFlags
	userProject string
}

func (f *verifyFlags) add(fs *pflag.FlagSet) {
	f.sources.add(fs)
	fs.IntVar(&f.jobs, "jobs", 0, "compare `N` files at a time (default: 32 of up to 8 MiB, and 4 larger ones)")
	fs.BoolVar(&f.json, "json", false, "print JSON Lines to standard output, one for each file")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print differences and errors only")
	f.progress.add(fs)
	fs.StringVar(&f.userProject, "user-project", "", "bill this `PROJECT` if the requester pays for the bucket")
	f.key.add(fs, "compare objects that are encrypted with the key")
	f.target.add(fs)
}

// check checks the flags and the sources.
func (f *verifyFlags) check(sources []string) error {
	switch {
	case len(sources) == 0 && !f.sources.list():
		return failure.Usagef("verify: want at least one SOURCE and then gs://BUCKET[/OBJECT], or --files-from or -I instead of the SOURCE")
	case len(sources) == 1 && sources[0] == stdinName:
		return failure.Usagef("verify: standard input cannot be compared; write it to a file")
	case f.jobs < 0:
		return failure.Usagef("--jobs %d: want a number that is not negative", f.jobs)
	}
	if err := f.sources.check(sources); err != nil {
		return err
	}
	_, err := f.target.check()
	return err
}

// verifier compares files with their objects.
type verifier struct {
	flags       verifyFlags
	std         stdio
	console     *console
	out         io.Writer // standard output
	view        view
	progress    *verifyProgress
	c           *connection
	asker       *asker
	encrypted   bool // a key was given
	bucketKnown bool // the bucket exists
	listed      listedObjects
	totals      verifyTotals
}

func newVerify(std stdio) *cobra.Command {
	v := &verifier{std: std, totals: verifyTotals{counts: map[string]int{}}}
	cmd := &cobra.Command{
		Use:   "verify [-r] SOURCE... gs://BUCKET[/OBJECT]",
		Short: "Compare files with their objects, without an upload",
		Long: `verify compares the size and the CRC32C of each SOURCE with those of its object. The
objects are those that cp with the same arguments uploads to. Nothing is uploaded
or changed. Objects without a file are ignored. A file whose object cp --gzip
made is compressed, and compared with that.

Exit codes: 0 all are the same; 65 at least one differs or is missing.`,
		Example: `  gcsup verify disk.img gs://my-bucket/disk.img
  gcsup verify -r photos gs://my-bucket/backup/`,
		SuggestFor: []string{"check", "compare", "diff", "hash"},
		Args:       usage.AtLeast(1, "at least one SOURCE and then gs://BUCKET[/OBJECT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.run(cmd.Context(), args[:len(args)-1], args[len(args)-1])
		},
	}
	v.flags.add(cmd.Flags())
	return cmd
}

func (v *verifier) run(ctx context.Context, sources []string, destination string) error {
	v.console, v.out = newConsole(v.std.err, v.flags.quiet), v.std.out
	if sameTerminal(v.std.out, v.std.err) {
		v.out = v.console // results appear above the frame
	}
	if err := v.flags.check(sources); err != nil {
		return err
	}
	if v.flags.sources.fromStdin {
		v.flags.progress = v.flags.progress.whileTyping(v.std.in)
	}
	v.view = v.flags.progress.view(v.std, v.flags.quiet, false)
	key, err := v.flags.key.read()
	if err != nil {
		return err
	}
	v.encrypted = !key.IsZero()
	spec := session.Spec{UserProject: v.flags.userProject, EncryptionKey: key}
	chosen, err := v.flags.sources.choose(ctx, v.std, sources, destination, spec, func(tree.Shard) bool { return true })
	if err != nil {
		return err
	}
	defer chosen.close()
	if v.flags.sources.fromStdin {
		announceTyping(v.console, v.std.in, "the paths of files")
	}
	files := -1
	if !chosen.trees {
		files = len(chosen.named)
	}
	v.view.results = v.view.results || chosen.single() && !v.flags.quiet
	v.progress = newVerifyProgress(newDisplay(comparing, files))
	// Check the sources first: a typo must not require credentials or a bucket.
	if len(chosen.named) > 0 && allFailed(chosen.named) {
		for _, t := range chosen.named {
			if err := v.report(t, nil, nil, t.err); err != nil {
				return err
			}
		}
		return exitcode.Printed(v.totals.code)
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
	if v.asker, err = v.c.asker(); err != nil {
		return err
	}
	return v.compare(ctx, chosen)
}

// compare compares all files. It uses the dry run of an upload that skips files with
// the same content, which reads a file only if its object has the same size.
func (v *verifier) compare(ctx context.Context, chosen *selection) error {
	jobs := chosen.jobs
	if !chosen.single() {
		jobs = v.lookUp(ctx, chosen)
	}
	stop := v.showProgress(ctx, chosen)
	defer stop()
	opts := &upload.BatchOptions{Small: v.flags.jobs, Large: v.flags.jobs, Jobs: v.flags.jobs, Skip: upload.SkipSameContent, DryRun: true, Sizes: chosen.sizes}
	for res, err := range v.c.uploader.Files(ctx, jobs, opts) {
		destination := res.Spec.URL()
		object, listed := v.listed.take(destination)
		switch {
		case err != nil:
		case res.Skipped != upload.SkipNothing:
			object = res.Object
		case !listed:
			object, err = v.stat(ctx, res.Spec)
		}
		if err == nil && res.Skipped == upload.SkipNothing {
			err = difference(destination, res.Size, object, v.encrypted)
		}
		t := task{source: res.Path, destination: destination, entry: chosen.notes.Skip(res.Path, err)}
		if err := v.report(t, res, object, err); err != nil {
			return err
		}
	}
	stop()
	if err := v.listed.err(); err != nil {
		return withHint(err, v.c.endpoint)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, text := range chosen.notes.Warnings() {
		v.console.message("warning: %s", text)
	}
	v.console.message("%s", v.totals.text())
	if v.totals.code != exitcode.OK {
		return exitcode.Printed(v.totals.code)
	}
	return nil
}

// showProgress shows the progress until stop is called.
func (v *verifier) showProgress(ctx context.Context, chosen *selection) (stop func()) {
	if v.view.progress == progressOff {
		return func() {}
	}
	p := startProgress(v.console, v.progress.display, v.view.progress)
	if chosen.sizes != nil {
		go countFiles(ctx, chosen, v.progress.display, p.stopped)
	}
	interrupted := context.AfterFunc(ctx, v.console.endFrames)
	return sync.OnceFunc(func() {
		interrupted()
		p.stop()
	})
}

// lookUp looks up the objects of all files in one listing. If there is no such
// bucket, or if the credentials are not accepted, there are no more jobs.
func (v *verifier) lookUp(ctx context.Context, chosen *selection) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job, err := range v.c.uploader.Lookup(ctx, upload.Listing{Bucket: chosen.bucket, Prefix: chosen.prefix, UserProject: v.flags.userProject}, chosen.jobs) {
			switch {
			case errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrCredentials), errors.Is(err, session.ErrRetriesExhausted):
				v.listed.failed(err)
				return
			case err != nil:
				continue // the objects are looked up one by one
			}
			if job.Listed && job.Err == nil {
				v.listed.put(job.Spec.URL(), job.Object)
			}
			if !yield(job) {
				return
			}
		}
	}
}

// stat looks up one object. The object is nil if there is none.
func (v *verifier) stat(ctx context.Context, spec session.Spec) (*session.Object, error) {
	reply, err := v.asker.repeat(ctx, func(ctx context.Context) session.Reply { return v.asker.client.Stat(ctx, spec) })
	switch {
	case err != nil:
		return nil, err
	case reply.Object != nil:
		return reply.Object, nil
	case reply.Status != 404:
		return nil, reply.Refusal()
	case v.bucketKnown:
		return nil, nil
	}
	// The bucket may be what does not exist.
	page, reply, err := v.asker.list(ctx, bucket.Query{Bucket: spec.Bucket, MaxResults: 1, UserProject: spec.UserProject})
	switch {
	case err != nil:
		return nil, err
	case page == nil && reply.Status == 404:
		return nil, notFound(reply)
	}
	v.bucketKnown = true
	return nil, nil
}

// difference returns how an object differs from a file of that size. The caller
// knows that it does. encrypted is true if a key was given: an object without that
// key is not the same.
func difference(destination string, size int64, object *session.Object, encrypted bool) error {
	var text string
	switch {
	case object == nil:
		text = "there is no " + destination
	case object.Gzip && object.UncompressedSize != size:
		text = fmt.Sprintf("%s is compressed from %d bytes, the file has %d", destination, object.UncompressedSize, size)
	case !object.Gzip && object.Size != size:
		text = fmt.Sprintf("%s has %d bytes, the file has %d", destination, object.Size, size)
	case encrypted:
		text = destination + " has the same size, but another CRC32C, or is not encrypted with the key"
	case !object.HasCRC32C:
		text = destination + " has no CRC32C to compare with; if it is encrypted with a customer-supplied key, give that with --encryption-key-file"
	case object.Gzip:
		text = fmt.Sprintf("%s is not what this version of the program compresses the file to (%d bytes, CRC32C %s)", destination, object.Size, chunk.EncodeCRC32C(object.CRC32C))
	default:
		text = fmt.Sprintf("%s has the same size, but another CRC32C (%s)", destination, chunk.EncodeCRC32C(object.CRC32C))
	}
	return failure.WithKind(errors.New(text), failure.ErrDiffers)
}
