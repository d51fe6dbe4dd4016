package state

import "testing"

// Lifetime is lifetime.
const Lifetime = lifetime

// OnLook calls f after each look at a file, until the test ends.
func OnLook(t *testing.T, f func()) {
	was := looked
	looked = f
	t.Cleanup(func() { looked = was })
}

// OnLocked calls f after each lock of a file, until the test ends.
func OnLocked(t *testing.T, f func()) {
	was := taken
	taken = f
	t.Cleanup(func() { taken = was })
}
