package source

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/upload/internal/content"
)

// countedFile counts the bytes that are read.
type countedFile struct {
	*os.File
	read int
}

func (f *countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.read += n
	return n, err
}

// TestHeadOfASmallFile checks that the bytes of a small file are read once for its head and its
// content, and that a change in between is detected.
func TestHeadOfASmallFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, size := range []int{0, 1, content.HeadSize, 64 << 10, 64<<10 + 1} {
		data := bytes.Repeat([]byte("x"), size)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		open := func() (*File, *countedFile) {
			f, err := os.Open(path)
			require.NoError(t, err)
			t.Cleanup(func() { f.Close() })
			counted := &countedFile{File: f}
			src, err := sourcefile.FromFile(counted, 0)
			require.NoError(t, err)
			file, err := NewFile(src, path, func(int64, int64, int64) {})
			require.NoError(t, err)
			t.Cleanup(file.Close)
			return file, counted
		}
		file, counted := open()
		if head := file.Head(); !bytes.Equal(head, data[:min(size, content.HeadSize)]) {
			t.Errorf("%d bytes: a head of %d bytes", size, len(head))
		}
		loaded, err := file.Load(t.Context())
		require.NoError(t, err)
		if got, _ := io.ReadAll(loaded.Open()); !bytes.Equal(got, data) || loaded.CRC32C != checksum.Update(0, data) {
			t.Errorf("%d bytes: Load returns %d bytes, CRC32C %08x", size, len(got), loaded.CRC32C)
		}
		if want := size + max(0, size-64<<10)*content.HeadSize; counted.read != want {
			t.Errorf("%d bytes: %d bytes were read, want %d", size, counted.read, want)
		}
		changed, _ := open()
		changed.Head()
		require.NoError(t, os.WriteFile(path, append(data, 'y'), 0o600))
		if _, err := changed.Load(t.Context()); !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("%d bytes: Load of a file that changed after its head was read: %v", size, err)
		}
	}
}
