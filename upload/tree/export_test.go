package tree

import (
	"testing"
)

// SortSoon makes walks sort directories of more than n entries on disk, in
// memory of the given size.
func SortSoon(tb testing.TB, n, memory int) {
	a, b, c := maxInMemory, minInMemory, sorterMemory
	maxInMemory, minInMemory, sorterMemory = n, n, memory
	tb.Cleanup(func() { maxInMemory, minInMemory, sorterMemory = a, b, c })
}

// CheckName is checkName.
var CheckName = checkName
