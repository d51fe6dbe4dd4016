//go:build !unix

package outbox

import "io/fs"

func ownedByUs(fs.FileInfo) bool   { return true }
func linkCount(fs.FileInfo) uint64 { return 1 }
func othersWrite(fs.FileInfo) bool { return false }
