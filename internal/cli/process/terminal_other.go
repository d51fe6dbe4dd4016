//go:build !windows

package process

import "os"

// escapes reports whether the terminal understands escape sequences.
func escapes(*os.File) bool { return true }
