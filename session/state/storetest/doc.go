// Package storetest checks that a [state.Store] meets its contract. A program that
// saves uploads in its own database runs the suite in a test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Place {
//			db := createDatabase(t)
//			return storetest.Place{
//				Open:    func() storetest.Process { return storetest.Start(t, db.path) },
//				Put:     db.put,
//				Without: []storetest.Feature{storetest.LockChecks, storetest.Quarantine, storetest.Leases},
//			}
//		})
//	}
//
// # Processes
//
// Several processes open a [Place]. The suite kills them between any two calls of a
// script, and during Save. A process can be
//   - another process, which [Start] starts and kills with SIGKILL. This is the best test of
//     a lock that must end with its process. Start works for a Store without leases.
//   - a handle in the process of the test. [Process.Kill] must then have the effects of
//     the death of a process: close the connections that hold the locks, or cut the
//     network. Only handles show whether the Store keeps pointers, and the race
//     detector works only with handles.
//
// A Store that machines share has leases, which expire. Its processes are handles
// whose network can be cut. With [RunVirtual] leases of minutes take no time, if the
// place is in the process of the test. With [Run] they take real time.
//
// # What the suite does not check
//
// No test can show that a saved upload survives a power loss, that other users cannot read
// it, or what happens in every order in which requests to a place can overlap.
package storetest
