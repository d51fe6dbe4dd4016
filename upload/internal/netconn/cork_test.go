package netconn

import (
	"bytes"
	"errors"
	"testing"

	"gcsup/internal/require"
)

// TestCork checks that only what is written between hold and flush is collected.
func TestCork(t *testing.T) {
	r := &recorder{}
	c := &cork{Conn: r}
	write := func(n int) {
		t.Helper()
		if got, err := c.Write(pattern(n)); got != n || err != nil {
			t.Fatalf("Write = %d, %v", got, err)
		}
	}
	lengths := func() (n []int) {
		for _, w := range r.writes {
			n = append(n, len(w))
		}
		return n
	}
	write(10)
	c.hold()
	write(20)
	write(30)
	if got := len(r.writes); got != 1 {
		t.Errorf("%d writes before the flush, want that before hold", got)
	}
	require.NoError(t, c.flush())
	write(40)
	c.hold()
	if err := c.flush(); err != nil { // nothing to flush
		t.Fatal(err)
	}
	c.hold()
	write(corkSize + 1)
	write(corkSize - 2)
	require.NoError(t, c.flush())
	want := []int{10, 50, 40, corkSize, corkSize - 1}
	if got := lengths(); len(got) != len(want) {
		t.Fatalf("writes of %v bytes, want %v", got, want)
	}
	for i, n := range lengths() {
		if n != want[i] {
			t.Errorf("writes of %v bytes, want %v", lengths(), want)
		}
	}
}

// TestCorkKeepsTheOrder checks the bytes, which the writes of a cork share no memory with.
func TestCorkKeepsTheOrder(t *testing.T) {
	var got bytes.Buffer
	c := &cork{Conn: copying{&recorder{}, &got}}
	all := pattern(3 * corkSize)
	c.hold()
	for at := 0; at < len(all); {
		n := min(16<<10+22, len(all)-at)
		record := bytes.Clone(all[at : at+n])
		if _, err := c.Write(record); err != nil {
			t.Fatal(err)
		}
		clear(record) // crypto/tls uses the memory of a record again
		at += n
	}
	if err := c.flush(); err != nil || !bytes.Equal(got.Bytes(), all) {
		t.Errorf("%d bytes, %v, want %d", got.Len(), err, len(all))
	}
}

type copying struct {
	*recorder
	to *bytes.Buffer
}

func (c copying) Write(p []byte) (int, error) { return c.to.Write(p) }

// TestCorkFails checks that nothing follows bytes that could not be written.
func TestCorkFails(t *testing.T) {
	r := &recorder{limit: 5}
	c := &cork{Conn: r}
	c.hold()
	if n, err := c.Write(pattern(10)); n != 10 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	if err := c.flush(); !errors.Is(err, errCut) {
		t.Errorf("flush = %v, want %v", err, errCut)
	}
	r.limit = 0
	if n, err := c.Write(pattern(10)); n != 0 || !errors.Is(err, errCut) || len(r.writes) != 0 {
		t.Errorf("a Write after the failure = %d, %v, %d writes", n, err, len(r.writes))
	}
	c.hold()
	if err := c.flush(); !errors.Is(err, errCut) {
		t.Errorf("a flush after the failure = %v", err)
	}
}
