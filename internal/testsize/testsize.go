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

// FullOnce is like Full, but returns the second number in the race step of .ci/run,
// which sets GCSUP_TEST_FULL to race. It is for tests that the race detector slows
// down a lot, and in which it finds nothing more at full size.
func FullOnce(ci, otherwise int) int {
	if os.Getenv("GCSUP_TEST_FULL") == "race" {
		return otherwise
	}
	return Full(ci, otherwise)
}
