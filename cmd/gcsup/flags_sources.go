package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/contenttype"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// sourceFlags choose the files to upload.
type sourceFlags struct {
	recursive bool
	fromStdin bool
	tree      cmdline.TreeFlags
	shard     string

	removed bool // the files are removed: skip all links in directories, and refuse sources that overlap; set by the command
}

func (f *sourceFlags) add(fs *pflag.FlagSet) {
	fs.BoolVarP(&f.recursive, "recursive", "r", false, "take the files in directories, and in those below them")
	fs.BoolVarP(&f.recursive, "recursive-too", "R", false, "the same as -r")
	_ = fs.MarkHidden("recursive-too")
	fs.BoolVarP(&f.fromStdin, "read-paths-from-stdin", "I", false, "the same as --files-from=-")
	f.tree.Add(fs)
	fs.StringVar(&f.shard, "shard", "", "take only the shard `I/N` of the files, I from 0; auto/N and auto take I from the job scheduler")
	cmdline.Common(fs, "recursive")
}

// list reports whether the paths are in a list.
func (f *sourceFlags) list() bool { return f.tree.FilesFrom != "" || f.fromStdin }

// listFromStdin reports whether the paths are read from standard input while files are uploaded.
func (f *sourceFlags) listFromStdin() bool { return f.paths().FilesFrom == stdinName }

// paths returns the flags of the files, with -I as --files-from.
func (f *sourceFlags) paths() *cmdline.TreeFlags {
	flags := f.tree
	if f.fromStdin {
		flags.FilesFrom = stdinName
	}
	return &flags
}

// check refuses flags that contradict each other or the sources.
func (f *sourceFlags) check(sources []string) error {
	switch {
	case f.list() && len(sources) > 0:
		return exit.Usagef("give SOURCE arguments, --files-from or -I, not two of them")
	case f.list() && f.recursive:
		return exit.Usagef("--files-from and -I name files, so -r has no effect: remove it")
	case !f.list() && len(sources) == 0:
		return exit.Usagef("cp: want at least one SOURCE and then gs://BUCKET[/OBJECT], or --files-from or -I instead of the SOURCE; or gs://BUCKET/OBJECT -- COMMAND")
	}
	return f.paths().Check(f.list())
}

// selecting returns the flags that leave out files and were given.
func selecting(given *pflag.FlagSet) (flags []*pflag.Flag) {
	for _, name := range slices.Concat(cmdline.Selecting, []string{"shard"}) {
		if flag := given.Lookup(name); flag != nil && flag.Changed {
			flags = append(flags, flag)
		}
	}
	return flags
}

// flagNames returns the names of flags as the user writes them.
func flagNames(flags []*pflag.Flag) (names []string) {
	for _, flag := range flags {
		names = append(names, "--"+flag.Name)
	}
	return names
}

// checkStream refuses flags that leave out files, for standard input.
func checkStream(given *pflag.FlagSet) error {
	if flags := selecting(given); len(flags) > 0 {
		return exit.Usagef("--%s: a stream is not a file that can be left out", flags[0].Name)
	}
	return nil
}

// selection is what a command uploads.
type selection struct {
	jobs   iter.Seq[upload.Job]
	sizes  iter.Seq[int64] // of all files; nil if they can be read only once
	named  []task          // the SOURCE arguments; those with an error cannot be uploaded
	args   []string        // the files and directories; nil for a list
	trees  bool            // there may be files that the user did not name
	bucket string
	prefix string // of all object names
	shard  tree.Shard
	notes  cmdline.Notes // complete when jobs ended
	handed handedOut     // the jobs that the uploader got; not counted by sync
	close  func()
}

// single reports whether the user named one file.
func (s *selection) single() bool { return !s.trees && len(s.named) == 1 }

// noFiles returns the totals of a run that found no files, and the flags that left out all, if they did.
func (s *selection) noFiles(given *pflag.FlagSet) string {
	flags := strings.Join(flagNames(selecting(given)), " or ")
	switch {
	case flags == "":
		return "no files"
	case s.args == nil:
		return "no files: the list is empty, or all are left out by " + flags
	case slices.ContainsFunc(s.args, hasFile):
		return "no files: all are left out by " + flags
	}
	return "no files"
}

