//go:build !unix

package state

import "io/fs"

// On other systems than Unix, an access control list controls access. The directory
// inherits it from the user's profile, and the mode bits do not show it.
func lax(fs.FileInfo) bool { return false }

func writable(fs.FileInfo) bool { return false }

func ownedByUs(fs.FileInfo) bool { return true }
