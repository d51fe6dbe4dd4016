package batch

import "gcsup/backoff"

// The numbers of files that are uploaded at a time, if the caller does not set them.
const (
	firstSmall, MaxSmall = 32, 1024
	firstLarge, maxLarge = 4, 64
)

// NewLimiters returns the limiters of small and of large files, for a process that may have as
// many open files.
func NewLimiters(openFiles int) (small, large *backoff.Limiter) {
	// A small file needs two: the source and a connection. A large one needs one more for its
	// lease, one for its saved upload, and more connections if it is sent in parts.
	return &backoff.Limiter{First: firstSmall, Max: max(min(MaxSmall, openFiles/4), 1)},
		&backoff.Limiter{First: firstLarge, Max: max(min(maxLarge, openFiles/32), 1)}
}

// Deciders returns how many small and large files, which do not count in the limiters, may be open
// until it is known whether they are uploaded.
func Deciders(openFiles int) (small, large int) {
	return max(min(firstSmall, openFiles/8), 1), max(min(firstLarge, openFiles/32), 1)
}
