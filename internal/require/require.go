// Package require stops a test at the first error.
package require

import "testing"

// NoError stops the test if err is not nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
