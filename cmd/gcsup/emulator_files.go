package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// emulatorFiles writes the files that an emulator's clients read. They are in the
// emulator's directory, or in a temporary one if it has none.
type emulatorFiles struct {
	dir  string // "" before the first write to a temporary directory
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
