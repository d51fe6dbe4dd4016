//go:build !unix

package outbox

import "os"

// syncDir does nothing: a directory cannot be opened for syncing, and the file system journals a
// rename.
func syncDir(*os.Root) error { return nil }
