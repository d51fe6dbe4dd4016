//go:build !windows

package tty

import "os"

// escapes reports whether the terminal understands escape sequences.
func escapes(*os.File) bool { return true }
