package stream_test

import (
	"bytes"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"gcsup/internal/require"
	"gcsup/upload/internal/stream"
)

// next returns the next part of a stream that continues after it.
func next(t *testing.T, s *stream.Stream) stream.Part {
	t.Helper()
	p, err := s.Next(t.Context())
	if err != nil || p.Last {
		t.Fatalf("Next = %v, last %v, %v", p.Range, p.Last, err)
	}
	return p
}

// endless returns a stream of zeros.
func endless(t *testing.T, m *stream.Memory, window int) *stream.Stream {
	t.Helper()
	s, err := m.NewStream(zeros{}, window)
	require.NoError(t, err)
	return s
}

// TestMemoryIsShared checks that 50 streams of which no part is released use no
// more than the budget, and return all of it.
func TestMemoryIsShared(t *testing.T) {
	if testing.Short() {
		t.Skip("reads many MiB")
	}
	for _, budget := range []int64{128 * mib, 16 * mib, 1} {
		synctest.Test(t, func(t *testing.T) {
			m := stream.NewMemory(budget)
			var streams []*stream.Stream
			for range 50 {
				s := endless(t, m, 0)
				streams = append(streams, s)
				if _, _, err := s.Head(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range streams {
				next(t, s)
			}
			synctest.Wait()
			most := max(budget*7/8, 50*2*mib)
			if used, n := m.Used(); used > most || used < most*3/4 || n != 50 {
				t.Errorf("budget %d: %d streams use %d bytes, want 50 and at most %d", budget, n, used, most)
			}
			for _, s := range streams {
				s.Close()
				s.Release()
			}
			if used, n := m.Used(); used != 0 || n != 0 {
				t.Errorf("budget %d: %d bytes of %d streams are still in use", budget, used, n)
			}
		})
	}
}

// TestEarlyStreamGivesWay checks that the windows of a stream become shorter when
// others start, and longer when those are closed.
func TestEarlyStreamGivesWay(t *testing.T) {
	if testing.Short() {
		t.Skip("reads many MiB")
	}
	synctest.Test(t, func(t *testing.T) {
		m := stream.NewMemory(128 * mib)
		early := endless(t, m, 0)
		defer early.Close()
		if p := next(t, early); p.Len() != 16*mib {
			t.Errorf("the first part has %d bytes, want 16 MiB", p.Len())
		}
		synctest.Wait() // the second window is filled
		var others []*stream.Stream
		for range 49 {
			s := endless(t, m, 0)
			others = append(others, s)
			if _, _, err := s.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range others {
			if p := next(t, s); p.Len() < mib || p.Len() > 128*mib/50/2 {
				t.Errorf("a part of another stream has %d bytes", p.Len())
			}
		}
		early.Release()
		next(t, early) // filled before
		early.Release()
		if p := next(t, early); p.Len() < mib || p.Len() > 128*mib/50/2 {
			t.Errorf("a part has %d bytes beside 49 other streams", p.Len())
		}
		for _, s := range others {
			s.Close()
			s.Release()
		}
		synctest.Wait()
		early.Release()
		next(t, early) // begun before
		early.Release()
		if p := next(t, early); p.Len() != 16*mib {
			t.Errorf("a part has %d bytes after the others are closed, want 16 MiB", p.Len())
		}
	})
}

// TestSpentMemoryStopsNoStream checks that a stream continues while another one
// keeps the whole budget.
func TestSpentMemoryStopsNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := stream.NewMemory(32 * mib)
		stuck := endless(t, m, 0)
		defer stuck.Close()
		next(t, stuck)
		synctest.Wait()
		if used, _ := m.Used(); used != 28*mib {
			t.Fatalf("%d bytes are used, want 28 MiB", used)
		}
		s := endless(t, m, 0)
		defer s.Close()
		for range 10 {
			if p := next(t, s); p.Len() != mib {
				t.Errorf("a part has %d bytes, want 1 MiB", p.Len())
			}
			s.Release()
			synctest.Wait()
			if used, _ := m.Used(); used > 30*mib {
				t.Errorf("%d bytes are used, want at most 30 MiB", used)
			}
		}
	})
}

// slow returns zeros, and takes time for each Read.
type slow struct{ each atomic.Int64 } // a time.Duration

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(time.Duration(s.each.Load()))
	return zeros{}.Read(p)
}

