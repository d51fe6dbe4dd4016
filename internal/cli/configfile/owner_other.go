//go:build !unix

package configfile

import "io/fs"

// changeable returns nil: the access control lists of Windows are not considered.
func changeable(string, fs.FileInfo) error { return nil }
