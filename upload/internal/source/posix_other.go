//go:build !(linux || dragonfly || openbsd || solaris || darwin || freebsd || netbsd)

package source

import "io/fs"

func POSIXOf(fs.FileInfo) (POSIX, bool) { return POSIX{}, false }
