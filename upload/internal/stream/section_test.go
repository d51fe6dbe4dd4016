package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/upload/internal/stream"
)

// divided returns a stream whose first part was read, and that is divided into sections.
func divided(t *testing.T, m *stream.Memory, r io.Reader, window int, least, size int64) *stream.Stream {
	t.Helper()
	s, err := m.NewStream(r, window)
	require.NoError(t, err)
	s.Hold(0, 0)
	if _, whole, err := s.Head(t.Context()); whole || err != nil {
		t.Fatalf("Head: %v, %v", whole, err)
	}
	next(t, s)
	s.Divide(least, func(int64) (want, must int64) { return size, 0 })
	return s
}

// TestSectionsOfAnUnreadStream divides a stream that was not read into sections of given sizes, one of which is larger
// than the memory.
func TestSectionsOfAnUnreadStream(t *testing.T) {
	t.Parallel()
	want := content(19*q + 5)
	sizes := map[int64]int64{0: 4 * q, 4 * q: 10 * q, 14 * q: 2 * q, 16 * q: 4 * q}
	m := stream.NewMemory(8 * q)
	s, err := m.NewStream(bytes.NewReader(want), 3*q)
	require.NoError(t, err)
	s.Divide(2*q, func(offset int64) (want, must int64) { return sizes[offset], sizes[offset] })
	at := int64(0)
	for range sizes {
		section, err := s.NextSection(t.Context())
		require.NoError(t, err)
		got, err := io.ReadAll(section.Reader())
		size := min(sizes[at], int64(len(want))-at)
		if err != nil || section.From != at || section.Len() != size || !bytes.Equal(got, want[at:at+size]) || section.CRC32C != crcOf(got) {
			t.Fatalf("section %v, want %d bytes from %d: %v", section.Range, size, at, err)
		}
		at = section.To
		section.Free()
	}
	if _, err := s.NextSection(t.Context()); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	_ = s.Close()
	s.Release()
}

// TestSections checks that the sections have the bytes of the stream and their checksums, in any order in which they
// are freed, and that their memory is returned.
func TestSections(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	const window, least = 7 * q, 2 * q
	for range 100 {
		want := content(window + q + rnd.Int64N(20*q))
		if rnd.IntN(4) == 0 {
			want = want[:chunk.Floor(int64(len(want)))]
		}
		size := 1 + rnd.Int64N(6*q)
		m := stream.NewMemory(64 * mib)
		s := divided(t, m, iotest.HalfReader(bytes.NewReader(want)), window, least, size)
		var held []stream.Section
		at := int64(0)
		for {
			section, err := s.NextSection(t.Context())
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			got, err := io.ReadAll(section.Reader())
			if err != nil || section.From != at || section.Len() != int64(len(got)) || !bytes.Equal(got, want[at:section.To]) || section.CRC32C != crcOf(got) {
				t.Fatalf("section %v at %d of %d bytes: %v", section.Range, at, len(want), err)
			}
			at = section.To
			last := at == int64(len(want))
			if !last && (section.Len() < least || section.Len()%q != 0 || section.Len() > max(chunk.Ceil(size), least)+least) {
				t.Fatalf("section %v for sections of %d bytes", section.Range, size)
			}
			if held = append(held, section); rnd.IntN(2) == 0 {
				i := rnd.IntN(len(held))
				held[i].Free()
				held = append(held[:i], held[i+1:]...)
			}
		}
		if at != int64(len(want)) {
			t.Fatalf("%d bytes of %d", at, len(want))
		}
		if _, err := s.NextSection(t.Context()); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
		for _, section := range held {
			section.Free()
		}
		s.Close()
		s.Release()
		if used, n := m.Used(); used != 0 || n != 0 {
			t.Fatalf("%d bytes of %d streams are still in use", used, n)
		}
	}
}

