package chunk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// file returns the path of a new file with the given content.
func file(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(testsize.DiskDir(t), "source")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func open(t testing.TB, path string) *chunk.Source {
	t.Helper()
	s, err := chunk.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func identity(t *testing.T, s *chunk.Source) chunk.Identity {
	t.Helper()
	id, err := s.Identity()
	require.NoError(t, err)
	return id
}

func TestSourceReadAt(t *testing.T) {
	for _, n := range sizes {
		want := content(n)
		for name, s := range map[string]*chunk.Source{
			"Open":         open(t, file(t, want)),
			"FromReaderAt": chunk.FromReaderAt(bytes.NewReader(want), n),
		} {
			if s.Size() != n {
				t.Errorf("%s: Size = %d, want %d", name, s.Size(), n)
			}
			if id := identity(t, s); id.Size != n {
				t.Errorf("%s: Identity().Size = %d, want %d", name, id.Size, n)
			}
			got := make([]byte, n+1)
			if k, err := s.ReadAt(got, 0); int64(k) != n || err != io.EOF || !bytes.Equal(got[:k], want) {
				t.Errorf("%s of %d bytes: ReadAt = %d, %v", name, n, k, err)
			}
			if _, err := s.ReadAt(make([]byte, 1), -1); err == nil {
				t.Errorf("%s: ReadAt(-1) = nil error", name)
			}
			for _, off := range []int64{n, n + 1, n + q} {
				if k, err := s.ReadAt(make([]byte, 1), off); k != 0 || err != io.EOF {
					t.Errorf("%s of %d bytes: ReadAt(%d) = %d, %v, want 0, io.EOF", name, n, off, k, err)
				}
			}
		}
	}
}

func TestSourceIsAReaderAt(t *testing.T) {
	want := content(1000)
	if err := iotest.TestReader(io.NewSectionReader(open(t, file(t, want)), 0, 1000), want); err != nil {
		t.Error(err)
	}
}

// TestSourceEndsAtItsSize checks that a source does not include bytes that are
// appended after it was opened.
func TestSourceEndsAtItsSize(t *testing.T) {
	data := content(10)
	path := file(t, data)
	s := open(t, path)
	require.NoError(t, os.WriteFile(path, append(data, "more"...), 0o600))
	p := make([]byte, 20)
	if n, err := s.ReadAt(p, 0); n != 10 || err != io.EOF {
		t.Errorf("ReadAt = %d, %v, want 10, io.EOF", n, err)
	}
	if id := identity(t, s); id.Size != 14 {
		t.Errorf("Identity().Size = %d, want 14, which shows that the file has grown", id.Size)
	}
	wrapped := chunk.FromReaderAt(bytes.NewReader(append(data, "more"...)), 10)
	if n, err := wrapped.ReadAt(p, 4); n != 6 || err != io.EOF {
		t.Errorf("ReadAt = %d, %v, want 6, io.EOF", n, err)
	}
}

func TestOpenRefused(t *testing.T) {
	if _, err := chunk.Open(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of nothing = %v, want fs.ErrNotExist", err)
	}
	if _, err := chunk.Open(t.TempDir()); !errors.Is(err, chunk.ErrNotRegular) {
		t.Errorf("Open of a directory = %v, want ErrNotRegular", err)
	}
	if _, err := chunk.Open(os.DevNull); !errors.Is(err, chunk.ErrNotRegular) {
		t.Errorf("Open of a device = %v, want ErrNotRegular", err)
	}
	if !panics(func() { chunk.FromReaderAt(bytes.NewReader(nil), -1) }) {
		t.Error("FromReaderAt with a negative size: no panic")
	}
}

func TestHash(t *testing.T) {
	for _, n := range append([]int64{3<<20 + 5}, sizes...) {
		data := content(n)
		s := open(t, file(t, data))
		for _, from := range []int64{0, n / 3, n} {
			got, err := s.Hash(t.Context(), at(data, from), n)
			if err != nil || got != at(data, n) {
				t.Errorf("Hash from %d to %d = %v, %v, want %v", from, n, got, err, at(data, n))
			}
		}
	}
}

func TestHashErrors(t *testing.T) {
	cause := errors.New("enough")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	data := content(q)
	short := chunk.FromReaderAt(bytes.NewReader(data[:q-1]), q)
	broken := chunk.FromReaderAt(readerAtFunc(func([]byte, int64) (int, error) { return 0, fs.ErrPermission }), q)
	for _, test := range []struct {
		name     string
		ctx      context.Context
		src      *chunk.Source
		from, to int64
		want     []error
	}{
		{"canceled", canceled, chunk.FromReaderAt(bytes.NewReader(data), q), 0, q, []error{cause}},
		{"short", t.Context(), short, 0, q, []error{chunk.ErrChanged, io.ErrUnexpectedEOF}},
		{"past the end", t.Context(), short, q, q + 1, []error{chunk.ErrChanged}},
		{"broken", t.Context(), broken, 0, q, []error{chunk.ErrRead, fs.ErrPermission}},
		{"inverted", t.Context(), short, 2, 1, nil},
		{"negative", t.Context(), short, -1, 1, nil},
	} {
		_, err := test.src.Hash(test.ctx, chunk.Checkpoint{Offset: test.from}, test.to)
		if err == nil {
			t.Errorf("%s: Hash = nil error", test.name)
		}
		for _, want := range test.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: Hash = %v, want %v", test.name, err, want)
			}
		}
	}
}

type readerAtFunc func([]byte, int64) (int, error)

func (f readerAtFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// TestOpenRefusesContentPastTheSize checks that Open refuses a file with
// content and a size of 0, which would become an empty object.
func TestOpenRefusesContentPastTheSize(t *testing.T) {
	const path = "/proc/version"
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Skipf("%s is not a file of size 0", path)
	}
	_, err := chunk.Open(path)
	if !errors.Is(err, chunk.ErrNotRegular) || !strings.Contains(err.Error(), "as a stream") {
		t.Errorf("Open = %v, want ErrNotRegular and advice", err)
	}
}