// TestFastReaderHasOneWindow checks that a stream has one window instead of two as
// long as its reader is faster than the server, if the memory is short.
func TestFastReaderHasOneWindow(t *testing.T) {
	if testing.Short() {
		t.Skip("reads many MiB")
	}
	const reply = 20 * time.Millisecond
	for _, tt := range []struct {
		name    string
		budget  int64
		streams int
		window  int
		read    time.Duration // of each piece
		want    []int64       // pieces of each part
	}{
		{"fast", 16 * mib, 4, 0, 0, []int64{7, 7, 14, 14, 14}},
		{"fast, least memory", 1, 4, 0, 0, []int64{4, 4, 8, 8, 8}},
		{"fast, enough memory", 64 * mib, 2, 0, 0, []int64{56, 56, 56, 56}},
		{"fast, short window", 16 * mib, 4, 2 * mib, 0, []int64{7, 7, 7, 7}},
		{"fast, no budget", 0, 4, 0, 0, []int64{64, 64, 64, 64}},
		{"an eighth of the reply", 16 * mib, 4, 0, reply / 9 / 7, []int64{7, 7, 7, 7}},
		{"slow", 16 * mib, 4, 0, reply, []int64{7, 7, 7, 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := stream.NewMemory(tt.budget)
				for range tt.streams - 1 {
					other := endless(t, m, 0)
					defer other.Close()
					if _, _, err := other.Head(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				r := &slow{}
				r.each.Store(int64(tt.read))
				s, err := m.NewStream(r, tt.window)
				require.NoError(t, err)
				var got []int64
				parts := func(n int) {
					for range n {
						got = append(got, next(t, s).Len()/q)
						time.Sleep(reply)
						s.Release()
					}
				}
				if parts(len(tt.want)); !slices.Equal(got, tt.want) {
					t.Errorf("the parts have %d pieces, want %d", got, tt.want)
				}
				// A reader that becomes slow is read ahead again.
				whole := got[len(got)-1] > got[0]
				r.each.Store(int64(reply))
				got = nil
				if parts(4); slices.Max(got[2:]) != tt.want[0] {
					t.Errorf("the parts of a slow reader have %d pieces, want %d at the end", got, tt.want[0])
				}
				// Close returns while the stream waits for its only window.
				r.each.Store(int64(tt.read))
				parts(4)
				if got[len(got)-1] > tt.want[0] != whole {
					t.Errorf("the parts have %d pieces after the reader was slow", got)
				}
				next(t, s)
				synctest.Wait()
				s.Close()
				s.Release()
				if used, n := m.Used(); n != tt.streams-1 || used != int64(n)*q {
					t.Errorf("%d bytes of %d streams are still in use", used, n)
				}
			})
		})
	}
}

// TestMemoryIsReturned checks that a stream returns its memory for every kind of end.
func TestMemoryIsReturned(t *testing.T) {
	data := content(5 * q)
	plain := func(n int64) func() io.Reader { return func() io.Reader { return bytes.NewReader(data[:n]) } }
	broken := func(n int64) func() io.Reader {
		return func() io.Reader {
			return io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(io.ErrUnexpectedEOF))
		}
	}
	for name, source := range map[string]func() io.Reader{
		"empty": plain(0), "short": plain(10), "long": plain(5 * q), "broken": broken(10), "broken later": broken(3*q + 1),
		"endless": func() io.Reader { return zeros{} },
	} {
		for parts := range 4 { // number of parts that are read before the stream is closed
			for _, release := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					m := stream.NewMemory(128 * mib)
					s, err := m.NewStream(source(), q)
					require.NoError(t, err)
					for range parts {
						if _, err := s.Next(t.Context()); err != nil {
							break
						}
						if release {
							s.Release()
						}
					}
					if release {
						synctest.Wait() // it reads ahead
					}
					s.Close()
					s.Release()
					s.Close()
					if used, n := m.Used(); used != 0 || n != 0 {
						t.Errorf("%s: after %d parts %d bytes of %d streams are still in use", name, parts, used, n)
					}
				})
			}
		}
	}
}

// TestMemoryIsReused checks that a stream needs little new memory after another one.
// With the race detector, the pool drops a quarter of what it gets.
func TestMemoryIsReused(t *testing.T) {
	passThrough(t, 10*mib)
	least := allocated(func() { passThrough(t, 10*mib) })
	for range 5 { // the garbage collector may empty the pool
		least = min(least, allocated(func() { passThrough(t, 10*mib) }))
	}
	if least > 5*mib {
		t.Errorf("the second stream of 10 MiB allocates %d bytes", least)
	}
}
