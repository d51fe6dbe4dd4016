// Package testsize sizes the long tests, and sets how many run at a time.
package testsize

import "os"

// Full returns ci in .ci/run, which sets GCSUP_TEST_FULL, and otherwise the
// second number. Flags can have it as their default.
func Full(ci, otherwise int) int {
	if os.Getenv("GCSUP_TEST_FULL") != "" {
		return ci
	}
	return otherwise
}
