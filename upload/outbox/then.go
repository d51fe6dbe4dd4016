package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"gcsup/internal/sourcefile"
)

// Then is what happens to a file whose object was verified.
type Then struct {
	keep bool
	dir  string // where the file is moved; "" if it is not moved
}

// Remove removes each file. It is the zero Then.
var Remove Then

// Keep leaves each file where it is. The outbox records the uploaded files, and uploads a file
// again when it has changed. The records of the last second before a power loss may be lost:
// these files are then compared with their objects.
var Keep = Then{keep: true}

// MoveTo moves each file to dir, which must be on the same file system. The file a/b becomes
// dir/a/b. If that exists already, it becomes dir/a/b.1, and so on.
func MoveTo(dir string) Then { return Then{dir: dir} }

// String returns remove, keep, or move=DIR.
func (t Then) String() string {
	switch {
	case t.keep:
		return "keep"
	case t.dir != "":
		return "move=" + t.dir
	}
	return "remove"
}

// ParseThen returns the value of a flag: remove, keep, or move=DIR.
func ParseThen(text string) (Then, error) {
	dir, move := strings.CutPrefix(text, "move=")
	switch {
	case text == "remove":
		return Remove, nil
	case text == "keep":
		return Keep, nil
	case move && dir != "":
		return MoveTo(dir), nil
	}
	return Then{}, errors.New("want remove, keep or move=DIR")
}

// removingDir has the files that are being removed, below the directory of the outbox.
const removingDir = stateDir + "/removing"

// disposer removes or moves files whose objects were verified.
type disposer struct {
	disk disk
	dir  string // of the outbox, absolute
	to   string // where files are moved; "" if they are removed
	sync func(dir string) error

	dirs  durableDirs
	aside sync.Mutex   // held while a file is moved to .failed
	check func() error // of the directory .failed; nil if there is none
}

// dispose removes or moves a file. dir is its directory, which is open. was is its metadata when it was compared.
// unchanged is called when the file has another name, see [upload.CallOptions].Dispose. If another file has
// replaced it since, that file keeps its name or gets it back, and the error wraps errAltered.
// When dispose returns nil, the change of the names is durable: otherwise an older version of the
// file could appear again after a power loss, and replace the object of a newer one.
func (d *disposer) dispose(dir *os.Root, path string, was fs.FileInfo, unchanged func() error) error {
	name, err := filepath.Rel(d.dir, path)
	if err != nil {
		return err
	}
	from := holding(d.disk, filepath.Dir(path), dir)
	if d.to != "" {
		return d.move(from, path, name, was, unchanged)
	}
	k, release, private, err := d.hide(from, path, name, was)
	defer release()
	if err != nil {
		return err
	}
	if err := d.confirm(private, path, unchanged); err != nil {
		return err
	}
	if err := k.remove(private); err != nil {
		return errors.Join(err, d.restore(private, path))
	}
	if filepath.Dir(private) != filepath.Dir(path) {
		if err := d.sync(filepath.Dir(private)); err != nil {
			return err
		}
	}
	return d.sync(filepath.Dir(path))
}

// makeDir makes a directory and those above it, as far as they do not exist, and returns d with that directory open. The
// caller must call release.
func (d *disposer) makeDir(from disk, base, dir string) (k disk, release func(), err error) {
	if d.dirs.isKnown(dir) {
		if k, release, err := hold(from, dir); err == nil {
			return k, release, nil
		}
	}
	if err = d.dirs.makeAll(from, base, dir); err == nil {
		k, release, err = hold(from, dir)
	}
	if err != nil {
		return from, func() {}, err
	}
	return k, release, nil
}

// hide gives a file that will be removed a private name, and returns that path and the disk with its directory open. It
// is in the same directory if removingDir is on another file system, or if there is no space for it, which the removal
// would free. If there is no space for that name either, the file keeps its name: a file that gets the name in the few
// microseconds after the comparison is removed instead. The caller must call release.
func (d *disposer) hide(from disk, path, name string, was fs.FileInfo) (k disk, release func(), private string, err error) {
	private = filepath.Join(d.dir, removingDir, name)
	k, release, err = d.makeDir(from, d.dir, filepath.Dir(private))
	if err == nil {
		err = d.take(k, path, private, was)
	}
	if errors.Is(err, fs.ErrExist) { // another file could not get its name back
		if err = d.restore(private, path); err == nil {
			err = d.take(k, path, private, was)
		}
	}
	full := func() bool { return noSpace(err) && !errors.Is(err, errAltered) }
	if otherFileSystem(err) || full() {
		private = filepath.Join(filepath.Dir(path), sourcefile.Aside(filepath.Base(path)))
		err = d.take(k, path, private, was)
	}
	if full() {
		private = path
		err = d.compare(k, path, was)
	}
	return k, release, private, err
}

