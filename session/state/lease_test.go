package state_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
)

// TestLeaseOfLock checks the lease that Acquire makes of the lock of a Store: it
// excludes others until Release, which saves, and it is for one upload.
func TestLeaseOfLock(t *testing.T) {
	d, saved := openDir(t, newDir(t)), sample(t)
	l, err := state.Acquire(t.Context(), d, saved.ID)
	require.NoError(t, err)
	if _, err := state.Acquire(t.Context(), d, saved.ID); !errors.Is(err, state.ErrInUse) {
		t.Errorf("second Acquire: %v, want ErrInUse", err)
	}
	if ctx, end, err := l.Begin(t.Context()); ctx != t.Context() || err != nil || l.Context().Err() != nil || l.Fence() != 0 || l.SaveInterval() != 0 {
		t.Errorf("Begin: %v, %v; fencing number %d, saves each %v", ctx, err, l.Fence(), l.SaveInterval())
	} else {
		end()
	}
	other := *saved
	other.ID = "other"
	if err := l.Save(t.Context(), &other); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Save of another upload: %v, want ErrInvalid", err)
	}
	require.NoError(t, l.Release(t.Context(), saved))
	l, err = state.Acquire(t.Context(), d, saved.ID)
	require.NoError(t, err)
	if got, err := l.Load(t.Context()); err != nil || !same(t, got, saved) {
		t.Errorf("Load after Release: %v, %v", got, err)
	}
	require.NoError(t, l.Delete(t.Context()))
	if _, err := l.Load(t.Context()); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("Load after Delete: %v", err)
	}
	require.NoError(t, l.Save(t.Context(), saved))
	if err := l.Release(t.Context(), &other); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Release with another upload: %v, want ErrInvalid", err)
	}
	if ids, err := d.List(t.Context()); err != nil || len(ids) != 1 {
		t.Errorf("List() = %v, %v, want %s", ids, err, saved.ID)
	}
	unlock, err := d.Lock(t.Context(), saved.ID) // Release unlocked it, even with an error
	require.NoError(t, err)
	unlock()
}

// TestHeldErrorIsPrintable checks that the name of a holder, which another machine
// wrote, cannot control a terminal.
func TestHeldErrorIsPrintable(t *testing.T) {
	const name = "a\x1b[2J\r\n\u009b2J\u202eb\xff"
	for _, err := range []error{&state.HeldError{Message: name, Left: time.Second}, &state.HeldError{Host: name, PID: 1}, &state.HeldError{Host: name}} {
		if text := err.Error(); strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(text, "a [2J") {
			t.Errorf("%q", text)
		}
	}
}

// TestHeldErrorText checks the text of a HeldError with the fields that a Store may know.
func TestHeldErrorText(t *testing.T) {
	since := time.Date(2026, 11, 22, 10, 0, 0, 5, time.FixedZone("", 3600))
	for _, test := range []struct {
		err  state.HeldError
		want string
	}{
		{state.HeldError{}, "upload is in use by another process"},
		{state.HeldError{PID: 12}, "upload is in use by process 12"},
		{state.HeldError{Host: "alpha"}, "upload is in use by a process on alpha"},
		{state.HeldError{Host: "alpha", PID: 12, Since: since}, "upload is in use by process 12 on alpha since 2026-11-22T09:00:00Z"},
		{state.HeldError{Host: "alpha", PID: 12, Message: "worker 3", Left: 90 * time.Second}, "upload is in use by worker 3, whose lease ends in 1m30s unless it is renewed"},
	} {
		if got := test.err.Error(); got != test.want || !errors.Is(&test.err, state.ErrInUse) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
