package outbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file, unless there is one with the new name. The error then wraps
// fs.ErrExist.
func renameNew(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	err := withDescriptors(fromDir, toDir, func(fromDir, toDir int) error {
		return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	})
	switch err {
	case unix.EINVAL, unix.ENOSYS, unix.EPERM: // the file system does not support it, or a filter of system calls forbids it
		return renameChecked(fromDir, from, toDir, to)
	}
	return err
}
