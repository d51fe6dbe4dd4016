package tree

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gcsup/upload"
)

// A walker returns the jobs of one source.
type walker struct {
	run     *run
	src     *source
	root    *os.Root
	stack   []*level // open directories, the root first
	started bool
}

// A level is an open directory.
type level struct {
	dir     *os.Root
	entries lister
	path    string // of the directory, with a separator at the end or ""
	rel     string // relative to the source; "" or with a slash at the end
	object  string // the start of the object names

	included bool // the files need not match Options.Include

	info fs.FileInfo // of dir; nil if links are not followed
}

// run is the shared state of the walkers of one iteration.
type run struct {
	*Tree
	ctx    context.Context
	sorted bool
	uses   *uses // nil for Sizes
	held   int   // entries in memory
	rivals rivals

	private privateDirs

	incomplete bool // something could not be listed
}

// next returns the next job, or false at the end, or if the context is done.
func (w *walker) next() (upload.Job, bool) {
	for w.run.ctx.Err() == nil {
		if !w.started {
			w.started = true
			if job, ok := w.start(); ok {
				return job, true
			}
			continue
		}
		if len(w.stack) == 0 {
			break
		}
		top := w.stack[len(w.stack)-1]
		e, err := top.entries.next()
		if err == io.EOF {
			w.pop()
			continue
		}
		if err != nil {
			return w.run.unlisted(top.path, top.object, err), true
		}
		if job, ok := w.entry(top, e); ok {
			return job, true
		}
	}
	return upload.Job{}, false
}

// start opens the source. It returns a job for a file, or an error.
func (w *walker) start() (upload.Job, bool) {
	s := w.src
	switch {
	case s.skip:
		return upload.Job{}, false
	case !s.isDir:
		if !w.run.wants(s.object, path.Base(filepath.ToSlash(s.path)), w.run.filter.all()) {
			return upload.Job{}, false
		}
		if w.run.private.has(s.Path) {
			return w.run.failed(s.path, s.object, errPrivateSource), true
		}
		info, err := inspectPath(s.Path, w.run.opts.IgnoreSymlinks)
		return w.file(s.object, s.path, info, err)
	}
	if s.object != "" {
		if err := checkDir(s.object); err != nil {
			return w.run.unlisted(s.path, s.object, err), true
		}
	}
	root, err := os.OpenRoot(s.Path)
	if err != nil {
		return w.run.unlisted(s.path, s.object, err), true
	}
	w.root = root
	top := &level{dir: root, path: s.path, object: s.object, included: w.run.filter.all()}
	switch err := w.push(top); {
	case err == errPrivate:
		return w.run.failed(s.path, s.object, err), true
	case err != nil:
		return w.run.unlisted(s.path, s.object, err), true
	}
	return upload.Job{}, false
}

// push starts a directory. It sets the entries and the info of l.
func (w *walker) push(l *level) error {
	if private, err := w.run.private.isRoot(l.dir); err != nil {
		return err
	} else if private {
		return errPrivate
	}
	if w.run.opts.FollowSymlinks {
		if err := w.checkLoop(l); err != nil {
			return err
		}
	}
	r, err := openReader(l.dir, l.path, &w.run.opts)
	if err != nil {
		return err
	}
	l.entries = r
	if w.run.sorted {
		l.entries = sortEntries(w.run.ctx, r, w.run.opts.TempDir, &w.run.held)
	}
	w.stack = append(w.stack, l)
	return nil
}

// checkLoop returns an error if l is the same directory as one of those above it. It
// sets l.info.
func (w *walker) checkLoop(l *level) error {
	info, err := l.dir.Stat(".")
	if err != nil {
		return err
	}
	for _, above := range w.stack {
		if os.SameFile(info, above.info) {
			return notFollowed(LinkLoop, "it leads to %s, in which it is", cmp.Or(above.path, "."))
		}
	}
	l.info = info
	return nil
}

func (w *walker) pop() {
	last := len(w.stack) - 1
	l := w.stack[last]
	l.entries.close()
	if l.dir != w.root {
		_ = l.dir.Close()
	}
	w.stack[last] = nil
	w.stack = w.stack[:last]
}

func (w *walker) close() {
	for len(w.stack) > 0 {
		w.pop()
	}
	if w.root != nil {
		_ = w.root.Close()
	}
}

// entry returns the job for an entry. It starts a directory.
func (w *walker) entry(top *level, e entry) (upload.Job, bool) {
	name := string(e)
	if e.isDir() {
		return w.dir(top, name)
	}
	if original, ok := strings.CutSuffix(name, asideMark); ok {
		return w.aside(top, original)
	}
	rel, object := "", top.object+name
	if w.run.filter.active() {
		rel = top.rel + name
	}
	if !w.run.wants(object, rel, top.included) {
		return w.unselected(top, name, rel, object)
	}
	info, err := w.inspect(top, name)
	return w.file(object, top.path+name, info, err)
}

