//go:build !unix

package outbox

// syncDir does nothing: a directory cannot be opened for syncing, and the file system journals a
// rename.
func syncDir(string) error { return nil }
