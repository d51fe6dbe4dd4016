//go:build unix

package outbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameIn renames a file, and replaces the one with the new name.
func renameIn(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	return withDescriptors(fromDir, toDir, func(fromDir, toDir int) error { return unix.Renameat(fromDir, from, toDir, to) })
}

// withDescriptors calls do with the descriptors of two directories: os.Root renames only below one.
func withDescriptors(a, b *os.Root, do func(a, b int) error) error {
	first, err := a.Open(".")
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := b.Open(".")
	if err != nil {
		return err
	}
	defer second.Close()
	return do(int(first.Fd()), int(second.Fd()))
}
