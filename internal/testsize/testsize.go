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

// Raced returns race under the race detector, and otherwise n. The detector makes a case ten times as
// slow, and a table whose cases run the same code in the same goroutines shows its races with some of them.
func Raced(race, n int) int {
	if raceDetector {
		return race
	}
	return n
}
