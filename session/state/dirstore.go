package state

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"gcsup/internal/nolink"
)

const (
	tokenSuffix   = ".json"
	tempSuffix    = ".tmp"
	lockSuffix    = ".lock"
	damagedSuffix = ".damaged"

	tokenLimit = 16 << 20 // a saved upload has about 1 KiB, plus 40 bytes for each 32 MiB in flight
)

// Dir is a [Store] in a directory, with one file per upload of mode 0600. It
// writes a temporary file, syncs it, renames it and syncs the directory. It
// does not follow symbolic links out of the directory. The caller of Save and
// Delete must hold the lock of the upload. The methods of the zero Dir return an
// error.
type Dir struct {
	root   *os.Root
	writes [64]sync.Mutex // each serializes goroutines that save or delete an upload, see lockWrites
}

var (
	_ Store       = (*Dir)(nil)
	_ Quarantine  = (*Dir)(nil)
	_ LockChecker = (*Dir)(nil)
)

// OpenDir opens the store in dir. If dir does not exist, OpenDir creates it and
// its parents with mode 0700. If other users can write to dir, the error wraps
// [ErrInsecurePermissions]. Errors of the file system wrap *fs.PathError.
func OpenDir(dir string) (*Dir, error) {
	if dir == "" {
		return nil, errors.New("state directory: empty path")
	}
	dir, err := filepath.Abs(dir) // locks use the path, and the working directory may change
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
		return nil, fmt.Errorf("%w: the state directory %s belongs to another user", ErrInsecurePermissions, dir)
	}
	if writable(info) {
		return nil, fmt.Errorf("%w: others can write to the state directory %s (mode %04o); chmod 700 it, or name another", ErrInsecurePermissions, dir, info.Mode().Perm())
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	d := &Dir{root: root}
	d.sweep(time.Now())
	return d, nil
}

// makeDir creates a directory and its parents durably: they survive a power
// loss.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return err // a drive of Windows, or the current directory, that does not exist
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
	return nolink.SyncDir(root)
}

// Close closes the directory. It does not release locks.
func (d *Dir) Close() error {
	if d.root == nil {
		return errNotOpen
	}
	return d.root.Close()
}

// errNotOpen is the error of the zero Dir.
var errNotOpen = fmt.Errorf("state directory: %w: use OpenDir", fs.ErrInvalid)

// check returns an error if d is the zero Dir or if id is not an ID.
func (d *Dir) check(id string) error {
	switch {
	case d.root == nil:
		return errNotOpen
	case !ValidID(id):
		return fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return nil
}

// Load reads a saved upload. It changes nothing. If the saved upload is damaged, the error
// wraps [ErrCorrupt], and the file stays until [Dir.SetAside] is called.
func (d *Dir) Load(_ context.Context, id string) (*Upload, error) {
	if err := d.check(id); err != nil {
		return nil, err
	}
	name := id + tokenSuffix
	data, err := d.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	t, err := Decode(data)
	if err == nil && t.ID != id {
		err = fmt.Errorf("%w: it has the ID of another upload", ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, filepath.Join(d.root.Name(), name))
	}
	return t, nil
}

// lockWrites waits until no other goroutine saves or deletes the upload. Some uploads share a
// mutex.
func (d *Dir) lockWrites(id string) (unlock func()) {
	m := &d.writes[crc32.ChecksumIEEE([]byte(id))%uint32(len(d.writes))]
	m.Lock()
	return m.Unlock
}

// SetAside renames a damaged saved upload to ID.damaged and keeps it for a week. The
// caller must hold the lock of the upload. If there is no saved upload, it returns nil.
func (d *Dir) SetAside(_ context.Context, id string) error {
	if err := d.check(id); err != nil {
		return err
	}
	defer d.lockWrites(id)()
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

// sweep removes damaged saved uploads, and those that a killed process did not finish to
// save, if the file is older than a week. They have a secret, and their session has
// expired. A file of a process that runs is kept, even if the clock jumped or the
// process was suspended. sweep ignores errors.
func (d *Dir) sweep(now time.Time) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		id, damaged := strings.CutSuffix(e.Name(), damagedSuffix)
		id, temporary := strings.CutSuffix(id, tempSuffix)
		if damaged == temporary || !ValidID(id) || !d.old(e.Name(), temporary, now) {
			continue
		}
		unlock, err := d.Lock(context.Background(), id)
		if err != nil {
			continue
		}
		if d.old(e.Name(), temporary, now) {
			_ = d.root.Remove(e.Name())
		}
		unlock()
	}
}

