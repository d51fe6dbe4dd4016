package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/program"
	"gcsup/internal/cli/treeflags"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// sourceFlags choose the files to upload.
type sourceFlags struct {
	recursive bool
	fromStdin bool
	tree      treeflags.Flags
	shard     string
}

func (f *sourceFlags) add(fs *pflag.FlagSet) {
	fs.BoolVarP(&f.recursive, "recursive", "r", false, "take the files in directories, and in those below them")
	fs.BoolVarP(&f.recursive, "recursive-too", "R", false, "the same as -r")
	_ = fs.MarkHidden("recursive-too")
	fs.BoolVarP(&f.fromStdin, "read-paths-from-stdin", "I", false, "the same as --files-from=-")
	f.tree.Add(fs)
	fs.StringVar(&f.shard, "shard", "", "take only the share `I/N` of the files, I from 0; auto/N and auto take I from the job scheduler")
}

// list reports whether the paths are in a list.
func (f *sourceFlags) list() bool { return f.tree.FilesFrom != "" || f.fromStdin }

// paths returns the flags of the files, with -I as --files-from.
func (f *sourceFlags) paths() *treeflags.Flags {
	flags := f.tree
	if f.fromStdin {
		flags.FilesFrom = stdinName
	}
	return &flags
}

// check refuses flags that contradict each other or the sources.
func (f *sourceFlags) check(sources []string) error {
	switch {
	case f.tree.FilesFrom != "" && f.fromStdin:
		return failure.Usagef("--files-from and -I exclude each other")
	case f.list() && len(sources) > 0:
		return failure.Usagef("give SOURCE arguments, --files-from or -I, not two of them")
	case f.list() && f.recursive:
		return failure.Usagef("--files-from and -I name files, so -r has no effect: remove it")
	case !f.list() && len(sources) == 0:
		return failure.Usagef("cp: want at least one SOURCE and then gs://BUCKET[/OBJECT], or --files-from or -I instead of the SOURCE")
	}
	return f.paths().Check(f.list())
}

// selection is what a command uploads.
type selection struct {
	jobs   iter.Seq[upload.Job]
	sizes  iter.Seq[int64] // of all files; nil if they can be read only once
	named  []task          // the SOURCE arguments; those with an error cannot be uploaded
	trees  bool            // there may be files that the user did not name
	bucket string
	prefix string // of all object names
	shard  tree.Shard
	notes  treeflags.Notes // complete when jobs ended
	close  func()
}

// single reports whether the user named one file.
func (s *selection) single() bool { return !s.trees && len(s.named) == 1 }

// destination returns the URL of the prefix of all objects.
func (s *selection) destination() string { return "gs://" + s.bucket + "/" + s.prefix }

// choose returns the files to upload. spec is the template of the objects; choose
// sets their names. sorted reports whether the jobs must be sorted by name.
func (f *sourceFlags) choose(ctx context.Context, std stdio, sources []string, destination string, spec session.Spec, sorted func(tree.Shard) bool) (*selection, error) {
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
	s := &selection{close: func() {}, bucket: bucket, prefix: object, shard: shard}
	stdin := func() (io.Reader, error) { return newInterruptible(std.in), checkStdin(std.in) }
	opts, err := f.paths().Options(&s.notes, stdin)
	if err != nil {
		return nil, err
	}
	opts.Sorted, opts.Shard = sorted(shard), shard
	if object != "" && !strings.HasSuffix(object, "/") {
		s.prefix += "/"
	}
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
		return shard, failure.WithKind(fmt.Errorf("--shard %s: %w", f.shard, err), failure.ErrUsage)
	}
	return shard, nil
}

// chooseList selects the files of a list.
func (f *sourceFlags) chooseList(ctx context.Context, stdin treeflags.Stdin, s *selection, spec session.Spec, opts *tree.Options) error {
	in, sep, err := f.paths().OpenList(stdin)
	if err != nil {
		return err
	}
	s.close = func() { _ = in.Close() }
	s.trees = true
	s.jobs, err = tree.List(ctx, in, sep, spec, opts)
	return err
}

// chooseSources selects files and directories.
func (f *sourceFlags) chooseSources(ctx context.Context, s *selection, args []string, spec session.Spec, opts *tree.Options) error {
	into := spec.Object == "" || strings.HasSuffix(spec.Object, "/")
	if len(args) > 1 && !into && !f.recursive {
		return failure.Usagef("%d sources cannot become one object %s; end the destination with \"/\"", len(args), spec.URL())
	}
	into = into || len(args) > 1
	var usable []tree.Source
	var broken []upload.Job
	for _, arg := range args {
		if err := checkArgument(arg, spec.Bucket); err != nil {
			return err
		}
		src, dir, err := f.source(ctx, arg)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.trees = s.trees || dir
		if !into && !dir {
			src.Name, spec.Object = spec.Object, ""
		}
		object := spec
		object.Object = src.Name
		if into || dir {
			object.Object = s.prefix + src.Name
		}
		if err == nil && !dir {
			if err := object.Validate(); err != nil {
				return err
			}
			err = unlessDone(ctx, func() error { return checkSource(arg, object) })
		}
		err = sourceError(err, arg)
		s.named = append(s.named, task{source: arg, destination: object.URL(), err: err})
		if err != nil {
			broken = append(broken, upload.Job{Path: arg, Spec: object, Err: err})
			continue
		}
		usable = append(usable, src)
	}
	if len(broken) > 0 {
		opts.Unmatched = nil // a pattern may match there
	}
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

// checkArgument refuses a SOURCE that names no file.
func checkArgument(arg, bucket string) error {
	switch {
	case arg == "":
		return failure.Usagef("SOURCE is an empty string")
	case strings.HasPrefix(arg, "gs://"):
		return failure.Usagef("source %q: gcsup uploads files; it does not download or copy objects", arg)
	case arg == stdinName:
		return failure.Usagef("standard input has no name; upload it alone, and name the object: %s cp - gs://%s/NAME", program.Words(), bucket)
	}
	return nil
}

// source returns the source that an argument names, and whether it is a directory.
// The directories of -r keep the last element of their path.
func (f *sourceFlags) source(ctx context.Context, arg string) (src tree.Source, dir bool, err error) {
	var info fs.FileInfo
	err = unlessDone(ctx, func() (err error) {
		info, err = os.Stat(arg)
		return err
	})
	if ctx.Err() == nil && err == nil && info.IsDir() && f.recursive {
		return tree.Sources(arg)[0], true, nil
	}
	name, abs := filepath.Base(arg), ""
	if abs, err = filepath.Abs(arg); err == nil {
		name = filepath.Base(abs)
	}
	return tree.Source{Path: arg, Name: name}, false, err
}

// withContentType gives each job the content type of its file's extension.
func withContentType(jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			job.Spec.DefaultContentType = contentType(job.Path, job.Spec.Object)
			if !yield(job) {
				return
			}
		}
	}
}
