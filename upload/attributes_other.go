//go:build !(linux || dragonfly || openbsd || solaris || darwin || freebsd || netbsd)

package upload

import "io/fs"

func posixOf(fs.FileInfo) (posix, bool) { return posix{}, false }
