package sourcefile_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
)

// TestSettleShowsTheNextChange checks that a change right after Settle changes
// the identity, for any tick of the file system's clock.
func TestSettleShowsTheNextChange(t *testing.T) {
	path := file(t, content(10))
	for _, step := range []time.Duration{time.Nanosecond, 4 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 2 * time.Second} {
		for _, skew := range []time.Duration{0, 300 * time.Millisecond, 30 * time.Second} { // by which the server's clock is behind
			for _, after := range []time.Duration{0, 1, 3 * time.Millisecond, 999 * time.Millisecond, 1999 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					clock := func() time.Time { return time.Now().Add(-skew).Truncate(step) }
					time.Sleep(150*time.Millisecond + after) // not a whole second, which could be a tick of two seconds
					stamp := clock()
					stamped := func() time.Time { return stamp }
					s := open(t, path)
					s.SetClock(skew == 0, time.Now, stamped, stamped)
					before := time.Now()
					settled, err := s.Settle(t.Context())
					if err != nil || settled.Racy {
						t.Fatalf("Settle = %+v, %v", settled, err)
					}
					if waited := time.Since(before); waited > max(2*step, sourcefile.ClockTick) {
						t.Errorf("step %v, skew %v: Settle waited %v", step, skew, waited)
					}
					stamp = clock() // a write
					if sourcefile.Compare(settled.Identity, identity(t, s)) != sourcefile.Different {
						t.Errorf("step %v, skew %v: a write %v later has the same times", step, skew, time.Since(before))
					}
				})
			}
		}
	}
}

func TestSettleWaits(t *testing.T) {
	path := file(t, content(10))
	now := time.Unix(1_000_000_000, 123_456_789)
	whole := time.Unix(1_000_000_000, 0) // even
	for _, tt := range []struct {
		name              string
		local             bool
		now, mtime, ctime time.Time
		want              time.Duration
		racy              bool
	}{
		{"old", true, now, now.Add(-time.Second), now.Add(-sourcefile.ClockTick), 0, false},
		{"new", true, now, now.Add(-time.Hour), now, sourcefile.ClockTick, false},
		{"new for a second, as the time is whole", true, whole.Add(1500 * time.Millisecond), whole.Add(time.Second), whole, 500 * time.Millisecond, false},
		{"new for two seconds, as the time is even", true, whole.Add(500 * time.Millisecond), whole, whole, 1500 * time.Millisecond, false},
		{"modification time was set to a whole second", true, now, whole.Add(-time.Hour), now.Add(-time.Second), 0, false},
		{"on a server, old", false, now, now.Add(-time.Hour), now.Add(-2 * time.Minute), 0, false},
		{"on a server, young", false, now, now.Add(-time.Hour), now.Add(-time.Second), sourcefile.ClockTick, false},
		{"soon", true, now, now.Add(2 * time.Second), now, 2*time.Second + sourcefile.ClockTick, false},
		{"not soon", true, now, now.Add(3 * time.Second), now, 0, true},
		{"in a year", true, now, now.Add(365 * 24 * time.Hour), now.Add(-time.Hour), 0, true},
		{"change time in the future", true, now, now.Add(-time.Hour), now.Add(time.Minute), 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, path)
			fixed := func(at time.Time) func() time.Time { return func() time.Time { return at } }
			s.SetClock(tt.local, fixed(tt.now), fixed(tt.mtime), fixed(tt.ctime))
			before := time.Now()
			settled, err := s.Settle(t.Context())
			if err != nil || settled.Racy != tt.racy {
				t.Errorf("%s: Settle = %+v, %v, want racy %v", tt.name, settled, err, tt.racy)
			}
			if got := time.Since(before); got != tt.want {
				t.Errorf("%s: Settle waited %v, want %v", tt.name, got, tt.want)
			}
			if got := s.Racy(settled.Identity); got != (tt.want > 0 || tt.racy) {
				t.Errorf("%s: Racy = %v", tt.name, got)
			}
		})
	}
}

