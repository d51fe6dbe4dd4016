package main

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile atomically replaces a file, which only the user can read. The caller must have the lock of its
// directory. After a power loss the file has data, or is the earlier one.
func replaceFile(path string, data []byte) error {
	temp := path + ".new"
	_ = os.Remove(temp) // left by a process that was killed
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		defer dir.Close()
		_ = dir.Sync() // not supported everywhere
	}
	return nil
}