// confirm gives a file that has the name private its name back, if it has changed.
func (d *disposer) confirm(private, path string, unchanged func() error) error {
	err := unchanged()
	if err == nil {
		return nil
	}
	return errors.Join(err, d.restore(private, path))
}

// move moves a file to d.to.
func (d *disposer) move(from disk, path, name string, was fs.FileInfo, unchanged func() error) error {
	to := filepath.Join(d.to, name)
	k, release, err := d.makeDir(from, d.to, filepath.Dir(to))
	if err != nil {
		return err
	}
	defer release()
	to, err = renameFree(to, func(to string) error { return d.take(k, path, to, was) })
	if err != nil {
		return err
	}
	if err := d.confirm(to, path, unchanged); err != nil {
		return err
	}
	if err := d.sync(filepath.Dir(to)); err != nil {
		return err
	}
	return d.sync(filepath.Dir(path))
}

// maxSuffix bounds the names that renameFree tries.
const maxSuffix = 10_000

// renameFree calls rename with the name to, and then to.1 and so on, until it does not return
// fs.ErrExist. It returns the name that was free.
func renameFree(to string, rename func(to string) error) (string, error) {
	free := to
	for n := 1; ; n++ {
		err := rename(free)
		if err == nil || !errors.Is(err, fs.ErrExist) || n > maxSuffix {
			return free, err
		}
		free = to + "." + strconv.Itoa(n)
	}
}

// take renames a file, and checks that what it has renamed is the file with the metadata was.
func (d *disposer) take(k disk, path, to string, was fs.FileInfo) error {
	if err := k.rename(path, to); err != nil {
		return err
	}
	err := d.compare(k, to, was)
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("%s: %w", path, err), d.restore(to, path))
}

// compare returns errAltered unless the file at path has the metadata was.
func (d *disposer) compare(k disk, path string, was fs.FileInfo) error {
	now, err := k.lstat(path)
	if err == nil && (!k.same(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime())) {
		err = errAltered
	}
	return err
}

// restore gives a file its name back. If another file has the name, both stay: the file goes to
// .failed.
func (d *disposer) restore(private, path string) error {
	if private == path { // it kept its name
		return nil
	}
	err := d.dirs.makeAll(d.disk, d.dir, filepath.Dir(path))
	if err == nil {
		err = d.disk.rename(private, path)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if now, nerr := d.disk.lstat(path); nerr == nil {
		if was, werr := d.disk.lstat(private); werr == nil && d.disk.same(was, now) {
			return d.disk.remove(private) // the file has both names
		}
	}
	name, err := filepath.Rel(d.dir, path)
	if err != nil {
		return err
	}
	return d.setAside(private, Failure{
		Name: filepath.ToSlash(name), Kind: "source_changed",
		Error: "it was being removed when another file got its name; the newer file is uploaded, and this one may not have been",
	})
}

// recover gives the files that an earlier process did not finish to remove their names back. They
// are then compared with their objects.
func (d *disposer) recover() error {
	root := filepath.Join(d.dir, removingDir) // which only this user can write to
	return filepath.WalkDir(root, func(private string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir():
			return err
		}
		name, err := filepath.Rel(root, private)
		if err != nil {
			return err
		}
		return d.restore(private, filepath.Join(d.dir, name))
	})
}

// MoveDirError is the error of Open if files cannot be moved to the directory of [MoveTo].
type MoveDirError struct {
	Dir string
	Err error
}

// Error names the directory.
func (e *MoveDirError) Error() string {
	return fmt.Sprintf("files cannot be moved to %s: %v", e.Dir, e.Err)
}

// Unwrap returns the reason.
func (e *MoveDirError) Unwrap() error { return e.Err }

// checkMove returns an error unless files of the outbox can be renamed into dir.
func checkMove(d disk, box, dir string) error {
	if rel, err := filepath.Rel(box, dir); err == nil && filepath.IsLocal(rel) && (rel == "." || !hidden(filepath.ToSlash(rel))) {
		return &MoveDirError{dir, errors.New("it is inside the outbox: its files would be uploaded again")}
	}
	if err := makeAll(d, dir); noSpace(err) {
		return err
	} else if err != nil {
		return &MoveDirError{dir, err}
	}
	name := tempPrefix + "probe-" + strconv.FormatUint(rand.Uint64(), 36)
	probe, to := filepath.Join(box, stateDir, name), filepath.Join(dir, name)
	f, err := d.create(probe, 0o600)
	if err != nil {
		return err
	}
	_ = f.Close()
	err = d.rename(probe, to)
	if err != nil {
		_ = d.remove(probe)
	}
	switch {
	case otherFileSystem(err):
		return &MoveDirError{dir, errors.New("it is on another file system than the outbox: a file can be moved there only by a copy; name a directory on the same one")}
	case noSpace(err):
		return err
	case err != nil:
		return &MoveDirError{dir, err}
	}
	return d.remove(to)
}
