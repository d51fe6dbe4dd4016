package sourcefile_test

import (
	"io/fs"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
)

// TestReads checks that a read is recorded until it has returned, even if a later read of the same file returns before.
func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(sourcefile.Reads)
		began := time.Now()
		hung := r.Begin("a")
		time.Sleep(time.Minute)
		r.Begin("a")()
		other := r.Begin("b")
		if path, since := r.Oldest(); path != "a" || !since.Equal(began) {
			t.Errorf("the oldest read is of %q since %v", path, since)
		}
		hung()
		if path, since := r.Oldest(); path != "b" || time.Since(since) != 0 {
			t.Errorf("the oldest read is of %q since %v", path, since)
		}
		other()
		if path, _ := r.Oldest(); path != "" {
			t.Errorf("a read of %q is left", path)
		}
	})
}

// probe is a file that calls a function during each read.
type probe struct {
	*os.File
	during func()
}

func (p probe) ReadAt(data []byte, off int64) (int, error) {
	p.during()
	return p.File.ReadAt(data, off)
}

func (p probe) Stat() (fs.FileInfo, error) {
	p.during()
	return p.File.Stat()
}

// TestRecord checks that the reads of the bytes, of those of a section and of the metadata of a file are recorded.
func TestRecord(t *testing.T) {
	f, err := os.Open("reads_test.go")
	require.NoError(t, err)
	defer f.Close()
	r := new(sourcefile.Reads)
	var during string
	s, err := sourcefile.FromFile(probe{f, func() { during, _ = r.Oldest() }}, 0)
	require.NoError(t, err)
	s.Record(sourcefile.ReadsOf(sourcefile.WithReads(t.Context(), r)), "name")
	for name, read := range map[string]func() error{
		"bytes":     func() error { return s.ReadFull(make([]byte, 3), 0) },
		"a section": func() error { return s.Section(chunk.Range{From: 3, To: 7}).ReadFull(make([]byte, 3), 0) },
		"metadata":  func() error { _, err := s.Identity(); return err },
	} {
		during = ""
		if err := read(); err != nil || during != "name" {
			t.Errorf("%s: during the read of %q (%v), want name", name, during, err)
		}
		if path, _ := r.Oldest(); path != "" {
			t.Errorf("%s: a read of %q is left", name, path)
		}
	}
}
