package tree

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gcsup/upload"
	"gcsup/upload/internal/runsort"
)

// A Source is a file or a directory to upload. If it is itself a symbolic link, it is
// followed, as by cp -rH, because the caller named it. The object has the name of the
// link. With Options.IgnoreSymlinks such a source is left out, but LINK/ and LINK/.
// name the directory, as for cp.
type Source struct {
	// Path is the path of the file or directory.
	Path string

	// Name is the name of a file's object, below the prefix. For a directory
	// it is the directory of the objects: Name/a is the object of the file a. ""
	// puts them directly below the prefix.
	Name string
}

// Sources returns the sources for the arguments of a command. A file or directory
// keeps the last element of its path. The contents of DIR/., ".", ".." and the root
// directory are placed directly below the prefix. "DIR/" is the same as "DIR". The
// destination does not depend on the content of the bucket.
func Sources(args ...string) []Source {
	sources := make([]Source, len(args))
	for i, arg := range args {
		name := filepath.ToSlash(arg[len(filepath.VolumeName(arg)):])
		name = strings.TrimRight(name, "/")
		name = name[strings.LastIndexByte(name, '/')+1:]
		if name == "." || name == ".." {
			name = ""
		}
		sources[i] = Source{Path: arg, Name: name}
	}
	return sources
}

