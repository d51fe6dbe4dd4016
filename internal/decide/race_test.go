//go:build race

package decide_test

// raceDetector reports whether the race detector is on. It makes tests with one
// goroutine slow and cannot find a race in them.
const raceDetector = true
