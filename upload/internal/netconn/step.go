package netconn

import "time"

// A step is the number of bytes that are passed to the network at a time. Large steps need
// fewer system calls. A body counts its bytes before each step, so that a step must not take
// long on a slow network, and must be less than the 256 KiB between two checksums of a file:
// a checkpoint beyond what the service has received is of no use.
const (
	leastStep = 32 << 10
	firstStep = 64 << 10
	mostStep  = 128 << 10

	fastStep = 20 * time.Millisecond
	slowStep = 200 * time.Millisecond
)

// nextStep returns the length of the step after one that took a time.
func nextStep(step int, took time.Duration) int {
	switch {
	case took < fastStep:
		return min(2*step, mostStep)
	case took > slowStep:
		return max(step/2, leastStep)
	}
	return step
}
