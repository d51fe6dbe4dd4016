package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// fakeDir is a lister of count generated names.
type fakeDir struct{ pos, count int }

func (d *fakeDir) close() {}

func (d *fakeDir) next() (entry, error) {
	if d.pos == d.count {
		return "", io.EOF
	}
	// 7919 is prime and does not divide count, so that each number comes once,
	// and out of order.
	n := d.pos * 7919 % d.count
	d.pos++
	if n%100 == 0 {
		return entry(fmt.Sprintf("name-%09d/", n)), nil
	}
	return entry(fmt.Sprintf("name-%09d", n)), nil
}

// A directory of a million entries is sorted in constant memory, and its files
// are removed.
func TestSortLargeDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	count := testsize.Full(1_000_000, 300_000)
	dir := t.TempDir()
	runtime.GC()
	var before, m runtime.MemStats
	runtime.ReadMemStats(&before)
	var held int
	s := sortEntries(t.Context(), &fakeDir{count: count}, dir, &held)
	for i := range count {
		e, err := s.next()
		require.NoError(t, err)
		want := fmt.Sprintf("name-%09d", i)
		if i%100 == 0 {
			want += "/"
		}
		if string(e) != want {
			t.Fatalf("entry %d is %s, want %s", i, e, want)
		}
		if i%(count/4) == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			if used := int64(m.HeapAlloc) - int64(before.HeapAlloc); used > 24<<20 {
				t.Errorf("at entry %d: %d MiB in use", i, used>>20)
			}
		}
	}
	if e, err := s.next(); err != io.EOF {
		t.Errorf("after the last entry: %q, %v", e, err)
	}
	s.close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left (%v)", len(left), err)
	}
	if held != 0 {
		t.Errorf("%d entries are counted as in memory", held)
	}
}

// Open directories share the memory. The count returns to 0.
func TestEntriesInMemory(t *testing.T) {
	var held int
	var open []*sorted
	for range 5 {
		open = append(open, sortEntries(t.Context(), &fakeDir{count: 30_000}, t.TempDir(), &held))
	}
	if held > maxInMemory+minInMemory {
		t.Errorf("%d entries in memory, the limit is %d", held, maxInMemory)
	}
	for _, s := range open {
		for range 10 {
			_, err := s.next()
			require.NoError(t, err)
		}
		s.close()
	}
	if held != 0 {
		t.Errorf("%d entries are counted as in memory", held)
	}
}

// A sort ends soon if the walk is canceled.
func TestSortCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var held int
	d := &fakeDir{count: 100_000_000}
	s := sortEntries(ctx, d, t.TempDir(), &held)
	defer s.close()
	if d.pos > maxInMemory+2 {
		t.Errorf("%d entries were read", d.pos)
	}
}

// flakyDir fails for some entries.
type flakyDir struct{ fakeDir }

func (d *flakyDir) next() (entry, error) {
	e, err := d.fakeDir.next()
	if err == nil && d.pos%10 == 0 {
		err = errors.New("flaky")
	}
	return e, err
}

// The errors of single entries are returned, and the other entries.
func TestSortErrors(t *testing.T) {
	SortSoon(t, 20, 1)
	for _, count := range []int{10, 100, 10_000} {
		var held, failed, read int
		s := sortEntries(t.Context(), &flakyDir{fakeDir{count: count}}, t.TempDir(), &held)
		for {
			_, err := s.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				failed++
			} else {
				read++
			}
		}
		s.close()
		if failed != count/10 || read != count-count/10 {
			t.Errorf("%d of %d entries, and %d errors", read, count, failed)
		}
	}
}
