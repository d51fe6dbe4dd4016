//go:build !unix

package tree

import "io/fs"

// surelyReadable returns false: the mode does not show who can read a file.
func surelyReadable(fs.FileInfo) bool { return false }