// Options configure a [Tree] and a [List]. The zero value uploads all files.
//
// The patterns of Include and Exclude follow the rules of rclone. These are the parts
// of a pattern:
//
//	?      one character except a slash    *       any characters except a slash
//	[a-z]  one of these characters         **      any characters
//	[^a]   one character except these      {a,b}   one of the alternatives
//	\*     the character *                 {{a+}}  a regular expression
//
// In a class and in a regular expression, the syntax is that of [regexp/syntax]. The
// classes \d, \D, \s, \S, \w and \W are also allowed outside.
//
// A pattern is compared with the path below the source, without DIR: the sources DIR
// and DIR/. are equivalent. A pattern of n elements matches the last n elements of the
// path. If it begins with a slash, it matches the whole path. If it ends in a slash,
// it matches only directories. A file is also selected if one of its directories
// matches.
//
// For a source that is a file, the path is the last element of its path. For a file
// of a list, it is the object name without the prefix.
//
// A file is uploaded if Include selects it or is empty, and Exclude does not select
// it. An excluded directory is not read. These files of a source are uploaded:
//
//	Include     Exclude          a.txt  sub/a.txt  sub/b.jpg  tmp/a.txt
//	                             yes    yes        yes        yes
//	*.txt                        yes    yes        no         yes
//	/*.txt                       yes    no         no         no
//	**/*.txt                     no     yes        no         yes
//	sub                          no     yes        yes        no
//	sub/                         no     yes        yes        no
//	sub/*.txt                    no     yes        no         no
//	a.txt/                       no     no         no         no
//	            *.txt            no     no         yes        no
//	            /a.txt           no     yes        yes        yes
//	            tmp              yes    yes        yes        no
//	            tmp/**           yes    yes        yes        no
//	*.txt       {tmp,sub}        yes    no         no         no
//	sub         a.txt            no     no         yes        no
type Options struct {
	// Sorted yields the jobs in the order of their object names, as raw bytes.
	// It is the order in which the service lists objects. A directory of more
	// than 100,000 entries, and a list, are sorted in files on disk. Otherwise a
	// directory has the order of the file system, and nothing is sorted.
	//
	// A walk keeps 512 names for each open directory. If the jobs are sorted, it keeps at
	// most 100,000 names in all, and for each open directory 1,000 more, or the 8 MiB of a
	// sort on disk. A sorted list keeps the 8 MiB of a sort.
	Sorted bool

	// Include and Exclude choose files by patterns.
	Include, Exclude []string

	// MinSize and MaxSize leave out files with fewer or more bytes. A nil MaxSize is no
	// limit. ModifiedFrom and ModifiedTo leave out files that were modified before or
	// after a time. A zero time is no limit. For a symbolic link that is followed, the
	// limits apply to its target.
	MinSize                  int64
	MaxSize                  *int64
	ModifiedFrom, ModifiedTo time.Time

	// Dir is the directory to which the relative paths of a List are relative, as with
	// tar -C. "" is the current directory. [New] refuses it.
	Dir string

	// Unmatched, if not nil, is called at the end of [Tree.Walk] and of the iteration
	// of a List, if some patterns of Include or Exclude matched no file and no
	// directory. A pattern is not compared with the files of an excluded directory.
	// Unmatched is not called if the iteration ended early, or if something could not
	// be listed.
	Unmatched func(include, exclude []string)

	// IgnoreSymlinks leaves out all symbolic links without an error. An argument
	// that ends in "/" or "/." is a directory, not a link.
	IgnoreSymlinks bool

	// FollowSymlinks follows symbolic links to files and directories anywhere. A
	// directory is uploaded under each of its names. A link to a directory that
	// contains the link is reported with LinkLoop, because it has no end.
	// FollowSymlinks excludes IgnoreSymlinks.
	FollowSymlinks bool

	// ReportSymlinks reports every symbolic link in a directory with Link, and follows
	// none. It is for a program that removes files that it has uploaded: a link to such a file
	// would lead nowhere. It excludes FollowSymlinks, and IgnoreSymlinks has precedence.
	ReportSymlinks bool

	// ReportLeftOut reports what a walk leaves out although the patterns select it: with Link a symbolic link
	// that IgnoreSymlinks leaves out, with LeftOut a file that is not within the limits of size and time, and
	// with Vanished a file or directory that was removed during the walk. It also reports, with Link, a
	// symbolic link that is not followed and that Include does not select, because it may lead to files that
	// Include selects. It is for a program that deletes objects without a file. [Tree.Excludes] reports what
	// the patterns leave out. A List ignores it.
	ReportLeftOut bool

	// Private are paths of directories whose files are never uploaded, such as the store of saved
	// uploads, which contain secrets. A walk does not read these directories, and reports each
	// with [Private], whatever its path is: a directory is recognized by its identity, so that a
	// bind mount or a symbolic link does not hide it. A file in such a directory that a List names
	// is reported in the same way, and a Source is refused with ErrLeftOut. A directory that does
	// not exist yet is recognized when it does.
	Private []string

	// Disjoint makes New return an error ([ErrCollision]) if two sources may have files for the same
	// object, even if they have none at that moment, or if a source is in another one. It is for a
	// program that removes files that it has uploaded: a file that is removed cannot be found
	// when another one with the same object is uploaded.
	Disjoint bool

	// Shard chooses a part of the objects. The zero value is all of them.
	Shard Shard

	// TempDir is the directory of the files in which names are sorted. "" is
	// os.TempDir. The files are removed at the end of the iteration.
	TempDir string
}

// checkOptions returns the options, with the filter and the prefix of object
// names. A nil opts uses the defaults.
func checkOptions(spec upload.Spec, opts *Options) (Options, filter, string, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.IgnoreSymlinks && o.FollowSymlinks {
		return o, filter{}, "", fmt.Errorf("%w: IgnoreSymlinks and FollowSymlinks exclude each other", ErrUsage)
	}
	if o.ReportSymlinks && o.FollowSymlinks {
		return o, filter{}, "", fmt.Errorf("%w: ReportSymlinks and FollowSymlinks exclude each other", ErrUsage)
	}
	if o.Shard != (Shard{}) {
		if err := o.Shard.check(); err != nil {
			return o, filter{}, "", fmt.Errorf("%w: shard: %w", ErrUsage, err)
		}
	}
	if err := o.checkLimits(); err != nil {
		return o, filter{}, "", err
	}
	f, err := newFilter(o.Include, o.Exclude)
	return o, f, join(spec.Object, ""), err
}

