package emulator

import (
	"fmt"
	"os"
	"path/filepath"
)

// files writes the files that the clients of a server read. They are in the
// server's directory, or in a temporary one if it has none.
type files struct {
	dir  string // "" before the first write to a temporary directory
	temp bool
}

func (f *files) write(name string, data []byte, mode os.FileMode) (path string, err error) {
	if f.dir == "" {
		if f.dir, err = os.MkdirTemp("", "fakegcs-"); err != nil {
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

func (f *files) remove() {
	if f.temp {
		_ = os.RemoveAll(f.dir)
	}
}
