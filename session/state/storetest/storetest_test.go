package storetest_test

import (
	"testing"
	"time"

	"gcsup/session/state/storetest"
)

// TestMemory runs the suite on stores in memory without a flaw.
func TestMemory(t *testing.T) {
	t.Run("locks", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Place { return newMemory("", 0).place() })
	})
	t.Run("leases", func(t *testing.T) {
		storetest.RunVirtual(t, func(*testing.T) storetest.Place { return newMemory("", time.Minute).place() })
	})
	t.Run("leases that end with the upload", func(t *testing.T) {
		storetest.RunVirtual(t, func(*testing.T) storetest.Place { return newMemory(allowed, time.Minute).place() })
	})
}
