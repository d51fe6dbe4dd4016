package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"gcsup/chunk"
	"gcsup/internal/lend"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/upload/internal/stream"
)

const (
	q   = chunk.Granularity
	mib = 1 << 20
)

// sizes lists the edge cases around multiples of Granularity.
var sizes = []int64{0, 1, q - 1, q, q + 1, 2 * q}

// content returns n bytes, the same in every run.
func content(n int64) []byte {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1})
	src.Read(b)
	return b
}

// crcOf returns the CRC32C of data, computed by one call of the standard
// library.
func crcOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// bytesOf returns the bytes [from, to) of a part.
func bytesOf(p stream.Part, from, to int64) []byte {
	b, err := io.ReadAll(p.Reader(from, to))
	if err != nil {
		panic(err)
	}
	return b
}

// drain reads all parts and checks the documented results of Next.
func drain(t *testing.T, s *stream.Stream, want []byte, window int64) {
	t.Helper()
	var off int64
	for {
		p, err := s.Next(t.Context())
		if err != nil {
			t.Fatalf("Next at %d = %v, want a part", off, err)
		}
		again, err := s.Next(t.Context())
		if err != nil || again.Range != p.Range {
			t.Fatalf("Next before Release = %v, %v, want %v again", again.Range, err, p.Range)
		}
		if p.From != off {
			t.Fatalf("part %v begins at %d, want %d", p.Range, p.From, off)
		}
		if !p.Last && (p.Len() != window || p.To >= int64(len(want))) {
			t.Fatalf("part %v of %d bytes, want a full window with more to follow", p.Range, len(want))
		}
		if p.Last && (p.To != int64(len(want)) || p.Len() == 0 && len(want) > 0) {
			t.Fatalf("last part %v of %d bytes, want it to end the stream and not to be empty", p.Range, len(want))
		}
		if !bytes.Equal(bytesOf(p, p.From, p.To), want[p.From:p.To]) {
			t.Fatalf("part %v has other bytes", p.Range)
		}
		if w := crcOf(want[:p.To]); p.CRC32C != w {
			t.Fatalf("part %v CRC32C = %08x, want %08x", p.Range, p.CRC32C, w)
		}
		for _, at := range []int64{p.From, p.From + 1, p.From + q - 1, p.From + q, p.From + q + 1, p.To - q, p.To - 1, p.To} {
			if at < p.From || at > p.To {
				continue
			}
			if got, w := p.Checkpoint(at), (chunk.Checkpoint{Offset: at, CRC32C: crcOf(want[:at])}); got != w {
				t.Fatalf("part %v Checkpoint(%d) = %v, want %v", p.Range, at, got, w)
			}
		}
		off = p.To
		s.Release()
		if p.Last {
			break
		}
	}
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Fatalf("Next after the last part = %v, want io.EOF", err)
	}
}

func TestStream(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"plain":   func(r io.Reader) io.Reader { return r },
		"half":    iotest.HalfReader,
		"dataerr": iotest.DataErrReader,
		"both":    func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.HalfReader(r)) },
		"empties": func(r io.Reader) io.Reader { return &emptyReader{r: r} },
	}
	every := testsize.Full(1, 2)
	if testing.Short() {
		every = 5
	}
	for name, wrap := range readers {
		t.Run(name, func(t *testing.T) {
			for _, window := range []int64{q, 2 * q} {
				lengths := append([]int64{}, sizes...)
				for k := int64(1); k <= 4; k++ {
					lengths = append(lengths, k*window-1, k*window, k*window+1)
				}
				for i, n := range lengths {
					if (int64(i)+window/q)%int64(every) != 0 {
						continue
					}
					want := content(n)
					s, err := new(stream.Memory).NewStream(wrap(bytes.NewReader(want)), int(window))
					require.NoError(t, err)
					drain(t, s, want, window)
					s.Close()
				}
			}
		})
	}
}

