package storetest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/session/state"
	"gcsup/session/state/storetest"
)

// This example runs the suite on a Store with leases, in virtual time. The place is in
// memory. A handle stands for a process.
func Example() {
	testStore := func(t *testing.T) {
		storetest.RunVirtual(t, func(t *testing.T) storetest.Place {
			m := newMemory(flaw{}, time.Minute)
			return storetest.Place{
				Open:      func() storetest.Process { return m.open(0) },
				OpenAhead: m.open,
				Put:       m.put,
				TTL:       time.Minute,
				Without:   []storetest.Feature{storetest.Quarantine},
			}
		})
	}
	fmt.Println("the Store passes:", passes(testStore))

	testFlawed := func(t *testing.T) {
		storetest.RunVirtual(t, func(t *testing.T) storetest.Place {
			m := newMemory(flaw{}, time.Minute)
			return storetest.Place{
				Open: func() storetest.Process {
					p := m.open(0)
					p.Store = struct{ state.Store }{p.Store} // this hides the leases
					return p
				},
				Put: m.put,
			}
		})
	}
	fmt.Println("a Store whose features are hidden passes:", passes(testFlawed))
	// Output:
	// the Store passes: true
	// a Store whose features are hidden passes: false
}

// passes runs a test as the go command does, and reports whether it passed.
func passes(test func(t *testing.T)) bool {
	for name, value := range map[string]string{"test.v": "false", "test.skip": ""} {
		before := flag.Lookup(name).Value.String()
		defer flag.Set(name, before)
		_ = flag.Set(name, value)
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	os.Stdout, _ = os.Open(os.DevNull) // what fails is printed
	all := func(_, _ string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestStore", F: test}})
}

// The test binary of a Store on one machine is also its other processes.
func ExampleStart() {
	// func TestMain(m *testing.M)
	_ = func(m *testing.M) {
		storetest.Serve(func(path string) (state.Store, error) { return state.OpenDir(path) })
		os.Exit(m.Run())
	}
	// func TestStore(t *testing.T)
	_ = func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Place {
			path := filepath.Join(t.TempDir(), "uploads")
			return storetest.Place{
				Open:    func() storetest.Process { return storetest.Start(t, path) },
				Put:     func(id string, data []byte) error { return os.WriteFile(filepath.Join(path, id+".json"), data, 0o600) },
				Without: []storetest.Feature{storetest.Leases},
			}
		})
	}
}
