package tree

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"gcsup/upload"
)

// maxLine is the length of a path in a list, in bytes.
const maxLine = 64 << 10

// List returns the jobs of a list of files, such as the output of find. The
// paths in r end in the byte sep, '\n' or 0. The last path need not end in it.
// Empty paths are ignored, and a carriage return before '\n' is removed.
//
// spec is the template of all jobs; its Object is the prefix of the object
// names. The rest of an object name is the path:
//
//	a/b, ./a/b, a//b  a/b
//	/a/b              a/b
//	C:\a\b            a/b, on Windows
//	../b, a/../b      refused ([ErrName]), because a can be a symbolic link
//
// A relative path is relative to opts.Dir, or, if that is "", to the current directory. If opts.Dir
// is set, an absolute path must be below it ([ErrName]), and the rest of the object name is
// the path relative to opts.Dir:
//
//	in r      file     rest
//	a/b       DIR/a/b  a/b
//	/DIR/a/b  DIR/a/b  a/b
//
// A file that is missing is reported in its job, and so is a directory. A symbolic link
// is followed anywhere. The patterns of opts apply to the object name without the prefix.
//
// A path that was already in the list is ignored. Another path for the same object
// is reported with [ErrCollision], and the first one is uploaded, unless the limits of
// opts leave it out. List finds
// both by a hash of 8 bytes for each name. It keeps these in memory, in 12 bytes each.
// Two of ten million names have the same hash in about one of 370,000 lists. The
// second file is then left out. If opts.Sorted is set, List keeps no hashes
// and compares the names themselves.
//
// List reads r during the iteration, which can be done once. If r cannot be read,
// the last job has the error and no path.
func List(ctx context.Context, r io.Reader, sep byte, spec upload.Spec, opts *Options) (iter.Seq[upload.Job], error) {
	o, f, prefix, err := checkOptions(spec, opts)
	if err != nil {
		return nil, err
	}
	if sep != '\n' && sep != 0 {
		return nil, fmt.Errorf("%w: the paths of a list end in a newline or in NUL, not %q", ErrUsage, sep)
	}
	l := &list{Tree: Tree{spec: spec, opts: o, filter: f}, ctx: ctx, prefix: prefix, lines: bufio.NewReaderSize(r, maxLine), sep: sep, uses: f.newUses(), private: privateDirs{paths: o.Private}}
	if o.Dir != "" {
		if l.dir, err = filepath.Abs(o.Dir); err != nil {
			return nil, err
		}
	}
	jobs := l.unsorted
	if o.Sorted {
		jobs = l.sorted
	}
	return func(yield func(upload.Job) bool) {
		if toEnd(ctx, jobs, yield) && !l.incomplete {
			l.reportUnmatched(l.uses)
		}
	}, nil
}

type list struct {
	Tree   // without sources
	ctx    context.Context
	prefix string
	dir    string // the absolute path of Options.Dir; "" if that is not set
	lines  *bufio.Reader
	sep    byte
	uses   *uses

	private privateDirs

	incomplete bool // the list cannot be read, or a path in it is wrong
}

// listed is a path in the list.
type listed struct {
	path, root, object string // see resolve
	err                error
}

// wanted yields the paths that the patterns and the shard select, and the errors.
func (l *list) wanted(yield func(listed) bool) {
	for path, err := range l.paths() {
		if l.ctx.Err() != nil {
			return
		}
		p := listed{path: path, err: err}
		if err == nil {
			p = l.resolve(path)
		}
		l.incomplete = l.incomplete || p.err != nil
		wanted := p.err != nil || l.filter.path(l.uses, p.object[len(l.prefix):]) && l.opts.Shard.Has(p.object)
		if wanted && !yield(p) {
			return
		}
	}
}

// unsorted yields the jobs in the order of the list.
func (l *list) unsorted(yield func(upload.Job) bool) {
	seen := newSeen()
	for p := range l.wanted {
		if p.err == nil {
			p.err = seen.add(p.root, p.object)
		}
		if p.err != errIgnored && !l.yield(p.path, p.object, p.err, yield) {
			return
		}
	}
}

// sorted yields the jobs in the order of their objects. Names that have no
// object come first.
func (l *list) sorted(yield func(upload.Job) bool) {
	sorter := newSorter(l.opts.TempDir)
	defer sorter.Close()
	var record []byte
	for p := range l.wanted {
		if p.err != nil {
			if !l.yield(p.path, p.object, p.err, yield) {
				return
			}
			continue
		}
		record = append(append(append(record[:0], p.object...), 0), p.path...)
		if err := sorter.Add(record); err != nil {
			l.incomplete = true
			yield(upload.Job{Spec: l.spec, Err: fmt.Errorf("%w: %w", ErrSort, err)})
			return
		}
	}
	var object, path string
	for record, err := range sorter.Sorted() {
		if l.ctx.Err() != nil {
			return
		}
		if err != nil {
			yield(upload.Job{Spec: l.spec, Err: fmt.Errorf("%w: %w", ErrSort, err)})
			return
		}
		o, p, _ := bytes.Cut(record, []byte{0})
		if string(o) == object {
			if string(p) != path {
				path = string(p)
				if !l.yield(path, object, sameObject(object), yield) {
					return
				}
			}
			continue
		}
		object, path = string(o), string(p)
		if !l.yield(path, object, nil, yield) {
			return
		}
	}
}

