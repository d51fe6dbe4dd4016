package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gcsup/internal/bucket"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/session"
)

// checkStateDir checks that uploads can be saved in the state directory. It makes no directory that
// stays.
func (d *doctor) checkStateDir(ctx context.Context, line *checkLine) error {
	if d.noState {
		line.Status, line.Message = result.Skipped, "uploads are not saved, because of --no-state"
		return nil
	}
	dir, err := stateDir(d.target.state.dir)
	if err != nil {
		return err
	}
	err = unlessDone(ctx, func() error { return d.target.state.tryDir(filepath.Join(dir, "uploads")) })
	if errors.Is(err, errCheckLimit) {
		return exit.WithKind(fmt.Errorf("%s: the file system does not answer within %v; use --state-dir to name another directory", dir, d.limit), session.ErrRetriesExhausted)
	}
	line.Message = "uploads can be saved in " + dir
	return err
}

// tryDir checks that a file can be written to the directory of saved uploads, or to the nearest
// directory above it that exists.
func (f *stateFlags) tryDir(dir string) error {
	there := dir
	for there != filepath.Dir(there) {
		if _, err := os.Lstat(there); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		there = filepath.Dir(there)
	}
	if there == dir {
		store, err := f.openDir() // which checks the owner and the mode
		if err != nil {
			return err
		}
		_ = store.Close() // nothing was written
	}
	if err := tryWrite(there); err != nil {
		return fmt.Errorf("state directory %s: nothing can be written to %s: %w; use --state-dir to name another directory", filepath.Dir(dir), there, err)
	}
	return nil
}

// tryWrite makes a directory with a file in dir, and removes both.
func tryWrite(dir string) (err error) {
	own, err := os.MkdirTemp(dir, ".gcsup-doctor-")
	if err != nil {
		return withoutPath(err)
	}
	defer func() {
		if rerr := os.RemoveAll(own); err == nil {
			err = withoutPath(rerr)
		}
	}()
	return withoutPath(os.WriteFile(filepath.Join(own, "file"), make([]byte, 4096), 0o600))
}

// withoutPath returns the cause of an error about a file whose name means nothing to the user.
func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// checkStateBucket checks that the bucket of --state can be opened, and grants what a store needs.
func (d *doctor) checkStateBucket(ctx context.Context, line *checkLine) error {
	var warnings []string
	d.c.warn = func(text string) { warnings = append(warnings, text) }
	if _, _, err := d.c.saved.get(ctx); err != nil {
		return err
	}
	name, _, err := d.target.state.bucket()
	if err != nil {
		return err
	}
	needed := []string{permissionCreate, permissionGet, permissionList, bucket.PermissionDelete}
	granted, known, err := d.granted(ctx, name, needed...)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(needed, func(p string) bool { return slices.Contains(granted, p) })
	if known && len(missing) > 0 {
		return exit.WithKind(fmt.Errorf("uploads cannot be saved in %s: the account needs %s on the bucket", d.target.state.url, strings.Join(missing, ", ")), session.ErrPermission)
	}
	line.Message = strings.Join(append([]string{"uploads can be saved in " + d.target.state.url}, warnings...), "; ")
	return nil
}
