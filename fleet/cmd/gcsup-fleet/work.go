package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/metrics"
	"gcsup/internal/contenttype"
	"gcsup/upload"
)

// workFlags configure a worker.
type workFlags struct {
	nats    natsFlags
	service serviceFlags
	state   stateFlags
	send    cmdline.SendFlags

	roots       []string
	buckets     []string
	limitRate   cmdline.Size
	jobs        int
	maxFailures int
	missingFor  time.Duration
	trustTimes  bool
	untilEmpty  bool
	accept      bool
	listen      metrics.Address
	log         string
}

func (f *workFlags) add(fs *pflag.FlagSet) {
	f.nats.needs = toVerify
	f.nats.add(fs)
	f.nats.addCreation(fs)
	f.service.add(fs)
	f.state.add(fs)
	f.send.Add(fs)
	fs.StringArrayVar(&f.roots, "root", nil, "read only files below `DIR`; repeat the flag for more (required with --nats)")
	fs.StringArrayVar(&f.buckets, "bucket", nil, "upload only to `BUCKET`; repeat the flag for more (required with --nats)")
	cmdline.Common(fs, "root", "bucket")
	fs.Var(&f.limitRate, "limit-rate", "bytes per second of this worker, such as 20MiB; gcsup-fleet limit sets that of the fleet")
	fs.IntVar(&f.jobs, "jobs", 4, "upload `N` large files, or groups of small ones, at a time")
	cmdline.Common(fs, "limit-rate", "jobs")
	fs.IntVar(&f.maxFailures, "max-failures", 5, "a file that fails `N` times in a row without newly committed bytes is not tried any more")
	cmdline.DurationVar(fs, &f.missingFor, "missing-for", 10*time.Minute, "a file that is missing, unreadable, not as it was submitted, or refused, is tried by each worker, and at least for `DURATION`")
	cmdline.DurationVar(fs, &f.nats.keep, "keep", 7*24*time.Hour, "keep the records of finished files for `DURATION`, with which status counts them and submit leaves them out; 0 keeps them always")
	fs.BoolVar(&f.trustTimes, "trust-times", false, "a file with the size and modification time of a saved upload is its source, even if its inode differs; otherwise the bytes that were sent are read again")
	fs.BoolVar(&f.accept, "accept-changed", false, "upload a file even if its size or modification time is not that with which it was submitted; otherwise the worker leaves it to others")
	fs.BoolVar(&f.untilEmpty, "until-empty", false, "end when the queue is empty, with exit code 0 only if all that was submitted is done: 65 if files failed, 75 if tasks were lost or it is not known what was submitted")
	cmdline.Common(fs, "until-empty")
	fs.StringVar(&f.log, "log", "text", "write a line for each task to standard error, as `text|json|off`")
}

func newWork(std stdio) *cobra.Command {
	f := &workFlags{}
	cmd := &cobra.Command{
		Use:   "work --state gs://BUCKET/PREFIX --state-key-file FILE [--root DIR --bucket BUCKET]...",
		Short: "Take uploads from the queue",
		Long: `work takes uploads from the queue until it is stopped. After SIGTERM it hands over its
uploads at once: another worker continues at the committed offset. If a worker dies,
others get its uploads after --ack-wait.`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.stopped(cmd.Context(), f.run(cmd.Context(), std))
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().Var(&f.listen, "listen", "serve /metrics and /healthz on this `HOST:PORT`, such as 127.0.0.1:9464")
	cmdline.Common(cmd.Flags(), "listen")
	return cmd
}

// stopped returns the error of a command that ended with err. If a signal has stopped it, even while it started, that is no
// error, except with --until-empty: there may be files left.
func (f *workFlags) stopped(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case f.untilEmpty:
		return context.Cause(ctx)
	}
	return nil
}

func (f *workFlags) run(ctx context.Context, std stdio) error {
	opts, err := f.options(std)
	if err != nil {
		return err
	}
	f.nats.log, f.nats.works, f.nats.state = opts.Logger, true, f.state.url
	l, err := f.nats.open(ctx, std)
	if err != nil {
		return err
	}
	defer l.close()
	if _, err := l.conn.TLSConnectionState(); err != nil && f.nats.url != "" {
		std.message("warning: the connection to NATS has no TLS: others can read and change what is sent")
	}
	ctx, end := untilFailed(ctx, l.failed)
	defer end()
	client, err := f.service.connect(ctx, l.endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	opts.Upload.Endpoint = client.Endpoint()
	var w *fleet.Worker
	var served *metrics.Metrics
	if f.listen != "" {
		served = metrics.New(metrics.Options{
			Healthy:    l.healthy,
			Collectors: []prometheus.Collector{workerCollector(func() fleet.WorkerMetrics { return w.Metrics() })},
		})
		opts.Upload.Observer = served.Observe
	}
	w, err = fleet.NewWorker(ctx, l.Queue, client.HTTP(), opts)
	if err != nil {
		return err
	}
	for _, text := range w.Warnings() {
		std.message("warning: %s", text)
	}
	if served != nil {
		server, err := metrics.Serve(f.listen, served)
		if err != nil {
			return err
		}
		defer server.Close()
		if opts.Logger != nil {
			opts.Logger.Info("serving metrics and health", "addr", server.Addr())
		}
	}
	err = w.Run(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, natsserver.ErrDiskFull) {
		return cause
	}
	return l.explain(err)
}

// options returns the options of the worker.
func (f *workFlags) options(std stdio) (o fleet.WorkerOptions, err error) {
	if err := f.state.check(); err != nil {
		return o, err
	}
	if f.jobs < 1 || f.maxFailures < 1 {
		return o, exit.Usagef("--jobs and --max-failures must be 1 or more")
	}
	if f.nats.url != "" && (len(f.roots) == 0 || len(f.buckets) == 0) {
		return o, exit.Usagef("work: with --nats, give the directories that this worker may read with --root, and the buckets to which it may upload with --bucket")
	}
	for _, bucket := range f.buckets {
		if named := (upload.Spec{Bucket: bucket, Object: "x"}); named.Validate() != nil {
			return o, exit.Usagef("--bucket %q: want the name of a bucket, such as my-bucket, without gs:// and without an object", bucket)
		}
	}
	o = fleet.WorkerOptions{
		Buckets: f.buckets,
		Jobs:    f.jobs, MaxFailures: f.maxFailures, MissingFor: f.missingFor, Rate: int64(f.limitRate), TrustTimes: f.trustTimes,
		UntilEmpty: f.untilEmpty, AcceptChanged: f.accept, Unsealed: f.state.unsealed, ContentType: contenttype.Of,
	}
	for _, dir := range f.roots {
		if dir == "" {
			return o, exit.Usagef(`--root "": want a directory; a variable that is not set may have no value`)
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return o, err
		}
		o.Roots = append(o.Roots, dir)
	}
	if o.Upload, err = f.send.Options(); err != nil {
		return o, err
	}
	o.Upload.DetectContentType = http.DetectContentType
	switch f.log {
	case "text":
		o.Logger = slog.New(slog.NewTextHandler(std.err, nil))
	case "json":
		o.Logger = slog.New(slog.NewJSONHandler(std.err, nil))
	case "off":
	default:
		return o, exit.Usagef("--log %s: want text, json or off", f.log)
	}
	if o.StateBucket, o.StatePrefix, err = splitURL("--state", f.state.url); err != nil {
		return o, err
	}
	o.AEAD, err = f.state.aead()
	return o, err
}
