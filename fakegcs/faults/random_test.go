package faults_test

import (
	"reflect"
	"testing"

	"gcsup/fakegcs/faults"
)

// A random plan is valid, and the same for the same seed.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		for _, size := range []int64{-1, 0, 1, 1 << 20, 1<<63 - 1} {
			list := faults.Random(seed, 5, size)
			if again := faults.Random(seed, 5, size); !reflect.DeepEqual(list, again) {
				t.Fatalf("seed %d, size %d: two different plans", seed, size)
			}
			for _, f := range list {
				if err := f.Validate(); err != nil {
					t.Errorf("seed %d, size %d: %v", seed, size, err)
				}
			}
		}
	}
}
