package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// tornFile is a file that another process edits while its tail is read: twice, within the
// tail, and then it restores the modification time.
type tornFile struct {
	*os.File
	at   int64
	torn func(half func())
}

func (f *tornFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off != f.at || f.torn == nil {
		return f.File.ReadAt(p, off)
	}
	torn := f.torn
	f.torn = nil
	torn(func() { n, err = f.File.ReadAt(p[:len(p)/2], off) })
	m, err := f.File.ReadAt(p[n:], off+int64(n))
	return n + m, err
}

func TestTornTailOfFileThenStream(t *testing.T) {
	const size = 3*chunk.Granularity + 1000
	const base = 3 * chunk.Granularity
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	osf, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer osf.Close()
	tf := &tornFile{File: osf, at: base}
	src, err := chunk.FromFile(tf, 0)
	if err != nil {
		t.Fatal(err)
	}
	file, err := NewFile(src, "f", func(int64, int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Settle(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	t.Logf("racy %v, unsynced %v, ctime %d", file.racy, file.unsynced, file.identity.ChangeTimeNS)
	mem := chunk.NewMemory(64 << 20)
	tail := make(chan []byte, 1)
	stream, err := NewStream(bytes.NewReader(nil), mem, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	c := NewFileThenStream(file, stream, tail)
	b, err := c.Next(t.Context(), 0, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, b); err != nil {
		t.Fatal(err)
	}
	if err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	c.Committed(base)
	tf.torn = func(half func()) {
		half() // the first half of the tail, before the edit
		for _, at := range []int64{size - 1000, size - 1} {
			if _, err := osf.WriteAt([]byte{1}, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = c.Next(ctx, base, 64<<20)
	if errors.Is(err, session.ErrSourceChanged) {
		return
	}
	got := <-tail
	t.Errorf("Next: %v; the tail begins with %d and ends with %d, and no version of the file is like that (before: 0 and 0, now: 1 and 1)", err, got[0], got[len(got)-1])
}