// A Tree has the sources of a batch. It is safe for concurrent use.
type Tree struct {
	spec    upload.Spec
	opts    Options
	filter  filter
	sources []*source
	files   map[string]*source // the sources that are files, by object
}

type source struct {
	Source
	path   string // of the file; of a directory, with a separator at the end or ""
	object string // the object; of a directory, the start of the names: "" or with a slash at the end
	info   fs.FileInfo
	isDir  bool
	skip   bool      // an ignored symbolic link
	rivals []*source // other directories that may have a file for the same object
}

// New returns the Tree of sources. spec is the template of all jobs. Its Object is
// the prefix of the object names. New adds a slash at its end if necessary. A nil
// opts uses the defaults.
//
// A Source that is a symbolic link is followed.
//
// New reads no directory. It returns an error if a source is missing, if the options
// are wrong ([ErrUsage]), or if two files, or the same directory twice, have the same
// object names ([ErrCollision]).
func New(sources []Source, spec upload.Spec, opts *Options) (*Tree, error) {
	o, f, prefix, err := checkOptions(spec, opts)
	if err != nil {
		return nil, err
	}
	if o.Dir != "" {
		return nil, fmt.Errorf("%w: Options.Dir is only for a List", ErrUsage)
	}
	t := &Tree{spec: spec, opts: o, filter: f}
	for _, src := range sources {
		s, err := newSource(src, prefix, o.IgnoreSymlinks)
		if err != nil {
			return nil, err
		}
		t.sources = append(t.sources, s)
	}
	if err := t.findRivals(); err != nil {
		return nil, err
	}
	if o.Disjoint {
		if err := t.checkDisjoint(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func newSource(src Source, prefix string, ignoreLinks bool) (*source, error) {
	info, err := os.Lstat(src.Path)
	if err != nil {
		return nil, err
	}
	s := &source{Source: src, path: src.Path}
	if info.Mode()&fs.ModeSymlink != 0 {
		s.skip = ignoreLinks && !strings.HasSuffix(filepath.ToSlash(src.Path), "/")
		if info, err = os.Stat(src.Path); err != nil && !s.skip {
			return nil, err
		}
	}
	if s.skip {
		return s, nil
	}
	s.info, s.isDir = info, info.IsDir()
	switch {
	case s.isDir:
		s.path = dirPath(src.Path)
		s.object = prefix
		if src.Name != "" {
			s.object = join(prefix+src.Name, "")
		}
	case src.Name == "":
		return nil, fmt.Errorf("%w: the file %s has no object name", ErrUsage, src.Path)
	default:
		s.object = prefix + src.Name
	}
	return s, nil
}

// dirPath returns the path of a directory with one separator at the end, and
// without "." as the last element. Other elements are not changed: a/../b is
// another directory than b if a is a symbolic link.
func dirPath(path string) string {
	sep := string(os.PathSeparator)
	volume := filepath.VolumeName(path)
	p := path[len(volume):]
	for {
		trimmed := strings.TrimRightFunc(p, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
		if before, ok := strings.CutSuffix(trimmed, "."); ok && before != "" && os.IsPathSeparator(before[len(before)-1]) {
			p = before
			continue
		}
		switch {
		case trimmed == "" && p == "": // C:
			return volume
		case trimmed == ".":
			return volume
		}
		return volume + trimmed + sep
	}
}

// Excludes reports whether the patterns leave out the file of an object. There need not be such a
// file. An object outside of the tree is not left out.
func (t *Tree) Excludes(object string) bool {
	excluded := false
	for _, s := range t.sources {
		rel, ok := strings.CutPrefix(object, s.object)
		if !ok || !s.isDir || rel == "" {
			continue
		}
		if t.filter.path(nil, rel) {
			return false
		}
		excluded = true
	}
	return excluded
}

// Walk yields a job for each file. The iteration reads one directory after the
// other, and can be repeated. It ends early if ctx is done.
func (t *Tree) Walk(ctx context.Context) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		r := &run{Tree: t, ctx: ctx, sorted: t.opts.Sorted, uses: t.filter.newUses(), private: privateDirs{paths: t.opts.Private}}
		if toEnd(ctx, r.walk, yield) && !r.incomplete {
			t.reportUnmatched(r.uses)
		}
	}
}

// toEnd yields jobs. It returns false if the iteration ended early.
func toEnd(ctx context.Context, jobs iter.Seq[upload.Job], yield func(upload.Job) bool) bool {
	for job := range jobs {
		if !yield(job) {
			return false
		}
	}
	return ctx.Err() == nil
}

// reportUnmatched calls Options.Unmatched at the end of an iteration.
func (t *Tree) reportUnmatched(u *uses) {
	if include, exclude := t.filter.unused(u); t.opts.Unmatched != nil && len(include)+len(exclude) > 0 {
		t.opts.Unmatched(include, exclude)
	}
}

// Sizes yields the size in bytes of each file that Walk yields without an error. It
// keeps no names and sorts nothing. It can run at the same time as Walk, and can
// be repeated: see [upload.BatchOptions].
func (t *Tree) Sizes(ctx context.Context) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		r := &run{Tree: t, ctx: ctx, private: privateDirs{paths: t.opts.Private}}
		r.walk(func(job upload.Job) bool { return job.Err != nil || yield(job.Size) })
	}
}

