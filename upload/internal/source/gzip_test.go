package source

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/stream"
)

// text returns n bytes that can be compressed to about three quarters, by each level to other bytes.
func text(n int) []byte {
	b := random(n)
	for i := range b {
		b[i] &= 0x3f
	}
	return b
}

func gzipOf(t *testing.T, data []byte, level int) *Gzip {
	t.Helper()
	g := NewGzip(FromBytes(data, silent), Compressor{level}, &stream.Memory{}, 2*q)
	t.Cleanup(g.Close)
	return g
}

// TestOtherCompressor checks that a file which another version compresses to other bytes is not continued, whatever
// the service has committed, and whatever that version recorded.
func TestOtherCompressor(t *testing.T) {
	data := text(4 * q)
	first := gzipOf(t, data, flate.HuffmanOnly)
	r := &received{t: t}
	for complete := false; !complete; {
		b, err := first.Next(t.Context(), int64(len(r.committed)), 2*q)
		require.NoError(t, err)
		r.known = append(r.known, first.Newest(0, b.To))
		bytes, _ := io.ReadAll(b)
		r.committed, complete = append(r.committed, bytes...), b.Last
		first.Committed(b.To)
	}
	size, file := first.Compression(first.Total())
	end := r.known[len(r.known)-1]
	if size != end.Offset || file.Offset != 4*q || len(r.known) != 2 {
		t.Fatalf("compressed to %d bytes of %d: %v", size, file.Offset, r.known)
	}
	full := &Compression{size, file}
	for name, tt := range map[string]struct {
		saved Saved
		other bool // the other version notices it
	}{
		"all checkpoints":    {Saved{r.known, size, full}, true},
		"only the first":     {Saved{r.known[:1], r.known[0].Offset, &Compression{}}, true},
		"another size":       {Saved{[]chunk.Checkpoint{{Offset: size + 7, CRC32C: 1}}, size + 7, &Compression{Size: size + 7}}, true},
		"no checkpoints yet": {Saved{nil, 0, &Compression{}}, false},
	} {
		for _, level := range []int{flate.HuffmanOnly, flate.BestSpeed} {
			for _, committed := range []int64{1, q, 2 * q, 2*q + 1} {
				g := gzipOf(t, data, level)
				g.Adopt(tt.saved)
				if (g.Total() < 0) != (tt.saved.Compression.Size == 0) {
					t.Errorf("%s: the compressed size is %d", name, g.Total())
				}
				err := g.Seek(t.Context(), committed)
				for last := false; err == nil && !last; {
					var b content.Body
					if b, err = g.Next(t.Context(), committed, 8*q); err == nil {
						committed, last = b.To, b.Last
						g.Committed(b.To)
					}
				}
				_, other := errors.AsType[*OtherCompressor](err)
				if want := tt.other && (level != flate.HuffmanOnly || name == "another size"); other != want || err != nil && (!other || !strings.Contains(err.Error(), "compresses the first ")) {
					t.Errorf("%s, level %d, %d committed: %v, want OtherCompressor: %v", name, level, committed, err, want)
				}
			}
		}
	}
	done := gzipOf(t, data, flate.BestSpeed)
	done.Adopt(Saved{r.known, size, full})
	whole, err := done.Whole(t.Context())
	if serr := done.Seek(t.Context(), size); serr != nil || err != nil || whole != end || done.Total() != size { // nothing must be sent
		t.Errorf("all bytes are committed: %v, %+v, %v", serr, whole, err)
	}
	if _, err := done.Next(t.Context(), size, q); !errors.Is(err, session.ErrProtocol) {
		t.Errorf("a request after the end: %v", err)
	}
}

