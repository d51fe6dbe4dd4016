package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// emulatorFiles is where an emulator puts what its clients read: in its own
// directory, or in a temporary one when it has none.
type emulatorFiles struct {
	dir  string // "" until a file is written to a temporary one
	temp bool
}

func (f *emulatorFiles) write(name string, data []byte, mode os.FileMode) (path string, err error) {
	if f.dir == "" {
		if f.dir, err = os.MkdirTemp("", "gcsup-emulator-"); err != nil {
			return "", fmt.Errorf("emulator: %w", err)
		}
		f.temp = true
	}
	if path, err = filepath.Abs(filepath.Join(f.dir, name)); err == nil {
		err = os.WriteFile(path, data, mode)
	}
	if err != nil {
		return "", fmt.Errorf("emulator: %w", err)
	}
	return path, nil
}

func (f *emulatorFiles) remove() {
	if f.temp {
		_ = os.RemoveAll(f.dir)
	}
}
