package sourcefile_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestRemoveOpenForWriting checks that a file to which a program may still write is not
// removed.
func TestRemoveOpenForWriting(t *testing.T) {
	path := file(t, content(10))
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer writer.Close()
	for _, local := range []bool{true, false} {
		s := open(t, path)
		id := identity(t, s)
		times := func(ns int64) func() time.Time { return func() time.Time { return time.Unix(0, ns) } }
		s.SetClock(local, time.Now, times(id.ModTimeNS), times(id.ChangeTimeNS))
		err := s.Remove(id)
		if _, exists := os.Stat(path); local && (!errors.Is(err, syscall.ETXTBSY) || exists != nil) || !local && err != nil {
			t.Errorf("local %v: %v", local, err)
		}
	}
}

// TestRemoveAfterWriting checks that a file is removed when it is no longer open for writing.
func TestRemoveAfterWriting(t *testing.T) {
	path := file(t, content(10))
	s := open(t, path)
	reader, err := os.Open(path)
	require.NoError(t, err)
	defer reader.Close()
	if err := s.Remove(identity(t, s)); err != nil {
		t.Error(err)
	}
}
