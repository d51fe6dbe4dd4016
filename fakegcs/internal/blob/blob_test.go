package blob_test

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"

	"gcsup/fakegcs/internal/blob"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

const q = blob.Granularity

// pattern returns n bytes that do not repeat within 256 KiB.
func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*i>>3) ^ byte(i>>13)
	}
	return p
}

func newBlobs(t *testing.T) map[string]func() *blob.Blob {
	dir := t.TempDir()
	n := 0
	return map[string]func() *blob.Blob{
		"memory":             blob.NewHeap(1<<30, func(int64) {}).NewBlob,
		"spilled":            newHeap(t, 0).NewBlob,
		"memory and spilled": func() *blob.Blob { return newHeap(t, 2*q).NewBlob() },
		"file": func() *blob.Blob {
			n++
			id := fmt.Sprint(n)
			return blob.NewFile(id, filepath.Join(dir, id), 0)
		},
	}
}

// newHeap returns a heap with a temporary file that is removed when t ends.
func newHeap(t *testing.T, limit int64) *blob.Heap {
	t.Setenv("TMPDIR", t.TempDir())
	h := blob.NewHeap(limit, func(int64) {})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func read(t *testing.T, b *blob.Blob, from, to int64) []byte {
	t.Helper()
	r, err := b.Section(from, to)
	if err != nil {
		t.Fatalf("Section(%d, %d): %v", from, to, err)
	}
	defer r.Close()
	p, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read [%d, %d): %v", from, to, err)
	}
	return p
}

func TestAppendAndSection(t *testing.T) {
	for name, newBlob := range newBlobs(t) {
		t.Run(name, func(t *testing.T) {
			b, want := newBlob().Retain(), pattern(3*q+5)
			defer b.Release()
			if got := read(t, b, 0, 0); len(got) != 0 {
				t.Errorf("an empty blob has %d bytes", len(got))
			}
			for off := 0; off < len(want); off += q {
				if _, err := b.Append(bytes.Clone(want[off:min(off+q, len(want))]), true); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			for _, from := range []int{0, 1, q - 1, q, q + 1, 3 * q, len(want)} {
				for _, to := range []int{from, from + 1, from + q, len(want), len(want) + 1} {
					end := min(to, len(want))
					if got := read(t, b, int64(from), int64(to)); !bytes.Equal(got, want[from:max(from, end)]) {
						t.Errorf("[%d, %d): %d bytes, or others than expected", from, to, len(got))
					}
				}
			}
			// TestReader reads each byte alone.
			from, to := testsize.Full(1, q-1000), testsize.Full(len(want), q+1000)
			r, err := b.Section(int64(from), int64(to))
			require.NoError(t, err)
			if err := iotest.TestReader(r, want[from:to]); err != nil {
				t.Error(err)
			}
			_ = r.Close()
		})
	}
}

func TestTruncate(t *testing.T) {
	for name, newBlob := range newBlobs(t) {
		t.Run(name, func(t *testing.T) {
			want := pattern(3 * q)
			for _, size := range []int{0, 1, q - 1, q, q + 1, 3 * q, 4 * q} {
				b := newBlob().Retain()
				for off := 0; off < len(want); off += q {
					if _, err := b.Append(bytes.Clone(want[off:off+q]), true); err != nil {
						t.Fatal(err)
					}
				}
				require.NoError(t, b.Truncate(int64(size)))
				kept := want[:min(size, len(want))]
				if got := read(t, b, 0, b.Size()); !bytes.Equal(got, kept) {
					t.Errorf("Truncate(%d) leaves %d bytes, want %d", size, len(got), len(kept))
				}
				if _, err := b.Append([]byte("more"), false); err != nil {
					t.Fatal(err)
				}
				if got := read(t, b, 0, b.Size()); !bytes.Equal(got, slices.Concat(kept, []byte("more"))) {
					t.Errorf("after Truncate(%d), Append gives %d bytes", size, len(got))
				}
				b.Release()
			}
		})
	}
}

// Only the last Release removes the bytes.
func TestRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	b := blob.NewFile("x", path, 0).Retain()
	if _, err := b.Append([]byte("bytes"), false); err != nil {
		t.Fatal(err)
	}
	joined := blob.Join([]*blob.Blob{b, b}).Retain()
	b.Release()
	if got := read(t, joined, 0, joined.Size()); string(got) != "bytesbytes" {
		t.Errorf("the composite has %q", got)
	}
	joined.Release()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file after the last Release: %v", err)
	}
	freed := int64(0)
	m := blob.NewHeap(5, func(n int64) { freed += n }).NewBlob().Retain().Retain()
	if _, err := m.Append([]byte("bytes"), false); err != nil {
		t.Fatal(err)
	}
	if m.Release(); freed != 0 {
		t.Errorf("the first of two Releases freed %d bytes", freed)
	}
	if m.Release(); freed != 5 {
		t.Errorf("the last Release freed %d bytes, want 5", freed)
	}
}

