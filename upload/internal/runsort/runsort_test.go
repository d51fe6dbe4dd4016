package runsort

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// byKey compares the part before the first tab.
func byKey(a, b []byte) int {
	ka, _, _ := bytes.Cut(a, []byte("\t"))
	kb, _, _ := bytes.Cut(b, []byte("\t"))
	return bytes.Compare(ka, kb)
}

// TestSortedIsStable compares the Sorter with slices.SortStableFunc, for records
// that need no file, a few runs, and more than one level of runs.
func TestSortedIsStable(t *testing.T) {
	for _, size := range []int{0, 1, 2, 1000, 20_000, 100_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			if size > 20_000 && testing.Short() {
				t.Skip("short")
			}
			rng := rand.New(rand.NewPCG(1, uint64(size)))
			dir := t.TempDir()
			s := New(byKey, &Options{Dir: dir, Memory: minMemory})
			var want [][]byte
			for i := range size {
				record := fmt.Appendf(nil, "%d\t%0100d", rng.IntN(size/3+1), i)
				if i%1000 == 0 {
					record = append(record, bytes.Repeat([]byte("x"), rng.IntN(2*blockSize))...)
				}
				if i%5 == 0 {
					record = nil
				}
				want = append(want, bytes.Clone(record))
				require.NoError(t, s.Add(record))
			}
			slices.SortStableFunc(want, byKey)
			if size == 100_000 && len(s.levels) < 2 {
				t.Errorf("%d levels of runs, want 2", len(s.levels))
			}
			i := 0
			for got, err := range s.Sorted() {
				require.NoError(t, err)
				if !bytes.Equal(got, want[i]) {
					t.Fatalf("record %d is %.40q, want %.40q", i, got, want[i])
				}
				i++
			}
			if i != len(want) {
				t.Errorf("%d records, want %d", i, len(want))
			}
			empty(t, dir)
		})
	}
}

// empty checks that dir has no files.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%s has %v, %v", dir, entries, err)
	}
}

func fill(t *testing.T, s *Sorter, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, s.Add(fmt.Appendf(nil, "%010d", n-i)))
	}
}

func TestEarlyStopRemovesFiles(t *testing.T) {
	dir := t.TempDir()
	s := New(bytes.Compare, &Options{Dir: dir, Memory: minMemory})
	fill(t, s, 20_000)
	if len(s.levels) == 0 {
		t.Fatal("no run was written")
	}
	for range s.Sorted() {
		break
	}
	empty(t, dir)
	for _, err := range s.Sorted() {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("a second Sorted: %v", err)
		}
	}
	if err := s.Add(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Add after Sorted: %v", err)
	}
}

func TestCloseRemovesFiles(t *testing.T) {
	dir := t.TempDir()
	s := New(bytes.Compare, &Options{Dir: dir, Memory: minMemory})
	fill(t, s, 20_000)
	s.Close()
	s.Close()
	empty(t, dir)
}

// TestErrors checks that the errors of the file system reach the caller.
func TestErrors(t *testing.T) {
	s := New(bytes.Compare, &Options{Dir: filepath.Join(t.TempDir(), "missing"), Memory: minMemory})
	var err error
	for i := 0; i < 20_000 && err == nil; i++ {
		err = s.Add(fmt.Appendf(nil, "%d", i))
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Add: %v, want os.ErrNotExist", err)
	}
	for _, again := range s.Sorted() {
		if !errors.Is(again, os.ErrNotExist) {
			t.Errorf("Sorted: %v, want os.ErrNotExist", again)
		}
	}

	s = New(bytes.Compare, &Options{Dir: t.TempDir(), Memory: minMemory})
	fill(t, s, 20_000)
	require.NoError(t, s.levels[0][0].file.Truncate(1000))
	err = nil
	for _, e := range s.Sorted() {
		err = e
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a truncated run: %v, want io.ErrUnexpectedEOF", err)
	}
}

// TestMemory checks that a million records need little more than Memory.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	s := New(bytes.Compare, &Options{Dir: t.TempDir(), Memory: 4 << 20})
	rng := rand.New(rand.NewPCG(1, 2))
	record := make([]byte, 100)
	var before, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak uint64
	sample := func() {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc-min(before.HeapAlloc, m.HeapAlloc))
	}
	count := testsize.Full(1_000_000, 300_000)
	for i := range count {
		for j := range 8 {
			record[j] = byte(rng.Uint32())
		}
		require.NoError(t, s.Add(record))
		if i%50_000 == 0 {
			sample()
		}
	}
	n := 0
	for _, err := range s.Sorted() {
		require.NoError(t, err)
		if n++; n%50_000 == 0 {
			sample()
		}
	}
	if n != count || peak > 16<<20 {
		t.Errorf("%d records, peak heap %d bytes, want at most 16 MiB", n, peak)
	}
	t.Logf("peak heap %.1f MiB", float64(peak)/(1<<20))
}

func BenchmarkSort(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	record := bytes.Repeat([]byte("x"), 200)
	s := New(bytes.Compare, &Options{Dir: b.TempDir()})
	n := 0
	for b.Loop() {
		for j := range 16 {
			record[j] = byte(rng.Uint32())
		}
		require.NoError(b, s.Add(record))
		n++
	}
	for _, err := range s.Sorted() {
		require.NoError(b, err)
	}
}
