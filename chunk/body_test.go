package chunk_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

const mib = 1 << 20

func TestBody(t *testing.T) {
	data := content(5*mib + 7)
	src := open(t, file(t, data))
	ends := append([]int64{mib - 1, mib, mib + 1, 4 * mib, 5*mib + 7}, sizes...)
	every := testsize.Full(1, 2)
	if testing.Short() {
		every = 5
	}
	for i, from := range ends {
		for j, to := range ends {
			if from > to || (i+j)%every != 0 {
				continue
			}
			sum := chunk.NewPrefixCRC(at(data, from))
			b := src.Body(chunk.Range{From: from, To: to}, sum)
			got, err := io.ReadAll(b)
			if err != nil || !bytes.Equal(got, data[from:to]) {
				t.Errorf("[%d,%d): ReadAll = %d bytes, %v", from, to, len(got), err)
			}
			if b.Sent() != to-from || b.Err() != nil {
				t.Errorf("[%d,%d): Sent, Err = %d, %v", from, to, b.Sent(), b.Err())
			}
			if err := b.Close(); err != nil {
				t.Errorf("[%d,%d): Close = %v", from, to, err)
			}
			if sum.Offset() != to || sum.Sum() != crcOf(data[:to]) {
				t.Errorf("[%d,%d): hashed to %d, %08x, want %08x", from, to, sum.Offset(), sum.Sum(), crcOf(data[:to]))
			}
		}
	}
}

func TestBodyIsAReader(t *testing.T) {
	data := content(mib + 2)
	src := open(t, file(t, data))
	for _, from := range []int64{0, mib - 5, mib + 1, mib + 2} {
		b := src.Body(chunk.Range{From: from, To: min(from+10, mib+2)}, nil)
		if err := iotest.TestReader(b, data[from:min(from+10, mib+2)]); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
		if n, err := b.Read(nil); n != 0 || err != nil {
			t.Errorf("Read(nil) = %d, %v, want 0, nil", n, err)
		}
		b.Close()
	}
}

// TestBodyCatchesUp checks a body that starts between two boundaries. The bytes
// from the stored position to its start are hashed and not sent.
func TestBodyCatchesUp(t *testing.T) {
	data := content(4 * mib)
	src := open(t, file(t, data))
	for _, test := range []struct{ sumAt, from, to int64 }{
		{0, 1, 2},
		{0, q - 1, q},
		{q, 2*q - 1, 4 * mib},
		{0, mib, mib + q},
		{0, 3*mib + 1, 4 * mib},
		{7, 3 * mib, 3 * mib}, // only hashed
		{0, 4 * mib, 4 * mib},
	} {
		sum := chunk.NewPrefixCRC(at(data, test.sumAt))
		b := src.Body(chunk.Range{From: test.from, To: test.to}, sum)
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, data[test.from:test.to]) {
			t.Errorf("%v: ReadAll = %d bytes, %v", test, len(got), err)
		}
		b.Close()
		if b.Sent() != test.to-test.from {
			t.Errorf("%v: Sent = %d", test, b.Sent())
		}
		if sum.Sum() != crcOf(data[:test.to]) {
			t.Errorf("%v: sum %08x, want %08x", test, sum.Sum(), crcOf(data[:test.to]))
		}
	}
}

func TestBodyRangeRefused(t *testing.T) {
	src := chunk.FromReaderAt(bytes.NewReader(content(q)), q)
	for _, test := range []struct {
		span chunk.Range
		sum  *chunk.PrefixCRC
	}{
		{chunk.Range{From: -1, To: 1}, nil},
		{chunk.Range{From: 2, To: 1}, nil},
		{chunk.Range{From: 1, To: 2}, chunk.NewPrefixCRC(chunk.Checkpoint{Offset: 2})},
		{chunk.Range{From: 1, To: 2}, chunk.NewPrefixCRC(chunk.Checkpoint{Offset: -2})},
	} {
		b := src.Body(test.span, test.sum)
		if n, err := b.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("%v: Read = %d, %v, want an error", test.span, n, err)
		}
		b.Close()
	}
}

