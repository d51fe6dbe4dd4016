package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/metrics"
	"gcsup/internal/cli/readable"
	"gcsup/internal/contenttype"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/outbox"
)

// outboxRunFlags are the flags of outbox run.
type outboxRunFlags struct {
	target  targetFlags
	send    sendFlags
	output  outputFlags
	objects objectFlags

	settle, rescan time.Duration
	then           thenFlag
	ordered        bool
	attempts       int
	jobs           jobsFlag
}

// thenFlag is --then.
type thenFlag struct{ outbox.Then }

// Values returns the valid values, of which one is incomplete.
func (*thenFlag) Values() []string { return []string{"remove", "keep", "move="} }
func (*thenFlag) Type() string     { return "string" }

// Set parses text.
func (t *thenFlag) Set(text string) (err error) {
	t.Then, err = outbox.ParseThen(text)
	return err
}

func newOutboxRun(std stdio) *cobra.Command {
	f := &outboxRunFlags{}
	cmd := &cobra.Command{
		Use:   "run DIR gs://BUCKET[/PREFIX]",
		Short: "Upload the files of a directory until it is stopped",
		Long: `run uploads the files in DIR and below it until it is stopped. DIR/a/b becomes
gs://BUCKET/PREFIX/a/b. Names that begin with a dot are ignored, and so is everything
that is not a regular file.

A file is uploaded when it is complete: outbox put made it, it was renamed into the
directory, or it was not changed for --settle. A file that a program has open for
writing is not complete. Renames and writers are recognized on local file systems of
Linux, for files of the user who runs gcsup, or for all files if that is root.

When the object exists and was compared with the file, the file is removed. A file
that fails waits. It does not stop others, except with --ordered. After --attempts it
is moved to DIR/.failed, with the reason beside it. An outage moves no file.

On SIGTERM, run saves the uploads under way and exits with 0 within seconds. It
supports Type=notify and WatchdogSec of systemd.`,
		Example: `  gcsup outbox run /var/spool/out gs://my-bucket/in/
  gcsup outbox run /var/spool/wal gs://my-bucket/wal/ --ordered
  gcsup outbox run /srv/photos gs://my-bucket/photos/ --then=keep`,
		Args: cmdline.Exactly(2, "DIR and gs://BUCKET[/PREFIX]"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return f.target.completePaths(f.objects.userProject())(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, std, args[0], args[1]) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *outboxRunFlags) add(fs *pflag.FlagSet) {
	cmdline.DurationVar(fs, &f.settle, "settle", 10*time.Second, "a file is complete when it was not changed for `DURATION`, unless it is complete at once")
	cmdline.DurationVar(fs, &f.rescan, "rescan", time.Minute, "scan the whole directory every `DURATION`, for files whose notification was lost")
	fs.Var(&f.then, "then", "what happens to a file that was uploaded, an `ACTION`: remove, keep or move=DIR")
	fs.BoolVar(&f.ordered, "ordered", false, "upload one file at a time, by name; a file that fails blocks all later ones")
	fs.IntVar(&f.attempts, "attempts", 10, "after `N` failures in a row, move a file to DIR/.failed, or, with --ordered, exit; 0: never")
	fs.Var(&f.jobs, "jobs", "upload `N` files at a time, or auto: more while the throughput rises")
	cmdline.Common(fs, "settle", "then", "ordered", "jobs")
	f.objects.addService(fs)
	f.target.addSaving(fs)
	f.send.addRestarting(fs)
	f.output.addService(fs)
}

// check refuses contradictory flags, and returns the options of the uploads and those of the outbox.
func (f *outboxRunFlags) check(destination string) (opts upload.Options, to session.Spec, err error) {
	switch {
	case f.attempts < 0:
		return opts, to, exit.Usagef("--attempts %d: want a number that is not negative", f.attempts)
	case f.ordered && f.jobs > 1:
		return opts, to, exit.Usagef("--ordered uploads one file at a time: leave out --jobs")
	case f.rescan < time.Second:
		return opts, to, exit.Usagef("--rescan %v: want at least 1s", f.rescan)
	}
	bucket, prefix, err := parseDestination(destination)
	if err != nil {
		return opts, to, err
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	if _, err := f.target.check(); err != nil {
		return opts, to, err
	}
	if opts, err = f.send.options(); err != nil {
		return opts, to, err
	}
	opts.DetectContentType = http.DetectContentType
	to, err = f.objects.spec(false)
	to.Bucket, to.Object = bucket, prefix
	return opts, to, err
}

// spec completes the settings of a file.
func (f *outboxRunFlags) spec(name string, spec upload.Spec) upload.Spec {
	spec.DefaultContentType = contenttype.Of(name)
	spec.Gzip = f.objects.gzip.compresses(name, spec.Object)
	return spec
}

func (f *outboxRunFlags) run(cmd *cobra.Command, std stdio, dir, destination string) (err error) {
	ctx := cmd.Context()
	if os.Getenv("GOGC") == "" {
		// The state of a large backlog stays in memory for hours. The garbage collector would let the heap
		// grow to twice that. The reserve of the process counts, too, so that a small heap is not collected too often.
		debug.SetGCPercent(20)
	}
	var open atomic.Pointer[outbox.Outbox] // nil before the outbox is open
	f.output.backlog = func() metrics.Backlog {
		box := open.Load()
		if box == nil {
			return metrics.Backlog{}
		}
		s := box.Status()
		return metrics.Backlog{Files: s.Backlog.Files, Bytes: s.Backlog.Bytes, Oldest: s.Oldest}
	}
	r := newReporter(std, f.output, newCommandLine(ctx, cmd.Flags()))
	defer func() { err = r.close(err) }()
	whole := []task{{source: dir, destination: destination}}
	opts, to, err := f.check(destination)
	if err != nil {
		return r.refuse(whole, err)
	}
	if err := r.open(); err != nil {
		return r.refuse(whole, err)
	}
	r.warnOfName(destination)
	c, err := f.connect(ctx, r, opts, to)
	if err != nil {
		return r.refuse(whole, err)
	}
	defer c.close()
	r.use(c)
	if opts.RateLimit != nil {
		defer toggleOnSignal(opts.RateLimit, r.console)()
	}
	service := &outboxService{reporter: r, dir: dir, out: r.outcomes(false), notifier: newNotifier(r.console)}
	box, err := outbox.Open(dir, c.uploader, to, &outbox.Options{
		Settle: orNone(f.settle), Rescan: f.rescan, Then: f.then.Then, Ordered: f.ordered, Attempts: orNone(f.attempts),
		Policy: opts.Policy, Jobs: int(f.jobs), Spec: f.spec,
		Observer: r.observe, Ended: service.ended, Warn: func(text string) { r.console.Warning("warning: %s", text) }, Ready: service.ready,
	})
	if wrong, ok := errors.AsType[*outbox.MoveDirError](err); ok {
		return r.refuse(whole, exit.Usagef("--then=move: %v", wrong))
	}
	if err != nil {
		return r.refuse(whole, missingOutbox(dir, err))
	}
	open.Store(box)
	if err := service.run(ctx, box); err != nil {
		return r.refuse(whole, blocked(err))
	}
	return r.ended(exit.OK)
}

// blocked gives the error of a file that blocks all later ones a kind of its own, if a service manager would take the
// exit code for that of a wrong command line or configuration, which a restart cannot change.
func blocked(err error) error {
	if _, ok := errors.AsType[*outbox.StoppedError](err); !ok {
		return err
	}
	if code := exit.Classify(err).Code; code == exit.Usage || code == exit.Config {
		return exit.WithKind(err, exit.ErrBlocked)
	}
	return err
}

// orNone returns a negative value for 0, which in the options of package outbox means the default.
func orNone[T time.Duration | int](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// connect finds the endpoint and the credentials.
func (f *outboxRunFlags) connect(ctx context.Context, r *reporter, opts upload.Options, to session.Spec) (*connection, error) {
	opts.Observer, opts.Logger = r.observe, r.logger()
	c, err := f.target.open(ctx, true)
	if err != nil {
		return nil, err
	}
	c.warn, c.policy, c.retryFor = r.warn, opts.Policy, opts.RetryFor
	if err = checkKeyTarget(to.EncryptionKey, c); err == nil {
		err = c.dial(ctx, opts)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// outboxService reports about an outbox that runs.
type outboxService struct {
	*reporter
	dir      string
	out      *outcomes
	notifier *notifier
}

// run runs the outbox until ctx is done.
func (s *outboxService) run(ctx context.Context, box *outbox.Outbox) error {
	defer context.AfterFunc(ctx, s.stopWaiting)()
	s.tracker.start(true, nil, true)
	stop := s.notifier.start(ctx, box.Status)
	err := box.Run(ctx)
	stop()
	s.tracker.stop()
	if cerr := box.Close(); err == nil {
		err = cerr
	}
	return err
}

// ready reports that the directory was scanned.
func (s *outboxService) ready() {
	s.console.Message("uploading the files of %s", s.dir)
	s.notifier.ready()
}

// ended reports the end of an attempt.
func (s *outboxService) ended(a outbox.Attempt) {
	path := filepath.Join(s.dir, filepath.FromSlash(a.Name))
	if a.Altered {
		s.console.Detail("%s changed while it was uploaded; it is uploaded again", path)
		return
	}
	if a.Unsaved {
		s.console.Warning("warning: %s: the upload cannot be saved, and starts over if this process ends before it does: %v", path, a.Err)
		return
	}
	t := task{source: path, destination: a.Result.Spec.URL()}
	s.out.report(t, false, a.Result, sourceError(a.Err, path))
	if a.Left != nil && a.Result.SourceKept == nil {
		s.explain.kept(t, a.Left, false)
	}
	switch {
	case a.GivenUp && !errors.Is(a.Err, context.Canceled) && s.given.Lookup("ordered").Value.String() != "true":
		s.console.Fail(path + ": no attempt is left; it is moved to .failed. To try again: " + retryCommand(s.dir, a.Name))
	case a.Next > 0:
		s.console.Message("%s: trying again in %s", path, readable.Span(a.Next+time.Second-1))
	}
}
