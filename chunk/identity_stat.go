package chunk

import (
	"fmt"
	"os"
	"runtime"
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
