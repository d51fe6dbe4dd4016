package examples

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"gcsup/fakegcs"
	"gcsup/session"
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
	if ops := srv.Stats().Ops; ops[fakegcs.OpStart] != 2 || ops[fakegcs.OpCancel] != 1 {
		t.Errorf("requests %v, want two sessions, of which one was canceled", ops)
	}
	// Nothing is left: the same call does nothing.
	if finished, deleted, err := Recover(t.Context(), up); finished != 0 || deleted != 0 || err != nil {
		t.Errorf("Recover = %d, %d, %v, want nothing", finished, deleted, err)
	}
}

// TestSQLiteLock checks the lock between two stores of one process, and that the
// death of a process releases it.
func TestSQLiteLock(t *testing.T) {
	if dir := os.Getenv("HOLD_LOCK_IN"); dir != "" {
		_, err := openSQLite(t, dir).Lock(t.Context(), "id")
		fmt.Println("locked:", err)
		io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	dir := t.TempDir()
	store := openSQLite(t, dir)
	unlock, err := store.Lock(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openSQLite(t, dir).Lock(t.Context(), "id"); !errors.Is(err, session.ErrInUse) {
		t.Errorf("Lock = %v, want ErrInUse", err)
	}
	other, err := store.Lock(t.Context(), "other")
	if err != nil {
		t.Error("another upload is locked, too:", err)
	} else {
		other()
	}
	unlock()

	cmd := exec.Command(os.Args[0], "-test.run=^TestSQLiteLock$")
	cmd.Env = append(os.Environ(), "HOLD_LOCK_IN="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked: <nil>\n" {
		t.Errorf("the other process printed %q, %v", line, err)
	}
	if _, err := store.Lock(t.Context(), "id"); !errors.Is(err, session.ErrInUse) {
		t.Errorf("Lock = %v, want ErrInUse", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	unlock, err = store.Lock(t.Context(), "id")
	if err != nil {
		t.Fatalf("Lock after the death of the holder = %v", err)
	}
	unlock()
}

// TestSQLiteErrors checks the errors that the contract of session.Store names.
func TestSQLiteErrors(t *testing.T) {
	store := openSQLite(t, t.TempDir())
	if _, err := store.Load(t.Context(), "none"); !errors.Is(err, session.ErrNoToken) {
		t.Errorf("Load = %v, want ErrNoToken", err)
	}
	if _, err := store.db.Exec(`INSERT INTO uploads VALUES ('bad', 'bytes')`); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context(), "bad"); !errors.Is(err, session.ErrCorruptToken) {
		t.Errorf("Load = %v, want ErrCorruptToken", err)
	}
	if err := store.Delete(t.Context(), "none"); err != nil {
		t.Errorf("Delete = %v, want nil", err)
	}
}