// TestSettleOfAnOldFile checks that Settle does not wait for a file that did
// not change in the last milliseconds, on a real file system.
func TestSettleOfAnOldFile(t *testing.T) {
	path := file(t, content(10))
	if runtime.GOOS == "windows" {
		// On some systems any file system may be that of a server, so that a new file stays
		// racy for a minute.
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
	}
	s := open(t, path)
	require.NoError(t, waitUntilOld(s))
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		settled, err := s.Settle(t.Context())
		if err != nil || settled.Racy || settled.Identity != identity(t, s) {
			t.Errorf("Settle = %+v, %v", settled, err)
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("Settle waited %v", waited)
		}
	})
}

// waitUntilOld waits until the clock has passed the times of a new file.
func waitUntilOld(s *sourcefile.File) error {
	for {
		id, err := s.Identity()
		if err != nil || !s.Racy(id) {
			return err
		}
	}
}

func TestSettleWhileTheFileChanges(t *testing.T) {
	for _, tt := range []struct {
		changes int
		want    error
	}{{0, nil}, {1, nil}, {2, nil}, {3, chunk.ErrChanged}} {
		synctest.Test(t, func(t *testing.T) {
			path := file(t, content(10))
			s := open(t, path)
			left := tt.changes
			s.SetWriteBack(func(f *os.File) error {
				if left == 0 {
					return nil
				}
				left--
				return os.Chtimes(path, time.Time{}, time.Unix(int64(1e9+left), 0))
			})
			settled, err := s.Settle(t.Context())
			if !errors.Is(err, tt.want) {
				t.Errorf("%d changes: error = %v, want %v", tt.changes, err, tt.want)
			}
			if err == nil && settled.Identity != identity(t, s) {
				t.Errorf("%d changes: Settle = %+v, want the last identity", tt.changes, settled)
			}
		})
	}
}

// TestSettleCanceledWhileFsyncHangs checks that a file system that hangs does
// not delay a cancellation. The caller closes the file after it.
func TestSettleCanceledWhileFsyncHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, file(t, content(10)))
		began, hang := make(chan struct{}), make(chan struct{})
		s.SetWriteBack(func(*os.File) error { close(began); <-hang; return nil })
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() {
			_, err := s.Settle(ctx)
			ended <- err
		}()
		<-began // after the wait for the tick of a new file
		cause := errors.New("user pressed a key")
		cancel(cause)
		if err := <-ended; !errors.Is(err, cause) {
			t.Errorf("Settle = %v, want the cause", err)
		}
		s.Close()
		close(hang)
	})
}

func TestSettleCanceledWhileItWaits(t *testing.T) {
	path := file(t, content(10))
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path)
		soon := time.Now().Add(2*time.Second + 1)
		s.SetClock(true, time.Now, func() time.Time { return soon }, time.Now)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Settle = %v, want context.DeadlineExceeded", err)
		}
		if time.Now().After(soon) {
			t.Error("Settle waited to the end")
		}
	})
}

// TestSettleOfAReaderAt checks that a source without a file is settled at once.
func TestSettleOfAReaderAt(t *testing.T) {
	s := sourcefile.FromReaderAt(nil, 7)
	settled, err := s.Settle(t.Context())
	if err != nil || settled != (sourcefile.Settled{Identity: chunk.Identity{Size: 7}}) || s.Racy(settled.Identity) {
		t.Errorf("Settle = %+v, %v", settled, err)
	}
}

// TestSettleShowsTheNextWriteHere checks that a write after Settle changes the
// identity, with the clock and the file system of this machine. Set TMPDIR=DIR
// for another file system. A file system with a tick of seconds makes the test
// take that long.
func TestSettleShowsTheNextWriteHere(t *testing.T) {
	path := file(t, content(10))
	s := open(t, path)
	settled, err := s.Settle(t.Context())
	if err != nil || settled.Racy {
		t.Fatalf("Settle = %+v, %v", settled, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if got := sourcefile.Compare(settled.Identity, identity(t, s)); got != sourcefile.Different {
		t.Errorf("Compare after a write = %v, want %v", got, sourcefile.Different)
	}
}
