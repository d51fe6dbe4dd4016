//go:build !unix

package session

import (
	"io/fs"
	"os"
)

// Elsewhere access is governed by the access control list that the directory
// inherits from the user's profile, which the mode bits do not show.
func lax(fs.FileInfo) bool { return false }

func writable(fs.FileInfo) bool { return false }

func ownedByUs(fs.FileInfo) bool { return true }

// syncDir does nothing: a directory cannot be opened for syncing, and the
// rename is in the journal of the file system.
func syncDir(*os.Root) error { return nil }