// TestGzipContent checks the ways to get the compressed bytes of a file, which are the same.
func TestGzipContent(t *testing.T) {
	for _, size := range []int{0, 1000, 4 * q} {
		data := text(size)
		whole, err := gzipOf(t, data, flate.HuffmanOnly).Whole(t.Context())
		require.NoError(t, err)
		g := gzipOf(t, data, flate.HuffmanOnly)
		loaded, err := g.Load(t.Context())
		require.NoError(t, err)
		zipped, _ := io.ReadAll(loaded.Open())
		if !bytes.Equal(unzip(t, zipped), data) || (chunk.Checkpoint{Offset: loaded.Size, CRC32C: loaded.CRC32C}) != whole || whole.CRC32C != checksum.Update(0, zipped) || g.Total() != whole.Offset {
			t.Errorf("%d bytes: Load returns %d bytes, want %+v", size, loaded.Size, whole)
		}
		if sent, committed := g.Offsets().Estimate(whole.Offset, 0); sent != int64(size) || committed != 0 || g.Offsets().Size() != int64(size) {
			t.Errorf("%d bytes: %d were sent and %d committed", size, sent, committed)
		}
		window, err := g.LoadWindow(t.Context())
		if fits := whole.Offset <= 2*q; err != nil || (window.Open != nil) != fits || fits && (window.Size != loaded.Size || window.CRC32C != loaded.CRC32C) {
			t.Errorf("%d bytes: LoadWindow returns %d bytes, %v", size, window.Size, err)
		}
		for _, other := range []chunk.Checkpoint{whole, {Offset: whole.Offset - 1, CRC32C: whole.CRC32C}, {Offset: whole.Offset + 1, CRC32C: whole.CRC32C}, {Offset: whole.Offset, CRC32C: 1}} {
			same, err := gzipOf(t, data, flate.HuffmanOnly).Equal(t.Context(), other)
			if err != nil || same != (other == whole) {
				t.Errorf("%d bytes: equal to %+v: %v, %v", size, other, same, err)
			}
		}
		g.file.copied = true
		if _, err := g.Next(t.Context(), 0, q); err != nil {
			t.Fatal(err)
		}
		n := min(whole.Offset, q)
		for _, sum := range []string{"other crc32c", "crc32c"} {
			if v, err := g.Compare(t.Context(), prefix(zipped[:n], sum), false); err != nil || v == content.Unknown || g.Copied() != (sum != "crc32c") {
				t.Errorf("%d bytes: %s: %v, %v, copied %v", size, sum, v, err, g.Copied())
			}
		}
		if g.Identity() != (chunk.Identity{Size: int64(size)}) || g.Changed(t.Context(), 1) != nil || !g.Replayable() || g.Newest(0, 5*q).Offset != 0 {
			t.Errorf("%d bytes: %+v", size, g.Identity())
		}
	}
	for name, get := range map[string]func(g *Gzip) error{
		"Next":       func(g *Gzip) error { _, err := g.Next(t.Context(), 0, q); return err },
		"Load":       func(g *Gzip) error { _, err := g.Load(t.Context()); return err },
		"LoadWindow": func(g *Gzip) error { _, err := g.LoadWindow(t.Context()); return err },
		"Whole":      func(g *Gzip) error { _, err := g.Whole(t.Context()); return err },
		"Equal":      func(g *Gzip) error { _, err := g.Equal(t.Context(), chunk.Checkpoint{Offset: q}); return err },
		"CompareAll": func(g *Gzip) error {
			return g.CompareAll(t.Context(), Saved{Compression: &Compression{Source: chunk.Checkpoint{Offset: 1}}})
		},
		"Seek": func(g *Gzip) error { return g.Seek(t.Context(), q) },
		"NextPart": func(g *Gzip) error {
			if err := g.Divide(q, func(int64) (want, must int64) { return q, q }); err != nil {
				return err
			}
			_, _, err := g.NextPart(t.Context())
			return err
		},
	} {
		for want, r := range map[error]io.ReaderAt{chunk.ErrRead: broken{}, chunk.ErrChanged: bytes.NewReader(random(q))} {
			g := NewGzip(FromReaderAt(r, 2*q, silent), Compressor{}, &stream.Memory{}, 0)
			if err := get(g); !errors.Is(err, want) || errors.Is(err, chunk.ErrRead) != (want == chunk.ErrRead) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			g.Close()
		}
	}
}

