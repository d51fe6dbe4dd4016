//go:build !unix

package batch

import "math"

// OpenFiles returns how many files this process may open.
func OpenFiles() int { return math.MaxInt }
