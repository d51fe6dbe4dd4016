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
	"sync"
)

// ErrUnsafe says that others can read or write a saved upload, or that it is
// not a plain file of ours. It is refused, as ssh refuses such a key.
var ErrUnsafe = errors.New("saved upload is not safe to use")

const (
	tokenSuffix   = ".json"
	tempSuffix    = ".tmp"
	lockSuffix    = ".lock"
	damagedSuffix = ".damaged"

	tokenLimit = 16 << 20 // a Token is about 1 KiB, plus 40 bytes for each 32 MiB in flight
)

// Dir is a [Store] in a directory of its own: one file per upload, mode 0600,
// written to a temporary file, synced, renamed, and the directory synced.
// It does not follow symbolic links out of the directory.
type Dir struct {
	root *os.Root
	mu   sync.Mutex
}

var _ Store = (*Dir)(nil)

// OpenDir opens the store in dir, which is made, with its parents, if it is
// not there. The directory is the store's own: its mode is set to 0700.
// Errors of the file system wrap *fs.PathError.
func OpenDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if !ownedByUs(info) {
		return nil, fmt.Errorf("%w: the state directory %s belongs to another user", ErrUnsafe, dir)
	}
	if lax(info) {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return &Dir{root: root}, nil
}

// Close releases the directory. Locks stay until they are unlocked.
func (d *Dir) Close() error { return d.root.Close() }

// Load reads one Token. One that is damaged is renamed out of the way
// (ID.damaged) and reported with [ErrDamaged]; the next Load says [ErrNoToken].
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
		aside := id + damagedSuffix
		if rerr := d.root.Rename(name, aside); rerr != nil {
			return nil, errors.Join(err, rerr)
		}
		return nil, fmt.Errorf("%w (kept as %s)", err, filepath.Join(d.root.Name(), aside))
	}
	return t, nil
}

func (d *Dir) read(name string) ([]byte, error) {
	path := filepath.Join(d.root.Name(), name)
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a plain file; remove it", ErrUnsafe, path)
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !os.SameFile(info, opened):
		return nil, fmt.Errorf("%w: %s was replaced while it was opened", ErrUnsafe, path)
	case !ownedByUs(opened):
		return nil, fmt.Errorf("%w: %s belongs to another user; remove it", ErrUnsafe, path)
	case lax(opened):
		return nil, fmt.Errorf("%w: others can read or write %s (mode %04o); if you trust it, chmod 600 it, else remove it", ErrUnsafe, path, opened.Mode().Perm())
	case opened.Size() > tokenLimit:
		return nil, fmt.Errorf("%w: %s is %d bytes long; remove it", ErrUnsafe, path, opened.Size())
	}
	return io.ReadAll(f)
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
	d.mu.Lock() // saves of one process, which may come from two goroutines, in turn
	defer d.mu.Unlock()
	if err := d.replace(t.ID+tempSuffix, t.ID+tokenSuffix, data); err != nil {
		return fmt.Errorf("save upload: %w", err)
	}
	return nil
}

func (d *Dir) replace(temp, name string, data []byte) (err error) {
	// The lock of the upload is ours, so a temporary file that is there was
	// left by a process that was killed.
	if err := d.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = d.root.Remove(temp)
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
	if err := d.root.Rename(temp, name); err != nil {
		return err
	}
	return syncDir(d.root)
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
	for _, suffix := range []string{tokenSuffix, tempSuffix} {
		if err := d.root.Remove(id + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete saved upload: %w", err)
		}
	}
	if err := syncDir(d.root); err != nil {
		return fmt.Errorf("delete saved upload: %w", err)
	}
	return nil
}
