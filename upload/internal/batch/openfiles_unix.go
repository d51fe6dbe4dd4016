//go:build unix

package batch

import (
	"math"
	"syscall"
)

// OpenFiles returns how many files this process may open.
func OpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt))
}
