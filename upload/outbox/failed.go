package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
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
	Kind        string    `json:"kind,omitempty"` // see package errkind
	Error       string    `json:"error,omitempty"`
	Attempts    int       `json:"attempts,omitempty"`
	Time        time.Time `json:"time,omitzero"`
}

// setAside moves a file to the directory .failed, with the reason beside it. When it returns nil,
// both are durable.
func setAside(d disk, box, path string, why Failure) error {
	to := filepath.Join(box, failedDir, filepath.FromSlash(why.Name))
	dir := filepath.Dir(to)
	if err := makeDirs(d, dir); err != nil {
		return err
	}
	if why.Time.IsZero() {
		why.Time = time.Now().UTC().Truncate(time.Second)
	}
	text, err := json.MarshalIndent(why, "", "  ")
	if err != nil {
		return err
	}
	_, err = renameFree(to, func(to string) error {
		if _, err := d.lstat(to); err == nil {
			return fs.ErrExist // its reason must not be replaced
		}
		if err := writeFile(d, to+reasonSuffix, append(text, '\n')); err != nil {
			return err
		}
		if err := d.sync(dir); err != nil {
			return err
		}
		return d.rename(path, to)
	})
	if err != nil {
		return err
	}
	if err := d.sync(dir); err != nil {
		return err
	}
	return d.sync(filepath.Dir(path))
}

// writeFile makes a file with that content durably, and replaces an earlier one. The directory must be
// synced.
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
		err = d.replace(temp, path)
	}
	if err != nil {
		_ = d.remove(temp)
	}
	return err
}

// Failed returns the files in the directory .failed of an outbox, sorted by name.
func Failed(dir string) ([]Failure, error) {
	root := filepath.Join(dir, failedDir)
	var list []Failure
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || entry.IsDir():
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil || temporary(entry.Name()) || isReason(path) {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		why := Failure{Name: filepath.ToSlash(file)}
		if text, err := os.ReadFile(path + reasonSuffix); err == nil {
			_ = json.Unmarshal(text, &why) // a damaged reason is no reason to fail
		}
		if !filepath.IsLocal(filepath.FromSlash(why.Name)) {
			why.Name = filepath.ToSlash(file)
		}
		why.File, why.Size = filepath.ToSlash(file), info.Size()
		list = append(list, why)
		return nil
	})
	slices.SortFunc(list, func(a, b Failure) int { return strings.Compare(a.File, b.File) })
	return list, err
}

// isReason reports whether the file at path is the reason of another file.
func isReason(path string) bool {
	file, ok := strings.CutSuffix(path, reasonSuffix)
	if !ok {
		return false
	}
	_, err := os.Lstat(file)
	return err == nil
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
	d := osDisk{}
	for _, f := range list {
		if len(names) > 0 && !slices.Contains(names, f.File) {
			continue
		}
		from, to := filepath.Join(dir, failedDir, filepath.FromSlash(f.File)), filepath.Join(dir, filepath.FromSlash(f.Name))
		err := makeDirs(d, filepath.Dir(to))
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
		_ = d.remove(from + reasonSuffix)
		moved = append(moved, f)
	}
	return moved, errors.Join(errs...)
}
