package chunk

import (
	"fmt"
	"os"
	"runtime"

	"gcsup/internal/nolink"
)

// StatIdentity returns the identity of the file at path. Unlike
// [Source.Identity], it opens the file only on Windows.
func StatIdentity(path string) (Identity, error) {
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		if err != nil {
			return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
		}
		return identify(nil, info)
	}
	f, err := os.Open(path)
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	return identify(f, info)
}

// StatIdentityIn is like [StatIdentity] for the file name in dir. It follows no symbolic link.
func StatIdentityIn(dir *os.Root, name string) (Identity, error) {
	info, err := dir.Lstat(name)
	if err == nil && runtime.GOOS != "windows" {
		return identify(nil, info)
	}
	var f *os.File
	if err == nil {
		f, err = nolink.Open(dir, name)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	return identify(f, info)
}
