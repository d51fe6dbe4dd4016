//go:build !unix

package state

import (
	"io/fs"
	"os"
)

// On other systems than Unix, an access control list controls access. The directory
// inherits it from the user's profile, and the mode bits do not show it.
func lax(fs.FileInfo) bool { return false }

func writable(fs.FileInfo) bool { return false }

func ownedByUs(fs.FileInfo) bool { return true }

// syncDir does nothing: a directory cannot be opened for syncing, and the file
// system journals a rename.
func syncDir(*os.Root) error { return nil }