// TestGzipReader checks that the compressed bytes do not depend on the reads, that the error of a reader follows the
// bytes before it, and that a reader which makes no progress is an error.
func TestGzipReader(t *testing.T) {
	data := text(q + 1000)
	var want []byte
	for i, r := range []io.Reader{bytes.NewReader(data), bytes.NewReader(data), iotest.HalfReader(bytes.NewReader(data)), iotest.DataErrReader(bytes.NewReader(data))} {
		zipped, _ := Compressor{}.Reader(r)
		got, err := io.ReadAll(zipped)
		if i == 0 {
			want = got
		}
		if err != nil || !bytes.Equal(got, want) || !bytes.Equal(unzip(t, got), data) {
			t.Errorf("reader %d: %d bytes, %v, want %d", i, len(got), err, len(want))
		}
	}
	tries := 0
	for name, tt := range map[string]struct {
		read func([]byte) (int, error)
		want error
	}{
		"fails":       {func([]byte) (int, error) { return 0, io.ErrClosedPipe }, io.ErrClosedPipe},
		"no progress": {func([]byte) (int, error) { tries++; return 0, nil }, io.ErrNoProgress},
		"negative":    {func([]byte) (int, error) { return -1, nil }, nil},
		"too much":    {func(p []byte) (int, error) { return len(p) + 1, nil }, nil},
	} {
		zipped, _ := Compressor{}.Reader(io.MultiReader(strings.NewReader("text"), readFunc(tt.read)))
		_, err := io.ReadAll(zipped)
		if tt.want == nil && (err == nil || !strings.Contains(err.Error(), "invalid count")) || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if tries != maxEmptyReads {
		t.Errorf("%d reads without progress, want %d", tries, maxEmptyReads)
	}
	zipped, stop := Compressor{}.Reader(bytes.NewReader(data))
	stop()
	if _, err := zipped.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after stop: %v", err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestGzipSkip checks that parts which are compressed only for their checksum are reported as read again, and that their
// offsets need no memory.
func TestGzipSkip(t *testing.T) {
	const part, parts = 4 * q, 16
	var again, most int64
	reread := func(n, _, _ int64) { again += n }
	g := NewGzip(FromBytes(random(part*parts), reread), Compressor{flate.HuffmanOnly}, stream.NewMemory(2*part), 2*part)
	t.Cleanup(g.Close)
	require.NoError(t, g.Divide(part, func(int64) (want, must int64) { return part, part }))
	for {
		body, rng, err := g.NextPart(t.Context())
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		body.Free()
		g.Skip(rng, part*parts)
		g.offsets.mu.Lock()
		most = max(most, int64(len(g.offsets.marks)))
		g.offsets.mu.Unlock()
	}
	if again != part*parts || most > part*parts/q/2 {
		t.Errorf("%d bytes were read again, and up to %d offsets kept", again, most)
	}
}

// TestOffsets checks which offset of the file belongs to one in its compressed bytes.
func TestOffsets(t *testing.T) {
	o := Offsets{size: 1000}
	o.reset(offsetMark{})
	for _, m := range []offsetMark{{10, 100}, {10, 200}, {30, 400}, {40, 1000}} {
		o.add(m)
	}
	for _, forget := range []int64{0, 30} {
		o.Forget(forget)
		for _, tt := range []struct{ offset, read, estimate int64 }{
			{0, 0, 0}, {5, 100, 50}, {10, 100, 100}, {11, 400, 210}, {20, 400, 300}, {30, 400, 400}, {35, 1000, 700}, {40, 1000, 1000}, {41, 1000, 1000},
		} {
			if tt.offset < forget {
				continue
			}
			estimate, same := o.Estimate(tt.offset, tt.offset)
			if read := o.read(tt.offset); read != tt.read || estimate != tt.estimate || same != estimate {
				t.Errorf("%d: %d bytes were read, and about %d are in it; want %d, %d", tt.offset, read, estimate, tt.read, tt.estimate)
			}
		}
	}
	if len(o.marks) != 3 { // the one before 30 remains, for an estimate after it
		t.Errorf("%d marks remain: %v", len(o.marks), o.marks)
	}
	o.reset(offsetMark{7, 70})
	if sent, committed := o.Estimate(7, 0); sent != 70 || committed != 0 || o.Size() != 1000 {
		t.Errorf("after a reset: %d, %d of %d", sent, committed, o.Size())
	}
	o.Resume(100, 900)
	o.restart(offsetMark{})
	o.add(offsetMark{50, 600})
	for offset, want := range map[int64]int64{25: 300, 50: 600, 75: 750, 100: 900, 101: 900} { // up to 100 by an earlier process
		if sent, committed := o.Estimate(offset, offset); sent != want || committed != want {
			t.Errorf("%d, resumed: %d, %d, want %d", offset, sent, committed, want)
		}
	}
	o.add(offsetMark{100, 950})
	if sent, committed := o.Estimate(101, 75); sent != 950 || committed != 775 {
		t.Errorf("compressed again: %d, %d", sent, committed)
	}
}
