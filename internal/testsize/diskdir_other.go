//go:build !linux

package testsize

import "testing"

// DiskDir returns a new directory.
func DiskDir(t testing.TB) string {
	t.Helper()
	return t.TempDir()
}
