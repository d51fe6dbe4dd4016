package outbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

// tempPrefix begins the names of files that are not complete.
const tempPrefix = ".gcsup-"

// temporary reports whether a file is one that Put, or another function, did not complete. A file gcsup-x that is being
// removed is none, although the name that it has meanwhile begins like one.
func temporary(name string) bool {
	_, aside := sourcefile.FromAside(name)
	return strings.HasPrefix(name, tempPrefix) && !aside
}

// hidden reports whether the outbox ignores a file, because a part of its name begins with a dot, or because it
// is in the directory that a check of the file system makes. name has slashes.
func hidden(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "lost+found" || strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// CheckName returns an error unless name is the name of a file that an outbox would upload: relative, with
// slashes, in UTF-8, and without a part that begins with a dot.
func CheckName(name string) error {
	switch {
	case name == "" || path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)):
		return fmt.Errorf("name %q: want the name of a file below the directory", name)
	case hidden(name):
		return fmt.Errorf("name %q: the outbox ignores names that begin with a dot, and lost+found", name)
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\r\n"):
		return fmt.Errorf("name %q: the service allows only names in UTF-8 without line breaks", name)
	}
	return nil
}

// Put copies the file at path to an outbox, under a name such as a or a/b. When it returns nil, the
// copy is durable and complete. The outbox need not run. The copy has the modification time of
// the file.
//
// If the outbox has a file with that name already, Put returns nil if it has the same content,
// and otherwise an error that wraps fs.ErrExist. It replaces no file.
func Put(dir, path, name string) error { return putFile(boxDisk(dir), dir, path, name) }

func putFile(d disk, dir, path, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return &fs.PathError{Op: "put", Path: dir, Err: errors.New("not a directory")}
	}
	src, err := sourcefile.Open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	for range putTries {
		if err = putOpen(d, dir, path, name, src); err != errFreed {
			return err
		}
	}
	return &fs.PathError{Op: "put", Path: filepath.Join(dir, name), Err: errFreed}
}

// errFreed means that a file had the name, and was uploaded and removed before it was compared. The name is free.
var errFreed = errors.New("other processes keep putting files with that name")

// putTries bounds how often a Put meets files that are uploaded at that moment.
const putTries = 100

// putOpen puts the open file at path. It returns errFreed if it must be called again.
func putOpen(d disk, dir, path, name string, src *sourcefile.File) error {
	to := filepath.Join(dir, filepath.FromSlash(name))
	if same, err := sameContent(dir, name, src); err == nil {
		return keepSame(d, dir, to, same)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was, err := src.Identity()
	if err != nil {
		return err
	}
	err = putCopy(d, dir, to, io.NewSectionReader(src, 0, src.Size()), src.Info(), func() error {
		now, err := src.Identity()
		if err == nil && (now != was) {
			err = fmt.Errorf("%s: %w while it was copied", path, chunk.ErrChanged)
		}
		return err
	})
	if errors.Is(err, fs.ErrExist) { // another process was faster
		same, err := sameContent(dir, name, src)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errFreed
		case err != nil:
			return err
		}
		return keepSame(d, dir, to, same)
	}
	return err
}

// putCopy makes a file in an outbox with the content of r durably. It has the permissions and the modification
// time of like. confirm is called when r was read.
func putCopy(d disk, box, to string, r io.Reader, like fs.FileInfo, confirm func() error) (err error) {
	dir := filepath.Dir(to)
	if err := new(durableDirs).makeAll(d, filepath.Clean(box), dir); err != nil {
		return err
	}
	temp := filepath.Join(dir, tempPrefix+"put-"+strconv.FormatUint(rand.Uint64(), 36))
	f, err := d.create(temp, like.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = d.remove(temp)
		}
	}()
	_, err = io.Copy(f, r)
	if err == nil {
		err = confirm()
	}
	if err == nil {
		// A file whose change time is later than its modification time is complete at once, see
		// rules.rest. A tick of the clock of the file system takes at most 10 ms.
		modTime := like.ModTime()
		if latest := time.Now().Add(-20 * time.Millisecond); modTime.After(latest) {
			modTime = latest
		}
		err = d.setTime(temp, modTime)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := d.rename(temp, to); err != nil {
		return err
	}
	return syncPut(d, dir)
}

// syncPut makes the name of a file durable. The file stays even if that fails, because it may be
// durable, and the same Put then tries again.
func syncPut(d disk, dir string) error {
	if err := d.sync(dir); err != nil {
		return fmt.Errorf("the file is in the outbox, but may not survive a power loss: %w", err)
	}
	return nil
}

// keepSame ends a Put whose file is there already.
func keepSame(d disk, box, to string, same bool) error {
	if !same {
		return &fs.PathError{Op: "put", Path: to, Err: fmt.Errorf("a file with other content has that name: %w", fs.ErrExist)}
	}
	if err := new(durableDirs).makeAll(d, filepath.Clean(box), filepath.Dir(to)); err != nil { // another Put may have made them
		return err
	}
	f, err := boxDisk(box).open(to)
	if errors.Is(err, fs.ErrNotExist) { // it was uploaded meanwhile
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil { // another program may have made it
		return err
	}
	return syncPut(d, filepath.Dir(to))
}

// sameContent reports whether the file name of the outbox has the content of src. If it does not exist, the error wraps
// fs.ErrNotExist. What is not a regular file, and would not be uploaded, never has.
func sameContent(box, name string, src *sourcefile.File) (bool, error) {
	other, err := sourcefile.OpenBelow(box, filepath.FromSlash(name))
	if errors.Is(err, chunk.ErrNotRegular) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer other.Close()
	if other.Size() != src.Size() {
		return false, nil
	}
	a, b := make([]byte, 256<<10), make([]byte, 256<<10)
	for at := int64(0); at < src.Size(); at += int64(len(a)) {
		n := min(int64(len(a)), src.Size()-at)
		if _, err := src.ReadAt(a[:n], at); err != nil {
			return false, err
		}
		if _, err := other.ReadAt(b[:n], at); err != nil {
			return false, err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}