// inspect returns the size and time of the file name in top.
func (w *walker) inspect(top *level, name string) (fs.FileInfo, error) {
	if w.run.opts.FollowSymlinks {
		return inspectFollowed(top.path + name)
	}
	return inspect(w.root, top.rel, top.dir, name, &w.run.opts)
}

// unselected returns a job for a symbolic link that Include does not select, and that is not followed
// to a file. It may lead to a directory, and Include may select files below that.
func (w *walker) unselected(top *level, name, rel, object string) (upload.Job, bool) {
	if !w.run.opts.ReportLeftOut || w.run.filter.all() || !w.run.opts.Shard.Has(object) {
		return upload.Job{}, false
	}
	if excluded, _ := w.run.filter.dir(nil, rel, false); excluded {
		return upload.Job{}, false
	}
	if info, err := top.dir.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return upload.Job{}, false
	}
	if _, err := w.inspect(top, name); err == nil || err == errGone {
		return upload.Job{}, false
	}
	return w.run.failed(top.path+name, object, errUnselected), true
}

// dir starts the directory with the given name, which has a slash at the end. It
// returns a job if that fails.
func (w *walker) dir(top *level, name string) (upload.Job, bool) {
	rel, object := top.rel+name, top.object+name
	name = name[:len(name)-1]
	dirPath := top.path + name + string(os.PathSeparator)
	excluded, included := w.run.filter.dir(w.run.uses, rel[:len(rel)-1], top.included)
	if excluded {
		return upload.Job{}, false
	}
	if err := checkDir(object); err != nil {
		return w.run.unlisted(dirPath, object, err), true
	}
	err := w.open(top, name, &level{path: dirPath, rel: rel, object: object, included: included})
	if err == errPrivate {
		return w.run.failed(dirPath, object, err), w.run.opts.Shard.Has(object)
	}
	if _, loop := errors.AsType[*EntryError](err); loop {
		switch {
		case !included && w.run.opts.ReportLeftOut:
			err = errUnselected
		case !included || !w.run.opts.Shard.Has(object):
			return upload.Job{}, false
		}
		return w.run.failed(dirPath, object, err), true
	}
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return w.run.unlisted(dirPath, object, err), true
	case w.run.opts.ReportLeftOut:
		return w.run.failed(dirPath, object, errVanished), true
	}
	return upload.Job{}, false
}

// open opens and starts the directory name in top. It sets l.dir.
func (w *walker) open(top *level, name string, l *level) (err error) {
	if w.run.opts.FollowSymlinks {
		l.dir, err = os.OpenRoot(l.path)
	} else {
		l.dir, err = top.dir.OpenRoot(name)
	}
	if err != nil {
		return err
	}
	if err = w.push(l); err != nil {
		_ = l.dir.Close()
	}
	return err
}

// wants reports whether a file is selected by the patterns, and in the shard.
// included reports whether one of its directories is selected. A pattern that matches
// only files of other shards is used, too.
func (r *run) wants(object, rel string, included bool) bool {
	return (!r.filter.active() || r.filter.file(r.uses, rel, included)) && r.opts.Shard.Has(object)
}

// file returns the job for a file with the outcome of its inspection, or false if it
// is left out.
func (w *walker) file(object, path string, info fs.FileInfo, err error) (upload.Job, bool) {
	if left := w.run.opts.leaveOut(info, err); left != nil {
		if w.run.opts.ReportLeftOut {
			return w.run.failed(path, object, left), true
		}
		return upload.Job{}, false
	}
	if err == nil {
		err = checkName(object)
	}
	if err == nil {
		err = w.run.rivals.check(w.src, object)
	}
	if err != nil {
		return w.run.failed(path, object, err), true
	}
	job := w.run.job(object, path, info)
	if w.root != nil && !w.run.opts.FollowSymlinks {
		job.Below = cmp.Or(w.src.path, ".")
	}
	return job, true
}

// unlisted returns a job for a directory that cannot be listed.
func (r *run) unlisted(path, object string, err error) upload.Job {
	r.incomplete = true
	return r.failed(path, object, err)
}

// failed returns a job for a file or directory that is not uploaded.
func (t *Tree) failed(path, object string, err error) upload.Job {
	if path == "" {
		path = "." // the current directory
	}
	job := upload.Job{Path: path, Spec: t.spec, Err: withPath(path, err)}
	job.Spec.Object = object
	return job
}

func (t *Tree) job(object, path string, info fs.FileInfo) upload.Job {
	job := upload.Job{Path: path, Spec: t.spec, Size: info.Size(), ModTime: info.ModTime()}
	job.Spec.Object = object
	return job
}