// hasFile reports whether there is a file at path, or in the directory there.
func hasFile(path string) (found bool) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return err == nil
	}
	_ = filepath.WalkDir(path+string(filepath.Separator)+".", func(_ string, d fs.DirEntry, err error) error {
		if found = err == nil && !d.IsDir(); found {
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// destination returns the URL of the prefix of all objects.
func (s *selection) destination() string { return "gs://" + s.bucket + "/" + s.prefix }

// choose returns the files to upload. spec is the template of the objects; choose
// sets their names. sorted reports whether the jobs must be sorted by name. announce is called
// with what is read from standard input, before it is.
func (f *sourceFlags) choose(ctx context.Context, std stdio, announce func(what string), sources []string, destination string, spec session.Spec, sorted func(tree.Shard) bool) (*selection, error) {
	bucket, object, err := parseDestination(destination)
	if err != nil {
		return nil, err
	}
	spec.Bucket, spec.Object = bucket, "x"
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	spec.Object = object
	shard, err := f.parseShard()
	if err != nil {
		return nil, err
	}
	s := &selection{close: func() {}, bucket: bucket, shard: shard}
	stdin := func() (io.Reader, error) {
		announce(f.paths().FromStdin())
		return newInterruptible(std.in), checkStdin(std.in)
	}
	var opts tree.Options
	err = unlessDone(ctx, func() (err error) { // patterns can come from a FIFO or a terminal
		opts, err = f.paths().Options(&s.notes, stdin)
		return err
	})
	if err != nil {
		return nil, err
	}
	opts.Sorted, opts.Shard, opts.ReportSymlinks, opts.Disjoint = sorted(shard), shard, f.removed, f.removed
	if f.list() {
		err = f.chooseList(ctx, stdin, s, spec, &opts)
	} else {
		err = f.chooseSources(ctx, s, sources, spec, &opts)
	}
	if err != nil {
		return nil, err
	}
	s.jobs = withContentType(s.jobs)
	return s, nil
}

func (f *sourceFlags) parseShard() (tree.Shard, error) {
	if f.shard == "" {
		return tree.Shard{}, nil
	}
	shard, err := tree.ParseShard(f.shard, os.Getenv)
	if err != nil {
		return shard, exit.WithKind(fmt.Errorf("--shard %s: %w", f.shard, err), exit.ErrUsage)
	}
	return shard, nil
}

// chooseList selects the files of a list.
func (f *sourceFlags) chooseList(ctx context.Context, stdin cmdline.Stdin, s *selection, spec session.Spec, opts *tree.Options) error {
	var in io.ReadCloser
	var sep byte
	err := unlessDone(ctx, func() (err error) { // opening a FIFO waits for its writer
		in, sep, err = f.paths().OpenList(stdin)
		return err
	})
	if err != nil {
		return err
	}
	s.close = func() { _ = in.Close() }
	s.trees = true
	if _, s.prefix, err = tree.Place(nil, spec, false); err != nil {
		return err
	}
	s.jobs, err = tree.List(ctx, in, sep, spec, opts)
	return err
}

// chooseSources selects files and directories.
func (f *sourceFlags) chooseSources(ctx context.Context, s *selection, args []string, spec session.Spec, opts *tree.Options) error {
	s.args = args
	if slices.Contains(args, stdinName) {
		return exit.Usagef("standard input has no name; upload it alone, and name the object: %s cp - gs://%s/NAME", process.Words(), spec.Bucket)
	}
	var placed []tree.Placed
	err := unlessDone(ctx, func() (err error) {
		placed, s.prefix, err = tree.Place(args, spec, f.recursive)
		return err
	})
	if err != nil {
		return err
	}
	var usable []tree.Source
	var broken []upload.Job
	for _, p := range placed {
		directory := p.IsDir && f.recursive
		s.trees = s.trees || directory
		object, err := spec, p.Err
		object.Object = p.Name
		if !directory && (err == nil || p.IsDir) {
			if err := object.Validate(); err != nil {
				return err
			}
			err = unlessDone(ctx, func() error { return checkSource(p.Path, object) })
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err = sourceError(err, p.Path)
		s.named = append(s.named, task{source: p.Path, destination: object.URL(), err: err})
		if err != nil {
			broken = append(broken, upload.Job{Path: p.Path, Spec: object, Err: err})
			continue
		}
		usable = append(usable, p.Source)
	}
	if len(broken) > 0 {
		opts.Unmatched = nil // a pattern may match there
	}
	spec.Object = "" // the names of the sources are complete
	t, err := tree.New(usable, spec, opts)
	if err != nil {
		return err
	}
	s.sizes = t.Sizes(ctx)
	s.jobs = func(yield func(upload.Job) bool) {
		for _, job := range broken {
			if !yield(job) {
				return
			}
		}
		t.Walk(ctx)(yield)
	}
	return nil
}

// withContentType gives each job the content type of its file's extension.
func withContentType(jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			job.Spec.DefaultContentType = contenttype.Of(job.Path)
			if !yield(job) {
				return
			}
		}
	}
}