func TestStreamOneByteAtATime(t *testing.T) {
	for _, n := range []int64{0, 1, q - 1, q, q + 1, 3*q + 1} {
		want := content(n)
		s, err := new(stream.Memory).NewStream(iotest.OneByteReader(bytes.NewReader(want)), q)
		require.NoError(t, err)
		drain(t, s, want, q)
		s.Close()
	}
}

// emptyReader returns 0 bytes and no error on every other Read.
type emptyReader struct {
	r     io.Reader
	empty bool
}

func (e *emptyReader) Read(p []byte) (int, error) {
	if e.empty = !e.empty; e.empty {
		return 0, nil
	}
	return e.r.Read(p)
}

func TestStreamDefaultWindow(t *testing.T) {
	if testing.Short() {
		t.Skip("reads many MiB")
	}
	want := content(16<<20 + 1)
	s, err := new(stream.Memory).NewStream(bytes.NewReader(want), 0)
	require.NoError(t, err)
	defer s.Close()
	drain(t, s, want, 16<<20)
}

func TestStreamWindowRefused(t *testing.T) {
	for _, window := range []int{-q, -1, 1, q - 1, q + 1} {
		if s, err := new(stream.Memory).NewStream(bytes.NewReader(nil), window); err == nil {
			s.Close()
			t.Errorf("NewStream(window %d) = nil error, want a refusal", window)
		}
	}
}

// TestStreamReadError checks that a stream whose reader fails has no last part.
// The parts before the failure have the bytes that were read.
func TestStreamReadError(t *testing.T) {
	cause := errors.New("disk on fire")
	for _, cause := range []error{cause, io.ErrUnexpectedEOF, fmt.Errorf("wrapped: %w", io.EOF)} {
		for _, n := range []int64{0, 1, q - 1, q, q + 1, 2 * q, 2*q + 1} {
			want := content(n)
			s, err := new(stream.Memory).NewStream(io.MultiReader(bytes.NewReader(want), iotest.ErrReader(cause)), q)
			require.NoError(t, err)
			var got int64
			for {
				p, err := s.Next(t.Context())
				if err == nil {
					if p.Last || !bytes.Equal(bytesOf(p, p.From, p.To), want[p.From:p.To]) {
						t.Fatalf("n=%d: part %v, last %v, before the error", n, p.Range, p.Last)
					}
					got = p.To
					s.Release()
					continue
				}
				if !errors.Is(err, chunk.ErrRead) || !errors.Is(err, cause) {
					t.Fatalf("n=%d: Next = %v, want ErrRead and %v", n, err, cause)
				}
				if _, again := s.Next(t.Context()); again != err {
					t.Fatalf("n=%d: Next after the error = %v, want the same error", n, again)
				}
				break
			}
			if w := chunk.LastBoundary(n); got != w {
				t.Errorf("n=%d: %d bytes before the error, want %d", n, got, w)
			}
			s.Close()
		}
	}
}

func TestStreamReaderWithoutProgress(t *testing.T) {
	s, err := new(stream.Memory).NewStream(readerFunc(func([]byte) (int, error) { return 0, nil }), q)
	require.NoError(t, err)
	defer s.Close()
	if _, err := s.Next(t.Context()); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Next = %v, want io.ErrNoProgress", err)
	}
}

