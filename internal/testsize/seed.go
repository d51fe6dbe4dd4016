package testsize

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Seed returns the seed of a test with random numbers, and logs it. In .ci/run it is a new
// one each time, and otherwise always the same, so that go test ./... does not fail by
// chance.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if os.Getenv("GCSUP_TEST_FULL") != "" {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return seed
}