// walk yields the jobs of all sources.
func (r *run) walk(yield func(upload.Job) bool) {
	r.rivals.tree = r.Tree
	defer r.rivals.close()
	if r.sorted && len(r.sources) > 1 {
		r.merge(yield)
		return
	}
	for _, s := range r.sources {
		if !r.walkOne(s, yield) {
			return
		}
	}
}

func (r *run) walkOne(s *source, yield func(upload.Job) bool) bool {
	w := &walker{run: r, src: s}
	defer w.close()
	for {
		job, ok := w.next()
		if !ok {
			return r.ctx.Err() == nil
		}
		if !yield(job) {
			return false
		}
	}
}

// merge walks all sources in the order of objects. A source is opened when its
// first possible object is next, so that only trees that overlap are open
// together.
func (r *run) merge(yield func(upload.Job) bool) {
	waiting := slices.Clone(r.sources)
	slices.SortStableFunc(waiting, func(a, b *source) int { return strings.Compare(a.object, b.object) })
	var open walkers
	defer func() {
		for _, w := range open {
			w.close()
		}
	}()
	for r.ctx.Err() == nil {
		for len(waiting) > 0 && (len(open) == 0 || waiting[0].object <= open[0].job.Spec.Object) {
			w := &mergeWalker{walker: walker{run: r, src: waiting[0]}, order: len(waiting)}
			waiting = waiting[1:]
			if w.advance() {
				heap.Push(&open, w)
			}
		}
		if len(open) == 0 || r.ctx.Err() != nil || !yield(open[0].job) {
			return
		}
		if open[0].advance() {
			heap.Fix(&open, 0)
		} else {
			heap.Pop(&open)
		}
	}
}

// mergeWalker is a walker with its next job.
type mergeWalker struct {
	walker
	job   upload.Job
	order int // larger for an earlier source
}

// advance gets the next job. If there is none, it closes the walker.
func (w *mergeWalker) advance() bool {
	var ok bool
	if w.job, ok = w.next(); !ok {
		w.close()
	}
	return ok
}

// walkers is a heap, ordered by object.
type walkers []*mergeWalker

func (h walkers) Len() int      { return len(h) }
func (h walkers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h walkers) Less(i, j int) bool {
	return cmp.Or(strings.Compare(h[i].job.Spec.Object, h[j].job.Spec.Object), cmp.Compare(h[j].order, h[i].order)) < 0
}
func (h *walkers) Push(x any) { *h = append(*h, x.(*mergeWalker)) }
func (h *walkers) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}

func newSorter(tempDir string) *runsort.Sorter {
	return runsort.New(bytes.Compare, &runsort.Options{Dir: tempDir, Memory: sorterMemory})
}
