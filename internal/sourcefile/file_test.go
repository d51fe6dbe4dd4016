package sourcefile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
)

// fixed is a modification time that no file has.
var fixed = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// wrapped is an *os.File as io.Copy passes it.
type wrapped struct{ *os.File }

// TestFromFile checks the bytes and the identity of a part of an open file.
func TestFromFile(t *testing.T) {
	path := file(t, []byte("0123456789"))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	for _, open := range []sourcefile.ReaderAt{f, wrapped{f}} {
		src, err := sourcefile.FromFile(open, 4)
		require.NoError(t, err)
		got := make([]byte, 6)
		if err := src.ReadFull(got, 0); err != nil || string(got) != "456789" || src.Size() != 6 {
			t.Errorf("%q of %d bytes, %v", got, src.Size(), err)
		}
		before, err := src.Identity()
		if err != nil || before.Size != 6 {
			t.Errorf("identity %+v, %v", before, err)
		}
		settled, err := src.Settle(t.Context())
		if err != nil || settled.Identity != before {
			t.Errorf("settled %+v, %v, want the identity %+v", settled, err, before)
		}
		require.NoError(t, os.Chtimes(path, fixed, fixed))
		fixed = fixed.AddDate(1, 0, 0)
		if after, err := src.Identity(); err != nil || sourcefile.Compare(before, after) != sourcefile.Different {
			t.Errorf("identity of the changed file %+v, %v", after, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.ReadAt(got, 0); err != nil {
			t.Errorf("the file is closed: %v", err)
		}
	}
	if _, err := sourcefile.FromFile(f, 11); err == nil {
		t.Error("an offset after the end is accepted")
	}
}

// TestFromFS checks files that are not on a disk.
func TestFromFS(t *testing.T) {
	fsys := fstest.MapFS{"f": {Data: []byte("0123456789")}, "d/x": {}}
	f, err := fsys.Open("f")
	require.NoError(t, err)
	src, err := sourcefile.FromFile(f.(sourcefile.ReaderAt), 0)
	require.NoError(t, err)
	var b bytes.Buffer
	body := src.Body(chunk.Range{From: 0, To: 10}, nil)
	defer body.Close()
	if _, err := b.ReadFrom(body); err != nil || b.String() != "0123456789" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if id, err := src.Identity(); err != nil || id.Size != 10 {
		t.Errorf("identity %+v, %v", id, err)
	}
	if _, err := sourcefile.FromFile(dir{}, 0); !errors.Is(err, chunk.ErrNotRegular) {
		t.Errorf("directory: %v", err)
	}
}

type dir struct{}

func (dir) ReadAt([]byte, int64) (int, error) { return 0, fs.ErrInvalid }
func (dir) Stat() (fs.FileInfo, error)        { return fstest.MapFS{"d/x": {}}.Stat("d") }