func TestJoin(t *testing.T) {
	heap := newHeap(t, 3) // a part is spilled
	part := func(p []byte) *blob.Blob {
		b := heap.NewBlob()
		if _, err := b.Append(p, false); err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b, none := part([]byte("abc")), part([]byte("de")), part(nil)
	inner := blob.Join([]*blob.Blob{a, none, b})
	outer := blob.Join([]*blob.Blob{none, inner, a})
	const want = "abcdeabc"
	if n := len(outer.Pieces()); n != 5 {
		t.Errorf("%d pieces, want those of the inner composite in place of it", n)
	}
	for from := range len(want) + 1 {
		for to := from; to <= len(want); to++ {
			if got := read(t, outer, int64(from), int64(to)); string(got) != want[from:to] {
				t.Errorf("[%d, %d) = %q, want %q", from, to, got, want[from:to])
			}
		}
	}
	if _, err := outer.Append([]byte("x"), false); err == nil {
		t.Error("a composite can be appended to")
	}
	if err := outer.Truncate(0); err == nil {
		t.Error("a composite can be truncated")
	}
}

func TestDiscarding(t *testing.T) {
	b := blob.NewDiscarding()
	if kept, err := b.Append(make([]byte, 7), true); kept || err != nil {
		t.Errorf("Append = %v, %v", kept, err)
	}
	if _, err := b.Section(0, 1); err != blob.ErrDiscarded || b.Size() != 7 {
		t.Errorf("Section: %v, size %d", err, b.Size())
	}
}

// A digest that is stopped and resumed at any point has the checksums of the
// whole.
func TestResumeDigest(t *testing.T) {
	p := pattern(2*q + 9)
	sum := md5.Sum(p)
	crc := crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))
	for _, withMD5 := range []bool{true, false} {
		for _, cut := range []int{0, 1, q, q + 1, 2 * q, len(p)} {
			var pool blob.Pool
			d := blob.NewDigest(&pool, withMD5)
			add := func(p []byte) {
				for chunk := range slices.Chunk(p, q) {
					d.Add(chunk, false)
				}
			}
			add(p[:cut])
			state, before := d.State(), d.CRC32C()
			d.Idle()
			var err error
			if d, err = blob.ResumeDigest(&pool, withMD5, before, state); err != nil {
				t.Fatal(err)
			}
			add(p[cut:])
			if got := d.MD5(); withMD5 && !bytes.Equal(got, sum[:]) || !withMD5 && got != nil {
				t.Errorf("cut at %d, MD5 %v: %x", cut, withMD5, got)
			}
			if got := d.CRC32C(); got != crc {
				t.Errorf("cut at %d: CRC32C %08x, want %08x", cut, got, crc)
			}
			d.Idle()
		}
	}
	if _, err := blob.ResumeDigest(&blob.Pool{}, true, 0, nil); err == nil {
		t.Error("an MD5 resumes without a state")
	}
}

// ReadChunks splits at the boundaries of the object, and keeps multiples of 256 KiB
// of a body that is cut off.
func TestReadChunks(t *testing.T) {
	broken := errors.New("broken")
	for _, off := range []int{0, 1, q - 1, q} {
		for _, n := range []int{0, 1, q - 1, q, q + 1, 2*q + 3} {
			for _, end := range []error{io.EOF, broken} {
				var pool blob.Pool
				want := pattern(n)
				src := io.MultiReader(bytes.NewReader(want), iotest.ErrReader(end))
				var got []byte
				err := blob.ReadChunks(src, int64(off), &pool, func(p []byte) error {
					if at := off + len(got); at%q+len(p) > q {
						t.Errorf("offset %d: %d bytes cross a boundary", at, len(p))
					}
					got = append(got, p...)
					pool.Put(p)
					return nil
				})
				if end == broken {
					want = want[:max(0, (off+n)/q*q-off)]
				}
				if !bytes.Equal(got, want) || (err != nil) != (end == broken) {
					t.Errorf("off %d, n %d, end %v: %d bytes, %v, want %d", off, n, end, len(got), err, len(want))
				}
			}
		}
	}
}
