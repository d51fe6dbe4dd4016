package sourcefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// asideSuffix ends the name of a file that is being removed, and a dot begins it.
const asideSuffix = ".gcsup-removing"

// Aside returns the name that a file gets in its directory immediately before it is removed, see [Held.Remove]. A long
// name is shortened, because file systems allow 255 bytes.
func Aside(name string) string {
	const longest = 255 - len(".") - len(asideSuffix)
	if len(name) > longest {
		end := longest
		for end > longest-utf8.UTFMax && !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end]
	}
	return "." + name + asideSuffix
}

// FromAside returns the name of the file that has the name aside while it is being removed. If a process is killed at
// that moment, the file keeps the name aside.
func FromAside(aside string) (name string, ok bool) {
	name, ok = strings.CutSuffix(aside, asideSuffix)
	if !ok || len(name) < 2 || name[0] != '.' {
		return "", false
	}
	return name[1:], true
}

// giveBack gives the file aside the name that it had. It replaces no file of that name.
func giveBack(dir *os.Root, aside, name string) error {
	err := dir.Link(aside, name)
	switch {
	case err == nil:
		return dir.Remove(aside)
	case errors.Is(err, fs.ErrExist):
	default: // the file system, or the owner of the file, does not allow it
		if _, lerr := dir.Lstat(name); !errors.Is(lerr, fs.ErrNotExist) {
			break
		}
		if err = dir.Rename(aside, name); err == nil {
			return nil
		}
	}
	return fmt.Errorf("it is kept as %s: %w", filepath.Join(dir.Name(), aside), err)
}
