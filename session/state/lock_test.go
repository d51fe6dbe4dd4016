package state_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
	"gcsup/session/state"
	"gcsup/session/state/storetest"
)

// The test binary is also the other process. If lockDirEnv is set, it locks an
// upload, reports that, and holds the lock until its standard input ends.
const lockDirEnv = "SESSION_TEST_LOCK_DIR"

func TestMain(m *testing.M) {
	storetest.Serve(func(path string) (state.Store, error) { return state.OpenDir(path) })
	if dir := os.Getenv(lockDirEnv); dir != "" {
		d, err := state.OpenDir(dir)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		unlock, err := d.Lock(context.Background(), "id")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin)
		unlock()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// holder starts a process that holds the lock of "id" in dir until its standard input is closed.
func holder(t *testing.T, dir string) (*testprocess.Process, io.Closer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockDirEnv+"="+dir)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	p := testprocess.Start(t, cmd)
	p.Await("locked\n")
	return p, stdin
}

// checkHolder checks that the error of Lock describes the process that holds the lock. On
// Windows it does not, because no other handle can read the locked byte.
func checkHolder(t *testing.T, err error, pid int) {
	t.Helper()
	held, ok := errors.AsType[*state.HeldError](err)
	if !ok || !errors.Is(err, state.ErrInUse) {
		t.Fatalf("Lock: %v, want a HeldError", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	host, _ := os.Hostname()
	if age := time.Since(held.Since); held.PID != pid || held.Host != host || age < 0 || age > time.Minute {
		t.Errorf("HeldError %+v, want process %d on %s", *held, pid, host)
	}
	if want := fmt.Sprintf("upload is in use by process %d on %s since ", pid, host); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q, want %q", err, want)
	}
}

// TestUnsignedLock checks that Lock fails with a HeldError even if the lock file does not
// describe the holder.
func TestUnsignedLock(t *testing.T) {
	for _, text := range []string{"", "process 12 on alpha\n", `{"pid":"x"}`, strings.Repeat(" ", 1<<20) + `{"pid":12}`} {
		dir := newDir(t)
		d := openDir(t, dir)
		unlock, err := d.Lock(t.Context(), "id")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "id.lock"), []byte(text), 0o600))
		_, err = d.Lock(t.Context(), "id")
		if held, ok := errors.AsType[*state.HeldError](err); !ok || *held != (state.HeldError{}) {
			t.Errorf("Lock: %#v, want an empty HeldError", err)
		}
		unlock()
	}
}

// TestLockOfAnotherProcess checks that the error of Lock names the holder, and
// that the lock is free when the holder ends, even by SIGKILL.
func TestLockOfAnotherProcess(t *testing.T) {
	for name, end := range map[string]func(*testprocess.Process, io.Closer){
		"unlocked": func(_ *testprocess.Process, stdin io.Closer) { _ = stdin.Close() },
		"killed":   func(p *testprocess.Process, _ io.Closer) { p.Kill() },
	} {
		dir := filepath.Join(testsize.MemDir(t), "uploads")
		p, stdin := holder(t, dir)
		d := openDir(t, dir)
		_, err := d.Lock(t.Context(), "id")
		checkHolder(t, err, p.PID())
		if unlock, err := d.Lock(t.Context(), "other"); err != nil {
			t.Errorf("%s: Lock of another upload: %v", name, err)
		} else {
			unlock()
		}
		end(p, stdin)
		p.Wait()
		unlock, err := d.Lock(t.Context(), "id")
		if err != nil {
			t.Errorf("%s: Lock after it ended: %v", name, err)
			continue
		}
		unlock()
		if got := files(t, dir); len(got) != 0 {
			t.Errorf("%s: files %v are left", name, got)
		}
	}
}

// TestLockFile checks that unlock removes the lock file if the upload has no saved upload, and keeps it otherwise, and that
// Locked makes none.
func TestLockFile(t *testing.T) {
	d, saved, path := oneSaved(t)
	lock := saved.ID + ".lock"
	if locked, err := d.Locked(t.Context(), saved.ID); err != nil || locked || len(files(t, filepath.Dir(path))) != 1 {
		t.Errorf("Locked = %v, %v, with the files %v", locked, err, files(t, filepath.Dir(path)))
	}
	unlock, err := d.Lock(t.Context(), saved.ID)
	require.NoError(t, err)
	unlock()
	if _, err := d.Load(t.Context(), saved.ID); err != nil {
		t.Errorf("Load: %v", err)
	}
	unlock, err = d.Lock(t.Context(), saved.ID)
	require.NoError(t, err)
	require.NoError(t, d.Delete(t.Context(), saved.ID))
	if got := files(t, filepath.Dir(path)); !slices.Contains(got, lock) {
		t.Errorf("files %v, want %s while it is held", got, lock)
	}
	unlock()
	if got := files(t, filepath.Dir(path)); len(got) != 0 {
		t.Errorf("files %v are left", got)
	}
}

