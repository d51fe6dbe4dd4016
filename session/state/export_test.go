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
