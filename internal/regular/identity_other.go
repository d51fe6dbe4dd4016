//go:build !(linux || dragonfly || openbsd || solaris || darwin || freebsd || netbsd || windows)

package regular

import (
	"io/fs"
	"os"
)

// Identify returns the identity of a file with the metadata info.
func Identify(_ *os.File, info fs.FileInfo) (Identity, error) { return newIdentity(info), nil }
