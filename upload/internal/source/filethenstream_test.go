package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/upload/internal/content"
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

// TestTornTailOfFileThenStream checks that the last bytes of a file do not become the start of a stream if they are of
// two versions of the file.
func TestTornTailOfFileThenStream(t *testing.T) {
	const size, base = 3*q + 1000, 3 * q
	path := write(t, make([]byte, size))
	osf, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer osf.Close()
	tf := &tornFile{File: osf, at: base}
	src, err := sourcefile.FromFile(tf, 0)
	require.NoError(t, err)
	file, err := NewFile(src, "f", silent)
	if err == nil {
		err = file.Settle(t.Context(), func() {})
	}
	require.NoError(t, err)
	tail := make(chan []byte, 1)
	c := NewFileThenStream(file, streamOf(t, bytes.NewReader(nil)), tail)
	b, err := c.Next(t.Context(), 0, 64<<20)
	if err == nil {
		_, err = io.Copy(io.Discard, b)
	}
	if err = errors.Join(err, b.Finish()); err != nil {
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
		require.NoError(t, os.Chtimes(path, past, past))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err = c.Next(ctx, base, 64<<20); !errors.Is(err, session.ErrSourceChanged) {
		got := <-tail
		t.Errorf("Next: %v; the tail begins with %d and ends with %d, and no version of the file is like that (before: 0 and 0, now: 1 and 1)", err, got[0], got[len(got)-1])
	}
}

// TestFileThenStream checks what is known of a file that a stream continues, before and after the last bytes of the
// file are the start of the stream. The walk sends it.
func TestFileThenStream(t *testing.T) {
	all := random(4*q + 1000) // the file has the first two units and 1000 bytes
	const base = 2 * q
	tail := make(chan []byte, 1)
	file := FromBytes(all[:base+1000], silent)
	c := NewFileThenStream(file, streamOf(t, io.MultiReader(&tailReader{tail: tail, ctx: t.Context()}, bytes.NewReader(all[base+1000:]))), tail)
	if _, err := c.Next(t.Context(), base, q); !errors.Is(err, session.ErrUnexpectedData) {
		t.Errorf("bytes are committed that were not read: %v", err)
	}
	for offset, from := range map[int64]int64{1: 1, q: q, q + 1: q} { // less than a unit of the file is left: bytes are sent again
		b, err := c.Next(t.Context(), offset, 4*q)
		if err = errors.Join(err, b.Finish()); err != nil || b.Range != (chunk.Range{From: from, To: base}) || b.Last {
			t.Errorf("from %d: %v, last %v, %v, want from %d", offset, b.Range, b.Last, err, from)
		}
	}
	verdict := func(p content.Prefix, want content.Verdict) {
		t.Helper()
		if got, err := c.Compare(t.Context(), p, true); got != want || err != nil {
			t.Errorf("%v: %v, %v, want %v", p, got, err, want)
		}
	}
	b, err := c.Next(t.Context(), q, q)
	require.NoError(t, err)
	if _, err = io.Copy(io.Discard, b); errors.Join(err, b.Finish()) != nil {
		t.Fatal(err)
	}
	verdict(prefix(all[:base], "md5"), content.Unknown)
	verdict(prefix(all[:base], "crc32c"), content.Same)
	verdict(prefix(all[:base+1], "crc32c"), content.Unknown)
	if _, err := c.Whole(t.Context()); !c.Replayable() || c.Total() != -1 || !errors.Is(err, session.ErrUnexpectedData) {
		t.Errorf("before the stream: replayable %v, %d bytes, %v", c.Replayable(), c.Total(), err)
	}
	c.Committed(base)
	b, err = c.Next(t.Context(), base+1, 4*q)
	if err != nil || b.Range != (chunk.Range{From: base + 1, To: base + 2*q}) || b.Last || c.Replayable() || c.Total() != -1 {
		t.Errorf("%v, last %v, %v, replayable %v, %d bytes", b.Range, b.Last, err, c.Replayable(), c.Total())
	}
	verdict(prefix(all[:base], "other crc32c"), content.Different)
	verdict(prefix(all[:base+1], "crc32c"), content.Same)
	verdict(prefix(all[:base+q], "other crc32c"), content.Different)
	c.Committed(base + 2*q)
	if b, err = c.Next(t.Context(), base+2*q, q); err != nil || !b.Last || b.CRC32C != checksum.Update(0, all) || c.Total() != int64(len(all)) || c.Changed(t.Context(), 1) != nil {
		t.Errorf("last %v, %08x, %v, %d bytes", b.Last, b.CRC32C, err, c.Total())
	}
	if whole, err := c.Whole(t.Context()); err != nil || whole != (chunk.Checkpoint{Offset: int64(len(all)), CRC32C: checksum.Update(0, all)}) {
		t.Errorf("%+v, %v", whole, err)
	}
}
