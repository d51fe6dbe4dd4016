package examples

import (
	"context"
	"errors"
	"os"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session/state"
	"gcsup/session/state/storetest"
	"gcsup/upload"
)

func openSQLite(t *testing.T, dir string) *SQLiteStore {
	t.Helper()
	store, err := OpenSQLite(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// TestRecover interrupts two uploads. A second process continues one of them. The
// file of the other is gone.
func TestRecover(t *testing.T) {
	outage := cutAfter(4 << 20)
	outage.Match.Nth = 1 // of each object
	outage.Times = 2
	srv := emulator(t, outage)
	dir, state := t.TempDir(), t.TempDir()
	data := content(10 << 20)
	kept, removed := write(t, dir, "kept", data), write(t, dir, "removed", data)

	first := openSQLite(t, state)
	for _, path := range []string{kept, removed} {
		ctx, crash := context.WithCancel(t.Context())
		up := uploader(t, srv, upload.Options{Store: first, Observer: func(e upload.Event) {
			if e.Kind == upload.Waiting {
				crash()
			}
		}})
		spec := upload.Spec{Bucket: "jobs", Object: path[len(dir)+1:]}
		if result, err := up.File(ctx, path, spec); !errors.Is(err, context.Canceled) || !result.Resumable {
			t.Fatalf("File = %v, resumable %t, want an interruption", err, result.Resumable)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}

	second := openSQLite(t, state)
	up := uploader(t, srv, upload.Options{Store: second})
	before := srv.Stats().Received
	finished, deleted, err := Recover(t.Context(), up)
	if finished != 1 || deleted != 1 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Recover = %d, %d, %v, want one finished, one deleted, and the file that is missing", finished, deleted, err)
	}
	wantObject(t, srv, "jobs", "kept", data)
	if sent := srv.Stats().Received - before; sent != 6<<20 {
		t.Errorf("the second process sent %d bytes, want the 6 MiB that were missing", sent)
	}
	if ids, err := second.List(t.Context()); len(ids) > 0 || err != nil {
		t.Errorf("saved uploads %v, %v, want none", ids, err)
	}
	if ops := srv.Stats().Ops; ops[faults.OpStart] != 2 || ops[faults.OpCancel] != 1 {
		t.Errorf("requests %v, want two sessions, of which one was canceled", ops)
	}
	// Nothing is left: the same call does nothing.
	if finished, deleted, err := Recover(t.Context(), up); finished != 0 || deleted != 0 || err != nil {
		t.Errorf("Recover = %d, %d, %v, want nothing", finished, deleted, err)
	}
}

// TestMain makes the test binary a process with a SQLiteStore, for TestSQLiteContract.
func TestMain(m *testing.M) {
	storetest.Serve(func(dir string) (state.Store, error) { return OpenSQLite(context.Background(), dir) })
	os.Exit(m.Run())
}

// TestSQLiteContract checks that SQLiteStore meets the contract of state.Store,
// with processes that are killed.
func TestSQLiteContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Place {
		dir := t.TempDir()
		store := openSQLite(t, dir)
		return storetest.Place{
			Open: func() storetest.Process { return storetest.Start(t, dir) },
			Put: func(id string, data []byte) error {
				_, err := store.db.Exec(`INSERT OR REPLACE INTO uploads VALUES (?, ?)`, id, data)
				return err
			},
			Without: []storetest.Feature{storetest.LockChecks, storetest.Quarantine, storetest.Leases},
		}
	})
}
