package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

type resumeFlags struct {
	target targetFlags
	send   sendFlags
	output outputFlags
	key    keyFlags
	remove removeFlag
	all    bool
	source string // the new path of the source of the one upload
}

func newResume(std stdio) *cobra.Command {
	f := &resumeFlags{}
	cmd := &cobra.Command{
		Use:   "resume [ID... | --all]",
		Short: "Resume interrupted uploads",
		Long: `resume resumes saved uploads: those with the given IDs, or all with --all. Without
either, it resumes the only one; if there are several, it lists them and exits with
64. Without IDs it considers only uploads to the endpoint in use. With --all it skips uploads
that cannot be resumed, and prints how to discard them.

The settings and preconditions of the object are those of the first run. If the object
has come into existence meanwhile, an upload that was started with --no-clobber is
skipped. If another precondition fails, the exit code is 73. An upload to another
endpoint is not resumed: if its ID is given, the exit code is 78.

If the source was moved or replaced by a copy, give its path with --source. The file is
compared with the checksums of the bytes that were sent, before anything is sent.`,
		Example: `  gcsup resume
  gcsup resume 5f0c2f7d8ad2cc0d4b4a
  gcsup resume 5f0c2f7d8ad2cc0d4b4a --source=/mnt/new/disk.img
  gcsup resume --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.all && len(args) > 0 {
				return exit.Usagef("give IDs or --all, not both; see %s", cmdline.HelpOf(cmd))
			}
			if f.source != "" && len(args) != 1 {
				return exit.Usagef("--source needs the ID of one upload; see %s", cmdline.HelpOf(cmd))
			}
			return nil
		},
		ValidArgsFunction: f.target.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, std, args) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.all, "all", false, "resume every saved upload, and skip those that cannot be resumed")
	fs.StringVar(&f.source, "source", "", "new `PATH` of the source, if it was moved or replaced by a copy")
	cmdline.Common(fs, "all", "source")
	f.remove.add(fs)
	f.target.addSaving(fs)
	f.send.add(fs)
	f.key.add(fs, "resume encrypted uploads with the key")
	f.output.add(fs)
	return cmd
}

func (f *resumeFlags) run(cmd *cobra.Command, std stdio, ids []string) (err error) {
	ctx := cmd.Context()
	r := newReporter(std, f.output, newCommandLine(ctx, cmd.Flags()))
	defer func() { err = r.close(err) }()
	named := make([]task, len(ids)) // for errors before the saved uploads are read
	for i, id := range ids {
		named[i].source = id
	}
	opts, err := f.send.options()
	if err != nil {
		return r.refuse(named, err)
	}
	key, err := f.key.read()
	if err != nil {
		return r.refuse(named, err)
	}
	opts.EncryptionKeys = []session.EncryptionKey{key}
	if err := r.open(); err != nil {
		return r.refuse(named, err)
	}
	opts.Observer, opts.Logger = r.observe, r.logger()
	c, err := f.target.open(ctx, true)
	if err != nil {
		return r.refuse(named, err)
	}
	defer c.close()
	r.use(c)
	c.warn, c.policy, c.retryFor = r.warn, opts.Policy, opts.RetryFor
	if err := checkKeyTarget(key, c); err != nil {
		return r.refuse(named, err)
	}
	if !f.target.storeMissing() { // otherwise there is nothing to resume, and the directory need not be creatable
		if _, _, err := c.saved.get(ctx); err != nil {
			return r.refuse(named, err)
		}
	}
	var tasks []task
	listed := len(ids) == 0
	if listed {
		var unusable []unusableUpload
		if ids, unusable, err = f.choose(ctx, c, r); err != nil {
			return err
		}
		for _, u := range unusable {
			tasks = append(tasks, task{source: u.id, saved: u.id, err: u.err, listed: true, all: f.all})
		}
	}
	own := f.target.ownPaths(cmd.Flags())
	for _, id := range ids {
		t := f.resumption(ctx, c, own, id)
		t.listed, t.all = listed, f.all
		tasks = append(tasks, t)
	}
	if !allFailed(tasks) {
		if err := c.dial(ctx, opts); err != nil {
			return r.reportConnectError(ctx, tasks, err)
		}
	}
	defer f.target.rememberRates(c, r, opts.RequestRates)()
	if opts.RateLimit != nil {
		defer toggleOnSignal(opts.RateLimit, r.console)()
	}
	return r.run(ctx, c, tasks)
}

// choose selects the uploads if no ID is given. Uploads that cannot be used are
// reported as failed.
func (f *resumeFlags) choose(ctx context.Context, c *connection, r *reporter) (ids []string, unusable []unusableUpload, err error) {
	saved, unusable, err := savedUploads(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	var here, others, streams strings.Builder
	elsewhere := 0
	for _, t := range saved {
		if streamInParts(t) {
			fmt.Fprintf(&streams, "\n  %s to %s", t.ID, process.Printable(t.Spec.URL()))
			continue
		}
		if t.Endpoint == c.endpoint {
			ids = append(ids, t.ID)
			// The command has its own line. An interactive zsh does not accept a
			// comment after a command.
			fmt.Fprintf(&here, "\n  %s to %s:\n    %s", process.Printable(t.Source()), process.Printable(t.Spec.URL()), resumeCommand(process.Words(), r.given, t.ID))
			continue
		}
		if elsewhere++; elsewhere <= maxCandidates {
			fmt.Fprintf(&others, "\n  %s  %s at %s", t.ID, process.Printable(filepath.Base(t.Source())), process.Printable(endpointText(t.Endpoint)))
		}
	}
	if elsewhere > maxCandidates {
		fmt.Fprintf(&others, "\n  and %d more: %s uploads list", elsewhere-maxCandidates, process.Words())
	}
	if elsewhere > 0 {
		r.console.Message("not resumed, because they were not started at %s (%s resume ID explains how to resume one):%s", endpointText(c.endpoint), process.Words(), process.Block(others.String()))
	}
	if streams.Len() > 0 {
		r.console.Message("to be removed, not resumed, because no other process has the bytes of these streams (%s uploads prune removes what killed processes left):%s", process.Words(), process.Block(streams.String()))
	}
	switch {
	case len(ids) == 0 && len(unusable) == 0:
		r.console.Message("nothing to resume")
	case len(ids) > 1 && !f.all:
		return nil, nil, process.WithLines(exit.Usagef("%d uploads are saved; name one, or give --all:", len(ids)), process.Block(here.String()))
	}
	return ids, unusable, nil
}

// streamInParts reports whether a saved upload is that of a stream in parts, which can only be removed.
func streamInParts(s upload.SavedUpload) bool { return s.ToRemove && s.Path == "" && s.Spool == "" }

// resumption returns the task that resumes one upload.
func (f *resumeFlags) resumption(ctx context.Context, c *connection, own ownPaths, text string) task {
	id, err := completeID(ctx, c.saved, text)
	if err != nil {
		return task{source: text, err: err}
	}
	doc, err := c.saved.Load(ctx, id)
	if err != nil {
		return task{source: id, saved: id, err: err}
	}
	about := upload.Describe(doc)
	t := task{
		saved: id, source: doc.SourcePath, destination: doc.Spec.URL(), skip: doc.Spec.NoClobber, size: doc.Source.Size,
		do: func(ctx context.Context) (*upload.Result, error) {
			up, err := f.remove.uploader(c.uploader, own)
			if err != nil {
				return nil, err
			}
			return up.Resume(ctx, id)
		},
	}
	if doc.Spool != nil {
		t.source, t.size = about.Source(), max(about.Size, 0)
	}
	if doc.Endpoint != c.endpoint {
		t.err = f.target.endpointMismatch(c, doc.Endpoint)
		return t
	}
	if f.source != "" {
		if id, t.err = takeOver(ctx, c, doc, f.source); t.err == nil {
			t.saved, t.source = id, process.Absolute(f.source)
		}
	}
	return t
}

// takeOver gives a saved upload another source and returns the ID that it has then.
func takeOver(ctx context.Context, c *connection, t *state.Upload, source string) (string, error) {
	// TakeOver makes no request, so it needs no credentials.
	up, err := c.offline(c.endpoint)
	if err != nil {
		return "", err
	}
	newID, err := up.TakeOver(ctx, t.ID, source)
	if errors.Is(err, fs.ErrExist) {
		id, _ := up.ID(source, t.Spec)
		if by, lerr := c.saved.Load(ctx, id); lerr == nil {
			err = occupied(err, source, t, by)
		}
		return "", exit.WithKind(err, exit.ErrUsage)
	}
	return newID, sourceError(err, source)
}

// unusableUpload is a saved upload that cannot be used: it is damaged, other users
// can read it, or a newer version saved it.
type unusableUpload struct {
	id  string
	err error
}

// savedUploads reads all saved uploads. It returns those that cannot be used
// separately. It makes no request to the service, and needs no credentials unless the
// saved uploads are in a bucket.
func savedUploads(ctx context.Context, c *connection) (saved []upload.SavedUpload, unusable []unusableUpload, err error) {
	up, err := c.offline("")
	if err != nil {
		return nil, nil, err
	}
	for s, err := range up.Saved(ctx) {
		switch {
		case err == nil:
			saved = append(saved, s)
		case s.ID == "": // the store cannot be read
			return nil, nil, err
		default:
			unusable = append(unusable, unusableUpload{s.ID, err})
		}
	}
	return saved, unusable, nil
}