// countdown is a context that is done after n calls of Err.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestLockEndsWithItsContext checks that Lock returns when its context is done,
// even if it ends while Lock tries again. The cause of the context may be the error of
// another upload.
func TestLockEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	d := openDir(t, newDir(t))
	if _, err := d.Lock(ctx, "id"); !errors.Is(err, context.Canceled) || errors.Is(err, errStop) || !strings.Contains(err.Error(), errStop.Error()) {
		t.Errorf("Lock: %v, want the error of the context with the cause in its text", err)
	}
	unlock, err := d.Lock(t.Context(), "id")
	require.NoError(t, err)
	defer unlock()
	if _, err := d.Lock(&countdown{t.Context(), 1}, "id"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lock of a locked upload: %v, want context.Canceled", err)
	}
}

var errStop = errors.New("stop")

// TestLockInAReplacedDirectory checks that Lock fails if the directory was
// removed, and does not retry indefinitely. A lock file of the old directory is not that of the new one.
func TestLockInAReplacedDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove or rename a directory that is open")
	}
	for name, replace := range map[string]func(dir string) error{
		"removed":  os.RemoveAll,
		"replaced": func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700)) },
	} {
		dir := newDir(t)
		d := openDir(t, dir)
		require.NoError(t, errors.Join(os.WriteFile(filepath.Join(dir, "id.lock"), nil, 0o600), replace(dir)))
		// The context ends the loop if Lock retries.
		_, err := d.Lock(&countdown{t.Context(), 1000}, "id")
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%s: Lock: %v, want an error that does not wait for the context", name, err)
		}
	}
}

// TestLockOfARemovedFile checks that Lock locks the file in the directory if the previous holder removes the one that it has just
// locked, or if there is another one in its place.
func TestLockOfARemovedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove a file that is open")
	}
	for _, replaced := range []bool{false, true} {
		dir, locks := newDir(t), 0
		state.OnLocked(t, func() {
			if locks++; locks > 1 {
				return
			}
			err := os.Remove(filepath.Join(dir, "id.lock"))
			if replaced {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, "id.lock"), nil, 0o600))
			}
			require.NoError(t, err)
		})
		unlock, err := openDir(t, dir).Lock(t.Context(), "id")
		require.NoError(t, err)
		if _, err := openDir(t, dir).Lock(t.Context(), "id"); !errors.Is(err, state.ErrInUse) || locks != 2 {
			t.Errorf("replaced %t: Lock after %d locks: %v, want ErrInUse after 2", replaced, locks, err)
		}
		unlock()
	}
}

// TestLockAfterClose checks that a lock stays after its Dir was closed.
func TestLockAfterClose(t *testing.T) {
	dir := newDir(t)
	d, err := state.OpenDir(dir)
	require.NoError(t, err)
	unlock, err := d.Lock(t.Context(), "id")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	other := openDir(t, dir)
	if _, err := other.Lock(t.Context(), "id"); !errors.Is(err, state.ErrInUse) {
		t.Errorf("Lock: %v, want ErrInUse", err)
	}
	unlock()
	again, err := other.Lock(t.Context(), "id")
	if err != nil {
		t.Fatalf("Lock after unlock: %v", err)
	}
	again()
}

// TestHolder checks that Holder names the process that has the lock, also for root in the directory of another user, and
// creates nothing.
func TestHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d, err := state.OpenDir(dir)
	require.NoError(t, err)
	defer d.Close()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	none := func(what string) {
		t.Helper()
		if held, err := state.Holder(t.Context(), root, "id"); held != nil || err != nil {
			t.Errorf("%s: %+v, %v", what, held, err)
		}
	}
	none("no lock")
	unlock, err := d.Lock(t.Context(), "id")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 65534, 65534))
	}
	if held, err := state.Holder(t.Context(), root, "id"); err != nil || held == nil || held.PID != os.Getpid() {
		t.Errorf("%+v, %v", held, err)
	}
	unlock()
	none("released")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
