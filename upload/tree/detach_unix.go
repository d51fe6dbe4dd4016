//go:build unix

package tree

import (
	"os"
	"syscall"
)

// detach closes file and returns a copy that os.Root does not know.
func detach(file *os.File, path string) (*os.File, error) {
	defer file.Close()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		return nil, &os.PathError{Op: "dup", Path: path, Err: err}
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), path), nil
}