func TestStreamReaderImpossibleCount(t *testing.T) {
	for _, n := range []int{-1, 1 << 30} {
		s, err := new(stream.Memory).NewStream(readerFunc(func([]byte) (int, error) { return n, nil }), q)
		require.NoError(t, err)
		if _, err := s.Next(t.Context()); !errors.Is(err, chunk.ErrRead) {
			t.Errorf("count %d: Next = %v, want ErrRead", n, err)
		}
		s.Close()
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestStreamReadsOneWindowAhead checks that the stream reads only the next part
// while one is in flight.
func TestStreamReadsOneWindowAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := content(5 * q)
		src := bytes.NewReader(want)
		s, err := new(stream.Memory).NewStream(src, q)
		require.NoError(t, err)
		defer s.Close()
		for _, read := range []int{0, 2*q + 1, 3*q + 1, 4*q + 1, 5 * q} {
			synctest.Wait()
			if got := len(want) - src.Len(); got != read {
				t.Fatalf("%d bytes read ahead, want %d", got, read)
			}
			s.Release()
			if _, err := s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestStreamNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s, err := new(stream.Memory).NewStream(r, q)
		require.NoError(t, err)
		parts := make(chan stream.Part)
		go func() {
			for {
				p, err := s.Next(t.Context())
				if err != nil {
					close(parts)
					return
				}
				parts <- p
				s.Release()
			}
		}()
		b := content(q + 1)
		w.Write(b[:q])
		synctest.Wait()
		select {
		case p := <-parts:
			t.Fatalf("Next returned part %v before it was known whether more bytes follow", p.Range)
		default:
		}
		w.Write(b[q:])
		if p := <-parts; p.Last || p.Len() != q {
			t.Fatalf("part %v, last %v, want a whole window", p.Range, p.Last)
		}
		w.Close()
		if p := <-parts; !p.Last || p.Len() != 1 {
			t.Fatalf("part %v, last %v, want the last byte", p.Range, p.Last)
		}
		<-parts
		s.Close()
	})
}

func TestStreamNextCanceled(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	s, err := new(stream.Memory).NewStream(r, q)
	require.NoError(t, err)
	defer s.Close()
	cause := errors.New("user pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := s.Next(ctx); !errors.Is(err, cause) {
		t.Errorf("Next = %v, want the cause", err)
	}
	// No byte is lost: the next call continues.
	go func() {
		w.Write([]byte("x"))
		w.Close()
	}()
	if p, err := s.Next(t.Context()); err != nil || !p.Last || p.Len() != 1 {
		t.Errorf("Next = %v, %v, want the last part", p.Range, err)
	}
}

// TestStreamCloseWaitsForTheRead checks that Close wakes Next, and returns
// after a Read under way has returned. Then the caller can use the reader
// again.
func TestStreamCloseWaitsForTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s, err := new(stream.Memory).NewStream(r, q)
		require.NoError(t, err)
		woken, closed := make(chan error, 1), make(chan error, 2)
		go func() {
			_, err := s.Next(t.Context())
			woken <- err
		}()
		synctest.Wait()
		for range 2 {
			go func() { closed <- s.Close() }()
		}
		if err := <-woken; !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Next = %v, want fs.ErrClosed", err)
		}
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("Close returned while Read was under way")
		}
		w.Write([]byte("late"))
		for range 2 {
			if err := <-closed; err != nil {
				t.Errorf("Close = %v", err)
			}
		}
		go w.Write([]byte("next"))
		p := make([]byte, 4)
		if n, err := r.Read(p); err != nil || string(p[:n]) != "next" {
			t.Errorf("Read after Close = %q, %v, want the bytes after the stream's last Read", p[:n], err)
		}
	})
}

// TestStreamCloseInterruptsTheRead checks that Close interrupts a reader that
// supports it. The reader loses no byte and can be read again.
func TestStreamCloseInterruptsTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := net.Pipe()
		defer w.Close()
		s, err := new(stream.Memory).NewStream(r, q)
		require.NoError(t, err)
		go s.Next(t.Context())
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		go w.Write([]byte("next"))
		p := make([]byte, 4)
		if n, err := r.Read(p); err != nil || string(p[:n]) != "next" {
			t.Errorf("Read after Close = %q, %v, want the next bytes", p[:n], err)
		}
	})
}

// TestStreamReadsNothingBeforeNext checks that a stream does not read from its
// reader before the first Next.
func TestStreamReadsNothingBeforeNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := new(stream.Memory).NewStream(readerFunc(func([]byte) (int, error) {
			t.Error("the stream read from its reader")
			return 0, io.EOF
		}), q)
		require.NoError(t, err)
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Next after Close = %v, want fs.ErrClosed", err)
		}
	})
}

func TestStreamCloseKeepsThePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := content(4 * q)
		s, err := new(stream.Memory).NewStream(bytes.NewReader(want), q)
		require.NoError(t, err)
		p, err := s.Next(t.Context())
		require.NoError(t, err)
		s.Close()
		if _, err := s.Next(t.Context()); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Next after Close = %v, want fs.ErrClosed", err)
		}
		if !bytes.Equal(bytesOf(p, 0, q), want[:q]) {
			t.Error("the part changed after Close")
		}
	})
}

// TestStreamMemory checks that a short stream uses little memory, for any
// window.
func TestStreamMemory(t *testing.T) {
	for _, test := range []struct{ size, atMost int64 }{
		{1, q + 64<<10},
		{q + 1, 2*q + 64<<10},
		{16 << 20, 16<<20 + 64<<10},
		{64 << 20, 32<<20 + 64<<10},
	} {
		// The count is of the whole process, in which a goroutine of an earlier
		// test may still end. It can only add to the count, so that the least
		// count is used.
		got := int64(math.MaxInt64)
		for range 5 {
			got = min(got, allocated(func() { passThrough(t, test.size) }))
		}
		if got > test.atMost {
			t.Errorf("a stream of %d bytes allocates %d bytes, want at most %d", test.size, got, test.atMost)
		}
	}
}

// passThrough reads a stream of size bytes to its end, with a window of 16 MiB.
func passThrough(t *testing.T, size int64) {
	s, err := new(stream.Memory).NewStream(io.LimitReader(zeros{}, size), 16<<20)
	require.NoError(t, err)
	defer s.Close()
	for {
		p, err := s.Next(t.Context())
		if err != nil || p.Len() == 0 {
			t.Fatalf("Next = %v, %v", p.Range, err)
		}
		s.Release()
		if p.Last {
			return
		}
	}
}

// allocated returns how many bytes the process allocates while f runs.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestPartLends checks the bytes that the reader of a part lends.
func TestPartLends(t *testing.T) {
	data := content(3*mib + 5)
	s, err := new(stream.Memory).NewStream(bytes.NewReader(data), 4*mib)
	require.NoError(t, err)
	defer s.Release()
	defer s.Close()
	part, err := s.Next(t.Context())
	require.NoError(t, err)
	r := part.Reader(3, part.To).(lend.Reader)
	var got []byte
	for most := 1; ; most = most*7%400_000 + 1 {
		lent, err := r.Lend(most)
		got = append(got, lent...)
		if err == io.EOF {
			break
		}
		if err != nil || len(lent) == 0 || len(lent) > most {
			t.Fatalf("Lend(%d) = %d bytes, %v", most, len(lent), err)
		}
		one := make([]byte, 1)
		if n, err := r.Read(one); n == 1 { // Read and Lend in turn
			got = append(got, one...)
		} else if err != io.EOF {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, data[3:]) {
		t.Errorf("%d bytes, want those of the stream", len(got))
	}
}

func TestPartPanicsOutside(t *testing.T) {
	s, err := new(stream.Memory).NewStream(bytes.NewReader(content(2*q+1)), q)
	require.NoError(t, err)
	defer s.Close()
	if _, err := s.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Release()
	p, err := s.Next(t.Context())
	require.NoError(t, err)
	for name, call := range map[string]func(){
		"Reader before":     func() { p.Reader(q-1, q+1) },
		"Reader after":      func() { p.Reader(q, 2*q+1) },
		"Reader inverted":   func() { p.Reader(q+1, q) },
		"Checkpoint before": func() { p.Checkpoint(q - 1) },
		"Checkpoint after":  func() { p.Checkpoint(2*q + 1) },
	} {
		if !panics(call) {
			t.Errorf("%s: no panic", name)
		}
	}
	if got := bytesOf(p, q, q); len(got) != 0 {
		t.Errorf("Reader(q, q) has %d bytes, want none", len(got))
	}
}

func panics(call func()) (did bool) {
	defer func() { did = recover() != nil }()
	call()
	return
}
