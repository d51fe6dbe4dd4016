package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	tokenSuffix   = ".json"
	tempSuffix    = ".tmp"
	lockSuffix    = ".lock"
	damagedSuffix = ".damaged"

	tokenLimit = 16 << 20 // a Token is about 1 KiB, plus 40 bytes for each 32 MiB in flight
)

// Dir is a [Store] in a directory of its own: one file per upload, mode 0600,
// written to a temporary file, synced, renamed, and the directory synced.
// It does not follow symbolic links out of the directory. Save and Delete of
// an upload are for the one who holds its lock.
type Dir struct {
	root  *os.Root
	saves idMutex // Saves of one upload may come from two goroutines
}

var (
	_ Store      = (*Dir)(nil)
	_ Quarantine = (*Dir)(nil)
)

// OpenDir opens the store in dir, which is made, with its parents, if it is
// not there, with mode 0700. One that others can write to is refused.
// Errors of the file system wrap *fs.PathError.
func OpenDir(dir string) (*Dir, error) {
	if dir == "" {
		return nil, errors.New("state directory: its path is empty")
	}
	dir, err := filepath.Abs(dir) // locks are on paths, and the working directory may change
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if !ownedByUs(info) {
		return nil, fmt.Errorf("%w: the state directory %s belongs to another user", ErrUnsafe, dir)
	}
	if writable(info) {
		return nil, fmt.Errorf("%w: others can write to the state directory %s (mode %04o); chmod 700 it, or name another", ErrUnsafe, dir, info.Mode().Perm())
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	d := &Dir{root: root}
	d.sweep(time.Now())
	return d, nil
}

// makeDir makes a directory, with its parents, that a loss of power does not
// take away.
func makeDir(dir string) error {
	parent := filepath.Dir(dir)
	if info, err := os.Stat(dir); err == nil && info.IsDir() || parent == dir {
		return err
	}
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	return syncDir(root)
}

// Close releases the directory. Locks stay until they are unlocked.
func (d *Dir) Close() error { return d.root.Close() }

// Load reads one Token. It changes nothing: one that is damaged stays where it is
// until [Dir.SetAside], and the error wraps [ErrDamaged].
func (d *Dir) Load(_ context.Context, id string) (*Token, error) {
	if !validID(id) {
		return nil, fmt.Errorf("%w: %q", ErrNoToken, id)
	}
	name := id + tokenSuffix
	data, err := d.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoToken, id)
	}
	if err != nil {
		return nil, err
	}
	t, err := Decode(data)
	if err == nil && t.ID != id {
		err = fmt.Errorf("%w: it is the one of another upload", ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, filepath.Join(d.root.Name(), name))
	}
	return t, nil
}

// SetAside renames a damaged Token to ID.damaged, where it is kept for a week. It
// is for the holder of the upload's lock. One that is not there is no error.
func (d *Dir) SetAside(_ context.Context, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: %q", ErrNoToken, id)
	}
	disk := rootDisk{d.root}
	err := disk.Rename(id+tokenSuffix, id+damagedSuffix)
	if err == nil {
		err = disk.sync()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set damaged upload aside: %w", pathError(err))
	}
	return nil
}

// sweep removes damaged Tokens whose file is older than a week. They hold a secret,
// and their session has expired. A file that cannot be removed stays.
func (d *Dir) sweep(now time.Time) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), damagedSuffix); !ok || !validID(id) {
			continue
		}
		if info, err := d.root.Lstat(e.Name()); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > Lifetime {
			_ = d.root.Remove(e.Name())
		}
	}
}

func (d *Dir) read(name string) ([]byte, error) {
	path := filepath.Join(d.root.Name(), name)
	f, info, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case !ownedByUs(info):
		return nil, fmt.Errorf("%w: %s belongs to another user; remove it", ErrUnsafe, path)
	case lax(info):
		return nil, fmt.Errorf("%w: others can read or write %s (mode %04o); if you trust it, chmod 600 it, else remove it", ErrUnsafe, path, info.Mode().Perm())
	case info.Size() > tokenLimit:
		return nil, fmt.Errorf("%w: %s is %d bytes long; remove it", ErrUnsafe, path, info.Size())
	}
	return io.ReadAll(f)
}

// open opens a plain file, and says what it is.
func (d *Dir) open(name string) (*os.File, fs.FileInfo, error) {
	path := filepath.Join(d.root.Name(), name)
	for range 100 {
		info, err := d.root.Lstat(name)
		if err != nil {
			return nil, nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, nil, fmt.Errorf("%w: %s is not a plain file; remove it", ErrUnsafe, path)
		}
		f, err := d.root.Open(name)
		if err != nil {
			return nil, nil, err
		}
		opened, err := f.Stat()
		if err == nil && os.SameFile(info, opened) {
			return f, opened, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, nil, err
		}
		// A Save of the one who has the lock came in between.
	}
	return nil, nil, fmt.Errorf("%w: %s is another file each time; remove it", ErrUnsafe, path)
}

// Save writes the Token durably: when it returns nil, the Token survives a
// loss of power.
func (d *Dir) Save(_ context.Context, t *Token) error {
	if !validID(t.ID) {
		return fmt.Errorf("save upload: bad id %q", t.ID)
	}
	data, err := Encode(t)
	if err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	defer d.saves.lock(t.ID)()
	if err := replace(rootDisk{d.root}, t.ID+tempSuffix, t.ID+tokenSuffix, data); err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	return nil
}

// disk is what Save and Delete do to the directory. A test puts one in its
// place that loses power.
type disk interface {
	create(name string) (diskFile, error) // for writing; the name must not be taken
	Rename(from, to string) error
	Remove(name string) error
	sync() error // of the names, not of what is in the files
}

type diskFile interface {
	io.WriteCloser
	Sync() error
}

type rootDisk struct{ *os.Root }

func (d rootDisk) create(name string) (diskFile, error) {
	return d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d rootDisk) sync() error { return syncDir(d.Root) }

// replace puts data in the place of name's content: all of it or nothing, also
// when the power goes.
func replace(d disk, temp, name string, data []byte) (err error) {
	// The lock of the upload is ours, so a temporary file that is there was
	// left by a process that was killed.
	if err := d.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.create(temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = d.Remove(temp)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := d.Rename(temp, name); err != nil {
		return pathError(err)
	}
	return d.sync()
}

// pathError makes the error of a rename one of the type that the other errors of
// the file system have.
func pathError(err error) error {
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: le.Op, Path: le.New, Err: le.Err}
	}
	return err
}

// List gives the IDs of the saved uploads, sorted.
func (d *Dir) List(context.Context) ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), tokenSuffix); ok && validID(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Delete removes a Token. One that is not there is no error.
func (d *Dir) Delete(_ context.Context, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: %q", ErrNoToken, id)
	}
	if err := remove(rootDisk{d.root}, id+tokenSuffix, id+tempSuffix); err != nil {
		return fmt.Errorf("delete saved upload: %w", err)
	}
	return nil
}

func remove(d disk, names ...string) error {
	for _, name := range names {
		if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return d.sync()
}