func TestBodySourceErrors(t *testing.T) {
	data := content(4 * mib)
	cause := errors.New("sector 7")
	for _, test := range []struct {
		name string
		src  io.ReaderAt
		want []error
	}{
		{"short", bytes.NewReader(data[:3*mib+1]), []error{chunk.ErrChanged, io.ErrUnexpectedEOF}},
		{"broken", readerAtFunc(func(p []byte, off int64) (int, error) {
			if off+int64(len(p)) > 3*mib {
				return 1, cause
			}
			return copy(p, data[off:]), nil
		}), []error{chunk.ErrRead, cause}},
	} {
		b := chunk.FromReaderAt(test.src, 4*mib).Body(chunk.Range{To: 4 * mib}, nil)
		got, err := io.ReadAll(b)
		for _, want := range test.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: ReadAll = %v, want %v", test.name, err, want)
			}
		}
		if !bytes.Equal(got, data[:3*mib]) {
			t.Errorf("%s: %d bytes before the error, want %d unchanged bytes", test.name, len(got), 3*mib)
		}
		if b.Err() == nil || b.Sent() != 3*mib {
			t.Errorf("%s: Err, Sent = %v, %d", test.name, b.Err(), b.Sent())
		}
		b.Close()
		if _, again := b.Read(make([]byte, 1)); !errors.Is(again, fs.ErrClosed) {
			t.Errorf("%s: Read after Close = %v, want fs.ErrClosed", test.name, again)
		}
	}
}

// TestBodyNeverSendsChangedBytes checks a source that was edited after the
// first pass. No byte between the two boundaries around the edit is sent, for
// any start of the second pass.
func TestBodyNeverSendsChangedBytes(t *testing.T) {
	data := content(8 * q)
	for _, test := range []struct{ base, from, edit int64 }{
		{0, 0, 0},
		{0, 0, q - 1},
		{0, 1, q - 1},
		{0, 0, q},
		{0, q, q},
		{0, q + 1, 3*q + 5},
		{0, 3 * q, 3*q + 5},
		{0, 3 * q, 8*q - 1},
		{1, 1, 4 * q}, // reads start between two boundaries
		{q - 1, q - 1, 4*q + 5},
		{q + 1, 2 * q, 8*q - 1},
	} {
		edited := bytes.Clone(data)
		sum := chunk.NewPrefixCRC(at(data, test.base))
		src := chunk.FromReaderAt(bytes.NewReader(edited), int64(len(data)))
		first := src.Body(chunk.Range{From: test.base, To: src.Size()}, sum)
		if _, err := io.Copy(io.Discard, first); err != nil {
			t.Fatal(err)
		}
		first.Close()

		edited[test.edit] ^= 0x80
		sum.Rewind(test.from)
		b := src.Body(chunk.Range{From: test.from, To: src.Size()}, sum)
		got, err := io.ReadAll(b)
		b.Close()
		if !errors.Is(err, chunk.ErrChanged) || !errors.Is(b.Err(), chunk.ErrChanged) {
			t.Errorf("%v: ReadAll = %v, want ErrChanged", test, err)
		}
		if end := test.from + int64(len(got)); end > max(test.from, chunk.Floor(test.edit)) {
			t.Errorf("%v: sent up to %d", test, end)
		}
	}
}

// TestBodyCloseEarly checks that Close at any moment leaves no goroutine
// (synctest detects one), and that hashing can resume.
func TestBodyCloseEarly(t *testing.T) {
	if testing.Short() {
		t.Skip("reads many MiB")
	}
	data := content(6 * mib)
	for _, read := range []int64{0, 1, mib, mib + 1, 5 * mib} {
		synctest.Test(t, func(t *testing.T) {
			src := chunk.FromReaderAt(bytes.NewReader(data), int64(len(data)))
			sum := chunk.NewPrefixCRC(chunk.Checkpoint{})
			b := src.Body(chunk.Range{To: src.Size()}, sum)
			if _, err := io.CopyN(io.Discard, b, read); err != nil {
				t.Fatal(err)
			}
			b.Close()
			b.Close()
			if b.Sent() != read || b.Err() != nil {
				t.Errorf("Sent, Err = %d, %v, want %d, nil", b.Sent(), b.Err(), read)
			}
			c := sum.Rewind(read)
			if c != at(data, chunk.Floor(read)) {
				t.Errorf("Rewind(%d) = %v, want %v", read, c, at(data, chunk.Floor(read)))
			}
			rest := src.Body(chunk.Range{From: read, To: src.Size()}, sum)
			got, err := io.ReadAll(rest)
			rest.Close()
			if err != nil || !bytes.Equal(got, data[read:]) || sum.Sum() != crcOf(data) {
				t.Errorf("the rest after %d: %d bytes, %v, sum %08x", read, len(got), err, sum.Sum())
			}
		})
	}
}

