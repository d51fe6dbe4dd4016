package nolink

import "testing"

// OnLook calls f after each look at an entry, until the test ends.
func OnLook(t *testing.T, f func()) {
	was := looked
	looked = f
	t.Cleanup(func() { looked = was })
}