// TestAhead checks that a stream that was read ahead has the same bytes in its sections and parts, whether that was waited
// for or not, and that their memory is returned.
func TestAhead(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	const window, least = 4 * q, 2 * q
	for i := range 60 {
		ahead := q * rnd.Int64N(12)
		want := content(window + 1 + rnd.Int64N(24*q))
		if rnd.IntN(4) == 0 {
			want = want[:chunk.Floor(int64(len(want)))]
		}
		if len(want) <= window {
			continue
		}
		m := stream.NewMemory(64 * mib)
		s, err := m.NewStream(iotest.HalfReader(bytes.NewReader(want)), window)
		require.NoError(t, err)
		noticed := s.Hold(ahead, q)
		next(t, s)
		last := false
		if wait := ahead > 0 && rnd.IntN(3) > 0; wait {
			if last, err = s.Ahead(t.Context()); err != nil || last != (int64(len(want)) <= window+ahead) {
				t.Fatalf("%d bytes of %d: %v, %v", ahead, len(want), last, err)
			}
			if !last {
				<-noticed
			}
		}
		if last || rnd.IntN(3) == 0 {
			s.Continue()
			var got []byte
			for {
				part, err := s.Next(t.Context())
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				b, err := io.ReadAll(part.Reader(part.From, part.To))
				if err != nil || part.CRC32C != crcOf(want[:part.To]) {
					t.Fatal(part, err)
				}
				got = append(got, b...)
				s.Release()
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%d: %d bytes, want %d", i, len(got), len(want))
			}
		} else {
			s.Divide(least, func(int64) (want, must int64) { return 3 * q, 0 })
			at, short := int64(0), false
			for {
				section, err := s.NextSection(t.Context())
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				got, err := io.ReadAll(section.Reader())
				if err != nil || short || section.From != at || !bytes.Equal(got, want[at:section.To]) || section.CRC32C != crcOf(got) {
					t.Fatalf("%d: section %v after %d, %v", i, section.Range, at, err)
				}
				short, at = section.Len() < least, section.To // only the last one may be
				section.Free()
			}
			if at != int64(len(want)) {
				t.Fatalf("%d: %d bytes, want %d", i, at, len(want))
			}
		}
		s.Close()
		s.Release()
		if used, _ := m.Used(); used != 0 {
			t.Fatalf("%d: %d bytes of memory are not returned", i, used)
		}
	}
}

// TestAheadOfASlowReader checks that a part that is read ahead ends when the stream continues, and that a stream can be
// closed before that.
func TestAheadOfASlowReader(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, in := io.Pipe()
			m := stream.NewMemory(64 * mib)
			s, err := m.NewStream(r, 2*q)
			require.NoError(t, err)
			s.Hold(20*q, 8*q)
			go func() {
				_, _ = in.Write(content(4*q + 1))
				time.Sleep(time.Hour)
				_, _ = in.Write(content(3 * q))
				_ = in.Close()
			}()
			next(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.Ahead(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if closed {
				_ = r.Close()
				s.Close()
				time.Sleep(2 * time.Hour) // until the producer has ended
			} else {
				s.Continue()
				for _, to := range []int64{2 * q, 5 * q, 7 * q, 7*q + 1} { // the second part ends after the piece that was being read
					part, err := s.Next(t.Context())
					if err != nil || part.To != to || part.Last != (to > 7*q) {
						t.Errorf("part %v, %v", part.Range, err)
					}
					s.Release()
				}
				s.Close()
			}
			s.Release()
			if used, _ := m.Used(); used != 0 {
				t.Errorf("%d bytes of memory are not returned", used)
			}
		})
	}
}

// TestContinue checks that a stream that is not divided has the same parts as without Hold.
func TestContinue(t *testing.T) {
	t.Parallel()
	want := content(11*q + 5)
	s, err := stream.NewMemory(64*mib).NewStream(bytes.NewReader(want), 2*q)
	require.NoError(t, err)
	s.Hold(0, 0)
	s.Continue()
	drain(t, s, want, 2*q)
	s.Close()
}

// TestHold checks that a stream reads nothing after its first part before it is known what follows.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &counted{r: zeros{}}
		s, err := stream.NewMemory(64*mib).NewStream(r, 4*q)
		require.NoError(t, err)
		s.Hold(0, 0)
		next(t, s)
		synctest.Wait()
		if r.n != 4*q+1 {
			t.Errorf("%d bytes were read", r.n)
		}
		s.Close()
		s.Release()
	})
}

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// TestSectionsWait checks that a divided stream uses its share of the memory and no more, and continues when some is
// freed.
func TestSectionsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, share = 16 * mib, 14 * mib
		m := stream.NewMemory(budget)
		s := divided(t, m, zeros{}, 4*mib, 2*mib, 3*mib)
		var held []stream.Section
		for range 4 {
			section, err := s.NextSection(t.Context())
			require.NoError(t, err)
			held = append(held, section)
		}
		synctest.Wait()
		if used, _ := m.Used(); used != share {
			t.Errorf("%d bytes are used", used)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := errors.New("ended")
		cancel(ended)
		if _, err := s.NextSection(ctx); !errors.Is(err, ended) {
			t.Errorf("a section without memory: %v", err)
		}
		held[0].Free()
		synctest.Wait()
		if used, _ := m.Used(); used != share-2*mib { // a section waits for its caller
			t.Errorf("%d bytes are used", used)
		}
		section, err := s.NextSection(t.Context())
		if err != nil || section.Len() != 3*mib {
			t.Fatalf("%v, %v", section.Range, err)
		}
		section.Free()
		s.Close() // while it waits
		for i, section := range held {
			if i != 0 {
				section.Free()
			}
		}
		if used, n := m.Used(); used != 0 || n != 0 {
			t.Errorf("%d bytes of %d streams are still in use", used, n)
		}
	})
}