// TestBodyCloseWhileReading checks that Close wakes a waiting Read, and waits
// for the read of the source.
func TestBodyCloseWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		src := chunk.FromReaderAt(readerAtFunc(func(p []byte, _ int64) (int, error) {
			<-release
			return len(p), nil
		}), 4*mib)
		b := src.Body(chunk.Range{To: 4 * mib}, nil)
		read, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := b.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		go func() { closed <- b.Close() }()
		if err := <-read; !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Read = %v, want fs.ErrClosed", err)
		}
		synctest.Wait()
		if len(closed) != 0 {
			t.Error("Close returned while the source was being read")
		}
		close(release)
		if err := <-closed; err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

// TestBodyReadsAhead checks that a body reads ahead at most four buffers.
func TestBodyReadsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		src := chunk.FromReaderAt(readerAtFunc(func(p []byte, _ int64) (int, error) {
			asked.Add(int64(len(p)))
			return len(p), nil
		}), 10*mib)
		b := src.Body(chunk.Range{To: 10 * mib}, nil)
		defer b.Close()
		for _, want := range []int64{mib, 2 * mib, 3 * mib} {
			synctest.Wait()
			if got := asked.Load(); got != want {
				t.Errorf("%d bytes read ahead, want %d", got, want)
			}
			if _, err := io.CopyN(io.Discard, b, mib); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestBodyConcurrentClose calls Read and Close in several goroutines, for the
// race detector. All bytes before the end are correct.
func TestBodyConcurrentClose(t *testing.T) {
	data := content(8 * mib)
	src := chunk.FromReaderAt(bytes.NewReader(data), int64(len(data)))
	for round := range 20 {
		b := src.Body(chunk.Range{To: src.Size()}, chunk.NewPrefixCRC(chunk.Checkpoint{}))
		var wg sync.WaitGroup
		reached := make(chan struct{})
		wg.Go(func() {
			got, told := 0, false
			p := make([]byte, 50_000)
			for {
				n, err := b.Read(p)
				if !bytes.Equal(p[:n], data[got:got+n]) {
					t.Errorf("other bytes at %d", got)
				}
				if got += n; got >= round*100_000 && !told {
					close(reached)
					told = true
				}
				if err != nil {
					break
				}
			}
		})
		for range 2 {
			wg.Go(func() {
				<-reached
				b.Close()
			})
		}
		wg.Wait()
	}
}

// TestBodyAllocatesNothing checks that Read and Lend need no memory per buffer.
func TestBodyAllocatesNothing(t *testing.T) {
	src := chunk.FromReaderAt(readerAtFunc(func(p []byte, _ int64) (int, error) { return len(p), nil }), 1<<40)
	for name, sum := range map[string]*chunk.PrefixCRC{"Read": chunk.NewPrefixCRC(chunk.Checkpoint{}), "Lend": nil} {
		b := src.Body(chunk.Range{To: src.Size()}, sum)
		defer b.Close()
		p := make([]byte, 64<<10)
		// AllocsPerRun rounds down, so that a run uses several buffers of the Body.
		// It counts the allocations of the whole process, so that the least count
		// is the best one.
		least := math.Inf(1)
		for range 3 {
			least = min(least, testing.AllocsPerRun(20, func() {
				for range 4 * mib / len(p) {
					var err error
					if name == "Read" {
						_, err = b.Read(p)
					} else {
						_, err = b.Lend(len(p))
					}
					require.NoError(t, err)
				}
			}))
		}
		if least != 0 {
			t.Errorf("%s: %v allocations per 4 MiB, want 0", name, least)
		}
	}
}
