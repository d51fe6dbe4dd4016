package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	failedDir    = ".failed"
	reasonSuffix = ".reason.json"
)

// Failure is why a file was moved to the directory .failed. It is a file of JSON beside it, whose name
// ends in .reason.json.
type Failure struct {
	Name        string    `json:"name"` // of the file in the outbox
	File        string    `json:"-"`    // its name below .failed
	Size        int64     `json:"-"`
	Destination string    `json:"destination,omitempty"`
	Kind        string    `json:"kind,omitempty"` // see upload.ErrorKind
	Error       string    `json:"error,omitempty"`
	Attempts    int       `json:"attempts,omitempty"`
	Time        time.Time `json:"time,omitzero"`
}

// setAside moves a file to the directory .failed, with the reason beside it. When it returns nil,
// both are durable. It replaces no file: the reason of a can have the name of another file that failed.
func (d *disposer) setAside(path string, why Failure) error {
	d.aside.Lock()
	defer d.aside.Unlock()
	if d.check != nil {
		if err := d.check(); err != nil {
			return err
		}
	}
	to := filepath.Join(d.dir, failedDir, shortened(filepath.FromSlash(why.Name)))
	dir := filepath.Dir(to)
	if err := d.dirs.makeAll(d.disk, d.dir, dir); err != nil {
		return err
	}
	if !utf8.ValidString(why.Name) {
		why.Name = "" // JSON would change it; it is then that below .failed
	}
	if why.Time.IsZero() {
		why.Time = time.Now().UTC().Truncate(time.Second)
	}
	text, err := json.MarshalIndent(why, "", "  ")
	if err != nil {
		return err
	}
	_, err = renameFree(to, func(to string) error {
		if _, err := d.disk.lstat(to); err == nil {
			return fs.ErrExist
		}
		if err := writeFile(d.disk, to+reasonSuffix, append(text, '\n')); err != nil {
			return err
		}
		err := d.disk.sync(dir)
		if err == nil {
			err = d.disk.rename(path, to)
		}
		if err != nil {
			_ = d.disk.remove(to + reasonSuffix)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := d.disk.sync(dir); err != nil {
		return err
	}
	return d.disk.sync(filepath.Dir(path))
}

// maxName is the length of the longest name that leaves room for a number and the suffix of a reason: file
// systems allow 255 bytes.
const maxName = 255 - len(".10000") - len(reasonSuffix)

// shortened returns a path whose last element is not too long for .failed.
func shortened(path string) string {
	dir, name := filepath.Split(path)
	if len(name) <= maxName {
		return path
	}
	end := maxName
	for end > maxName-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return dir + name[:end]
}

// writeFile makes a file with that content durably. If there is a file of that name, the error wraps
// fs.ErrExist. The directory must be synced.
func writeFile(d disk, path string, content []byte) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+"new")
	f, err := d.create(temp, 0o666)
	if errors.Is(err, fs.ErrExist) { // an earlier process left it
		if err = d.remove(temp); err == nil {
			f, err = d.create(temp, 0o666)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.rename(temp, path)
	}
	if err != nil {
		_ = d.remove(temp)
	}
	return err
}

// Failed returns the files in the directory .failed of an outbox, sorted by name. It ignores what the outbox would not
// upload: hidden files, lost+found, and everything that is not a regular file.
func Failed(dir string) ([]Failure, error) {
	if err := checkDir(dir, failedDir); err != nil {
		return nil, err
	}
	disk := boxDisk(dir)
	root := filepath.Join(dir, failedDir)
	var list []Failure
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case path == root && !entry.IsDir():
			return &fs.PathError{Op: "readdir", Path: root, Err: syscall.ENOTDIR}
		case path == root:
			return nil
		}
		file, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden(filepath.ToSlash(file)):
			return fs.SkipDir
		case !entry.Type().IsRegular(), hidden(filepath.ToSlash(file)), isReason(path):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		why := Failure{Name: filepath.ToSlash(file)}
		if isReason(path + reasonSuffix) {
			_ = json.Unmarshal(readReason(disk, path+reasonSuffix), &why) // a damaged reason is no reason to fail
		}
		if !filepath.IsLocal(filepath.FromSlash(why.Name)) || hidden(why.Name) {
			why.Name = filepath.ToSlash(file)
		}
		why.File, why.Size = filepath.ToSlash(file), info.Size()
		list = append(list, why)
		return nil
	})
	slices.SortFunc(list, func(a, b Failure) int { return strings.Compare(a.File, b.File) })
	return list, err
}

// reasonLimit bounds the size of a reason. It has at most two names, a URL and a cause.
const reasonLimit = 64 << 10

// readReason returns the content of a reason, or nil if it is not a regular file of that size. Another user may have made
// a link, a huge file, or a pipe, whose read would never end.
func readReason(d osDisk, path string) []byte {
	f, err := d.open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, reasonLimit+1))
	if err != nil || len(text) > reasonLimit {
		return nil
	}
	return text
}

// isReason reports whether the file at path is a reason. Its file need not exist: a process may have been
// killed between the two. A file of such a name that failed has a reason of its own.
func isReason(path string) bool {
	if !strings.HasSuffix(path, reasonSuffix) {
		return false
	}
	_, err := os.Lstat(path + reasonSuffix)
	return err != nil
}

// Retry moves files from the directory .failed back into the outbox, and removes their reasons. names
// are names below .failed; without names, all files are moved. A process that runs the outbox uploads
// them. Retry returns the files that it moved. It does not replace a file of the outbox: the
// error then wraps fs.ErrExist, and the other files are moved.
func Retry(dir string, names ...string) (moved []Failure, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	list, err := Failed(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		if !slices.ContainsFunc(list, func(f Failure) bool { return f.File == name }) {
			errs = append(errs, &fs.PathError{Op: "retry", Path: filepath.Join(dir, failedDir, name), Err: fs.ErrNotExist})
		}
	}
	d, dirs := boxDisk(dir), new(durableDirs)
	for _, f := range list {
		if len(names) > 0 && !slices.Contains(names, f.File) {
			continue
		}
		from, to := filepath.Join(dir, failedDir, filepath.FromSlash(f.File)), filepath.Join(dir, filepath.FromSlash(f.Name))
		err := dirs.makeAll(d, dir, filepath.Dir(to))
		if err == nil {
			err = d.rename(from, to)
		}
		if err == nil {
			err = d.sync(filepath.Dir(to))
		}
		if err == nil {
			err = d.sync(filepath.Dir(from))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("retry %s: %w", f.File, err))
			continue
		}
		if reason := from + reasonSuffix; isReason(reason) { // otherwise it is a file that failed
			_ = d.remove(reason)
		}
		moved = append(moved, f)
	}
	return moved, errors.Join(errs...)
}