// old reports whether a file is older than a week and, if it is temporary, begins like
// a saved upload. The directory may also have temporary files of other programs.
func (d *Dir) old(name string, temporary bool, now time.Time) bool {
	info, err := d.regular(name)
	if err != nil || now.Sub(info.ModTime()) <= lifetime {
		return false
	}
	if !temporary {
		return true
	}
	f, _, err := d.open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, len(beginning))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == beginning
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
		return nil, fmt.Errorf("%w: %s belongs to another user; remove it", ErrInsecurePermissions, path)
	case lax(info):
		return nil, fmt.Errorf("%w: others can read or write %s (mode %04o); if you trust it, chmod 600 it, else remove it", ErrInsecurePermissions, path, info.Mode().Perm())
	case info.Size() > tokenLimit:
		return nil, fmt.Errorf("%w: %s is %d bytes long; remove it", ErrInsecurePermissions, path, info.Size())
	}
	return io.ReadAll(f)
}

// regular returns the FileInfo of a regular file.
func (d *Dir) regular(name string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file; remove it", ErrInsecurePermissions, filepath.Join(d.root.Name(), name))
	}
	return info, err
}

// looked is called between the look at a file and its opening. A test replaces it.
var looked = func() {}

// open opens a regular file and returns it with its FileInfo. It does not wait for the writer of a named pipe.
func (d *Dir) open(name string) (*os.File, fs.FileInfo, error) {
	for range 100 {
		info, err := d.regular(name)
		if err != nil {
			return nil, nil, err
		}
		looked()
		f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, nil, err
		}
		opened, err := f.Stat()
		if err == nil && opened.Mode().IsRegular() && os.SameFile(info, opened) { // a new pipe can have the number of a removed file
			return f, opened, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, nil, err
		}
		// The holder of the lock saved a new file in between.
	}
	return nil, nil, fmt.Errorf("%w: %s keeps changing; remove it", ErrInsecurePermissions, filepath.Join(d.root.Name(), name))
}

// Save writes the saved upload durably. When it returns nil, the saved upload survives a
// power loss.
func (d *Dir) Save(_ context.Context, t *Upload) error {
	switch {
	case d.root == nil:
		return errNotOpen
	case !ValidID(t.ID):
		return fmt.Errorf("save upload: invalid ID %q", t.ID)
	}
	data, err := Encode(t)
	if err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	defer d.lockWrites(t.ID)()
	if err := replace(rootDisk{d.root}, t.ID+tempSuffix, t.ID+tokenSuffix, data); err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	return nil
}

// disk has the operations of Save and Delete on the directory. A test replaces
// it to simulate a power loss.
type disk interface {
	create(name string) (diskFile, error) // for writing; the file must not exist
	Rename(from, to string) error
	Remove(name string) error
	sync() error // syncs the names, not the content of the files
}

type diskFile interface {
	io.WriteCloser
	Sync() error
}

type rootDisk struct{ *os.Root }

func (d rootDisk) create(name string) (diskFile, error) {
	return d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d rootDisk) sync() error { return nolink.SyncDir(d.Root) }

// replace atomically replaces the content of the file name with data, even if
// power is lost.
func replace(d disk, temp, name string, data []byte) (err error) {
	f, err := d.create(temp)
	if errors.Is(err, fs.ErrExist) {
		// A process that was killed left the file. The caller holds the lock of the upload.
		if err := d.Remove(temp); err != nil {
			return err
		}
		f, err = d.create(temp)
	}
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

// pathError converts the error of a rename to a *fs.PathError, the type of all
// other errors of the file system.
func pathError(err error) error {
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: le.Op, Path: le.New, Err: le.Err}
	}
	return err
}

// List returns the sorted IDs of the saved uploads.
func (d *Dir) List(context.Context) ([]string, error) {
	if d.root == nil {
		return nil, errNotOpen
	}
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), tokenSuffix); ok && ValidID(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Delete removes a saved upload. If there is none, it returns nil.
func (d *Dir) Delete(_ context.Context, id string) error {
	if err := d.check(id); err != nil {
		return err
	}
	defer d.lockWrites(id)()
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
