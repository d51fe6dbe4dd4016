package storetest_test

import (
	"testing"
	"time"

	"gcsup/session/state/storetest"
)

// TestMemory runs the suite on stores in memory without a flaw.
func TestMemory(t *testing.T) {
	t.Run("locks", func(t *testing.T) {
		storetest.RunVirtual(t, func(*testing.T) storetest.Place { return newMemory(flaw{}, 0).place() })
	})
	t.Run("leases", func(t *testing.T) {
		storetest.RunVirtual(t, func(*testing.T) storetest.Place { return newMemory(flaw{}, time.Minute).place() })
	})
	t.Run("leases that end with the upload", func(t *testing.T) {
		storetest.RunVirtual(t, func(*testing.T) storetest.Place { return newMemory(endingWithDelete, time.Minute).place() })
	})
}
