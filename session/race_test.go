//go:build race

package session_test

// raceDetector reports whether the tests run under the race detector, which makes
// tests of one goroutine slow and finds nothing in them.
const raceDetector = true
