package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// TempSuffix is the end of the name of a file that ReplaceFile is writing.
const TempSuffix = ".tmp"

// ReplaceFile replaces the file at path. Only its owner can read it. If ReplaceFile fails, the file
// stays unchanged. After a power loss it has data, or is the earlier one.
func ReplaceFile(path string, data []byte) error {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // not supported everywhere
		_ = dir.Close()
	}
	return nil
}

// CheckReplaceable returns an error if ReplaceFile cannot replace the file at path.
func CheckReplaceable(path string) error {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// createBeside creates a temporary file in the directory of path. The error contains path, not the
// name of the temporary file.
func createBeside(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".gcsup-*"+TempSuffix) // with mode 0600
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", path, pe.Err)
	}
	return f, err
}
