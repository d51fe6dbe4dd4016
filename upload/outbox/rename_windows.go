package outbox

import (
	"os"
	"path/filepath"
)

// renameIn renames a file, and replaces the one with the new name. The directories were opened without following links,
// but a directory can be replaced before the system opens it again.
func renameIn(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	return os.Rename(filepath.Join(fromDir.Name(), from), filepath.Join(toDir.Name(), to))
}