// TestManyDividedStreams checks that streams never wait for each other, even if the budget is spent, and that they use
// at most the budget, or the least of each section.
func TestManyDividedStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, n = 16 * mib, 10
		m := stream.NewMemory(budget)
		var most atomic.Int64
		done := make(chan struct{})
		for range n {
			s := divided(t, m, io.LimitReader(zeros{}, 20*mib+7), 2*mib, 2*mib, 4*mib)
			go func() {
				defer func() { done <- struct{}{} }()
				defer s.Close()
				total := int64(0)
				for {
					section, err := s.NextSection(t.Context())
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Error(err)
						return
					}
					used, _ := m.Used()
					for was := most.Load(); used > was && !most.CompareAndSwap(was, used); was = most.Load() {
					}
					total += section.Len()
					section.Free()
				}
				if total != 20*mib+7 {
					t.Errorf("%d bytes", total)
				}
			}()
			synctest.Wait()
		}
		for range n {
			<-done
		}
		if used, streams := m.Used(); used != 0 || streams != 0 || most.Load() > max(budget*7/8, 2*n*2*mib) {
			t.Errorf("%d bytes of %d streams are still in use, and at most %d were", used, streams, most.Load())
		}
	})
}

// TestSectionsGrow checks that streams whose shares are small have sections as large as they must be, in turn, that the
// budget is exceeded by one of them at most, and that streams which are closed meanwhile do not stop the others.
func TestSectionsGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const budget, n, least, must, total = 14 * mib, 8, mib, 6 * mib, 50*mib + 7
		m := stream.NewMemory(16 * mib)
		var most atomic.Int64
		done := make(chan struct{})
		for i := range n {
			s, err := m.NewStream(io.LimitReader(zeros{}, total), 2*mib)
			require.NoError(t, err)
			s.Hold(0, 0)
			next(t, s)
			s.Divide(least, func(offset int64) (int64, int64) { return must, min(offset, must) })
			go func() {
				defer func() { done <- struct{}{} }()
				defer s.Close()
				at := int64(0)
				for {
					section, err := s.NextSection(t.Context())
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Error(err)
						return
					}
					used, _ := m.Used()
					for was := most.Load(); used > was && !most.CompareAndSwap(was, used); was = most.Load() {
					}
					if want := min(max(section.From, least), must, total-section.From); section.Len() < want {
						t.Errorf("stream %d has %d bytes at %d, want %d", i, section.Len(), section.From, want)
					}
					time.Sleep(time.Duration(i+1) * time.Second) // it is sent
					at = section.To
					section.Free()
					if i%3 == 2 && at > 20*mib {
						return
					}
				}
				if at != total {
					t.Errorf("stream %d has %d bytes", i, at)
				}
			}()
		}
		for range n {
			<-done
		}
		if used, streams := m.Used(); used != 0 || streams != 0 || most.Load() > max(budget, n*least)+must {
			t.Errorf("%d bytes of %d streams are still in use, and at most %d were", used, streams, most.Load())
		}
	})
}

// TestSectionsOfAFailedReader checks that the error of the reader is that of the stream, after the sections before it.
func TestSectionsOfAFailedReader(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, size := range []int64{5*q + 1, 6 * q, 8*q + 3} {
		m := stream.NewMemory(64 * mib)
		s := divided(t, m, io.MultiReader(bytes.NewReader(content(size)), iotest.ErrReader(broken)), 4*q, q, 2*q)
		at := int64(0)
		for {
			section, err := s.NextSection(t.Context())
			if err != nil {
				if !errors.Is(err, broken) || !errors.Is(err, chunk.ErrRead) {
					t.Error(err)
				}
				break
			}
			at = section.To
			section.Free()
		}
		if at != size/(2*q)*(2*q) {
			t.Errorf("%d bytes of %d", at, size)
		}
		s.Close()
		s.Release()
		if used, n := m.Used(); used != 0 || n != 0 {
			t.Errorf("%d bytes of %d streams are still in use", used, n)
		}
	}
}
