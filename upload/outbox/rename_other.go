//go:build !linux

package outbox

// renameNew renames a file, unless there is one with the new name. The error then wraps
// fs.ErrExist.
func renameNew(from, to string) error { return renameChecked(from, to) }
