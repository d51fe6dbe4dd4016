package netconn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// lender is a body with memory of its own.
type lender struct {
	data  []byte
	lent  bool
	reads int // calls of Read
	err   error
}

func (l *lender) Read(p []byte) (int, error) {
	l.reads++
	if len(l.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.data)
	l.data = l.data[n:]
	return n, nil
}

func (l *lender) Lend(max int) ([]byte, error) {
	if l.lent {
		panic("lent twice")
	}
	if l.err != nil {
		return nil, l.err
	}
	if len(l.data) == 0 {
		return nil, io.EOF
	}
	p := l.data[:min(max, len(l.data))]
	l.data, l.lent = l.data[len(p):], true
	return p, nil
}

func (l *lender) Return() { l.lent = false }

// recorder is a connection that records its writes. It takes limit bytes if limit is not 0.
type recorder struct {
	net.Conn
	writes [][]byte // not copied
	limit  int
	takes  time.Duration
}

var errCut = errors.New("cut")

func (r *recorder) Write(p []byte) (int, error) {
	time.Sleep(r.takes)
	if r.limit > 0 {
		if r.limit -= len(p); r.limit <= 0 {
			return len(p) + r.limit, errCut
		}
	}
	r.writes = append(r.writes, p)
	return len(p), nil
}

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i * 7 >> 3)
	}
	return p
}

// TestMemoryIsNotCopied checks that the memory of a body is what is written, that it is
// returned, and that no more than the limit is sent.
func TestMemoryIsNotCopied(t *testing.T) {
	data := pattern(1 << 20)
	l, r := &lender{data: data}, &recorder{}
	limited := &io.LimitedReader{R: l, N: 1<<20 - 5}
	n, err := New(r).ReadFrom(limited)
	if n != 1<<20-5 || err != nil || limited.N != 0 || l.lent || l.reads != 0 {
		t.Fatalf("ReadFrom = %d, %v, %d left, lent %t, %d reads", n, err, limited.N, l.lent, l.reads)
	}
	at := 0
	for _, w := range r.writes {
		if &w[0] != &data[at] {
			t.Fatalf("the write at %d is a copy", at)
		}
		at += len(w)
	}
	if len(r.writes) != 9 { // 64 and then 128 KiB
		t.Errorf("%d writes", len(r.writes))
	}
}

// TestReadFromEnds checks what ReadFrom returns when the body or the connection ends before
// the limit.
func TestReadFromEnds(t *testing.T) {
	errSource := errors.New("source")
	for _, tt := range []struct {
		name string
		body *lender
		cut  int
		n    int64
		err  error
	}{
		{"a short body", &lender{data: pattern(100)}, 0, 100, nil},
		{"a source that fails", &lender{err: errSource}, 0, 0, errSource},
		{"a connection that is cut in a buffer", &lender{data: pattern(1 << 20)}, 100_000, 100_000, errCut},
		{"a body without memory", &lender{data: pattern(200_000), err: errors.ErrUnsupported}, 0, 200_000, nil},
		{"a body without memory, cut", &lender{data: pattern(200_000), err: errors.ErrUnsupported}, 100_000, 100_000, errCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := New(&recorder{limit: tt.cut}).ReadFrom(&io.LimitedReader{R: tt.body, N: 1 << 20})
			if n != tt.n || !errors.Is(err, tt.err) || tt.body.lent {
				t.Errorf("ReadFrom = %d, %v, want %d, %v; lent %t", n, err, tt.n, tt.err, tt.body.lent)
			}
		})
	}
}

// TestOtherReaders checks that ReadFrom sends what is no body of an upload.
func TestOtherReaders(t *testing.T) {
	for _, body := range []io.Reader{
		io.LimitReader(bytes.NewReader(pattern(100)), 50), bytes.NewReader(pattern(50)),
	} {
		r := &recorder{}
		if n, err := New(r).ReadFrom(body); n != 50 || err != nil || !bytes.Equal(bytes.Join(r.writes, nil), pattern(50)) {
			t.Errorf("ReadFrom(%T) = %d, %v", body, n, err)
		}
	}
}

// TestSteps checks that a slow connection gets less at a time.
func TestSteps(t *testing.T) {
	for took, want := range map[time.Duration]int{0: mostStep, 100 * time.Millisecond: firstStep, time.Second: leastStep} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{takes: took}
			if _, err := New(r).ReadFrom(&io.LimitedReader{R: &lender{data: pattern(2 << 20)}, N: 2 << 20}); err != nil {
				t.Fatal(err)
			}
			if got := len(r.writes[len(r.writes)-2]); got != want {
				t.Errorf("steps of %v end with %d bytes, want %d", took, got, want)
			}
		})
	}
}

// TestSendAllocatesNothing checks that a body costs no memory, and a body without memory of
// its own not more than a few bytes per request.
func TestSendAllocatesNothing(t *testing.T) {
	data := pattern(1 << 20)
	l := &lender{}
	limited := &io.LimitedReader{R: l}
	r := &recorder{writes: make([][]byte, 0, 40)}
	c := New(r)
	for allocs, err := range []error{nil, errors.ErrUnsupported} {
		if n := testing.AllocsPerRun(20, func() {
			r.writes = r.writes[:0]
			l.data, l.err, limited.N = data, err, int64(len(data))
			if n, err := c.ReadFrom(limited); n != int64(len(data)) || err != nil {
				t.Fatal(n, err)
			}
		}); n > float64(allocs) {
			t.Errorf("%v allocations per MiB, if Lend returns %v", n, err)
		}
	}
}