func sameObject(object string) error {
	return fmt.Errorf("%w: another path in the list also goes to the object %s", ErrCollision, object)
}

// paths returns the paths of the list. The path of a last pair with an error
// is empty, unless only this path is too long.
func (l *list) paths() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			line, err := l.lines.ReadSlice(l.sep)
			if errors.Is(err, bufio.ErrBufferFull) {
				start := string(line[:40])
				for errors.Is(err, bufio.ErrBufferFull) {
					_, err = l.lines.ReadSlice(l.sep)
				}
				if !yield(start+"...", fmt.Errorf("%w: path of more than %d bytes; %s", ErrName, maxLine, l.otherSeparator())) {
					return
				}
				line = nil
			}
			if n := len(line); n > 0 && line[n-1] == l.sep {
				line = line[:n-1]
				if l.sep == '\n' {
					line = bytes.TrimSuffix(line, []byte{'\r'})
				}
			}
			// If r fails, the line may be the beginning of another path.
			if len(line) > 0 && (err == nil || err == io.EOF) && !yield(string(line), nil) {
				return
			}
			if err != nil {
				if err != io.EOF {
					yield("", fmt.Errorf("read the list of files: %w", err))
				}
				return
			}
		}
	}
}

func (l *list) otherSeparator() string {
	if l.sep == 0 {
		return "is the list separated by newlines?"
	}
	return "is the list separated by NUL?"
}

// resolve returns the clean path, its root ("", "/" or a volume), and the name of the
// object.
func (l *list) resolve(path string) listed {
	if strings.IndexByte(path, 0) >= 0 {
		return listed{path: path, err: fmt.Errorf("%w: %q has a NUL; %s", ErrName, path[:min(len(path), 80)], l.otherSeparator())}
	}
	slashed := filepath.ToSlash(path)
	for elem := range strings.SplitSeq(slashed, "/") {
		if elem == ".." {
			return listed{path: path, err: fmt.Errorf("%w: %q has an element \"..\"", ErrName, path)}
		}
	}
	clean := filepath.Clean(path)
	if l.dir != "" && filepath.IsAbs(clean) {
		rel, err := filepath.Rel(l.dir, clean)
		if err != nil || !filepath.IsLocal(rel) {
			return listed{path: path, err: fmt.Errorf("%w: it is not below %s", ErrName, l.dir)}
		}
		clean = rel
	}
	slashed = filepath.ToSlash(clean)
	name := strings.TrimLeft(slashed[len(filepath.VolumeName(clean)):], "/")
	root := slashed[:len(slashed)-len(name)]
	if name == "." {
		name = ""
	}
	object := l.prefix + name
	return listed{filepath.Join(l.opts.Dir, clean), root, object, checkName(object)}
}

// yield yields the job of a path, or err.
func (l *list) yield(path, object string, err error, yield func(upload.Job) bool) bool {
	if err != nil {
		job := upload.Job{Path: path, Spec: l.spec, Err: err}
		job.Spec.Object = object
		if path != "" {
			job.Err = withPath(path, err)
		}
		return yield(job)
	}
	if l.private.has(path) {
		return yield(l.failed(path, object, errPrivate))
	}
	info, err := inspectPath(path, l.opts.IgnoreSymlinks)
	if !l.opts.within(info) {
		return true
	}
	switch err {
	case nil:
		return yield(l.job(object, path, info))
	case errIgnored:
		return true
	case errGone:
		err = fs.ErrNotExist
	}
	return yield(l.failed(path, object, err))
}

// seen is the set of the names of a list. It keeps a hash for each name, so that its size does not
// depend on the length of the names.
type seen struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
	roots  []string // of the paths, almost always one or two
}

func newSeen() *seen {
	return &seen{seed: maphash.MakeSeed(), hashes: map[uint64]struct{}{}}
}

// add adds a path, given by its root and its object. It returns errIgnored if the
// path is already in the set, and ErrCollision if another one has its object.
func (s *seen) add(root, object string) error {
	at := slices.Index(s.roots, root)
	if at < 0 {
		at = len(s.roots)
		s.roots = append(s.roots, root)
	}
	h := maphash.String(s.seed, object)
	for i := range s.roots {
		if _, ok := s.hashes[s.key(h, i)]; ok {
			if i == at {
				return errIgnored
			}
			return sameObject(object)
		}
	}
	s.hashes[s.key(h, at)] = struct{}{}
	return nil
}

// key returns the hash of a path whose object has hash h.
func (s *seen) key(h uint64, root int) uint64 { return h + uint64(root)*0x9e3779b97f4a7c15 }
