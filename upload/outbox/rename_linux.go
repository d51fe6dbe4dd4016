package outbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file, unless there is one with the new name. The error then wraps
// fs.ErrExist.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch err {
	case nil:
		return nil
	case unix.EINVAL, unix.ENOSYS, unix.EPERM: // the file system does not support it, or a filter of system calls forbids it
		return renameChecked(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
