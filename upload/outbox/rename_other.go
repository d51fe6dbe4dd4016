//go:build !linux

package outbox

import "os"

// renameNew renames a file, unless there is one with the new name. The error then wraps
// fs.ErrExist.
func renameNew(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	return renameChecked(fromDir, from, toDir, to)
}
