package chunk_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/lend"
	"gcsup/internal/require"
)

// lendAll reads r by Lend and Read in turn. It looks at lent bytes as late as it may.
func lendAll(r lend.Reader) (got []byte, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	p := make([]byte, 100_000)
	for {
		if random.IntN(3) == 0 {
			n, err := r.Read(p[:1+random.IntN(len(p)-1)])
			got = append(got, p[:n]...)
			if err != nil {
				return got, err
			}
			continue
		}
		most := 1 + random.IntN(400_000)
		lent, err := r.Lend(most)
		if err != nil {
			return got, err
		}
		if len(lent) == 0 || len(lent) > most {
			return got, errors.New("Lend returned no bytes, or too many")
		}
		got = append(got, lent...)
	}
}

// TestLend checks the bytes of a Body, and their count.
func TestLend(t *testing.T) {
	content := make([]byte, 3*mib+5)
	for i := range content {
		content[i] = byte(i*31 ^ i>>9)
	}
	for range 20 {
		body := chunk.FromReaderAt(bytes.NewReader(content), int64(len(content))).Body(chunk.Range{From: 7, To: int64(len(content))}, nil)
		got, err := lendAll(body)
		if err != io.EOF || !bytes.Equal(got, content[7:]) || body.Sent() != int64(len(content)-7) {
			t.Fatalf("Body: %d bytes, %v, Sent = %d", len(got), err, body.Sent())
		}
		require.NoError(t, body.Finish())
		if _, err := body.Lend(1); !errors.Is(err, fs.ErrClosed) {
			t.Fatalf("Lend after Close: %v", err)
		}
	}
}

// TestLentBytesStay checks that reading ahead does not change bytes that are lent.
func TestLentBytesStay(t *testing.T) {
	const size = 64 * mib
	fill := readerAtFunc(func(p []byte, off int64) (int, error) {
		for i := range p {
			p[i] = byte(off >> 18) // another one for each buffer
		}
		return len(p), nil
	})
	body := chunk.FromReaderAt(fill, size).Body(chunk.Range{To: size}, nil)
	defer body.Close()
	for at := int64(0); at < size; {
		lent, err := body.Lend(100_000)
		require.NoError(t, err)
		for range 10 {
			runtime.Gosched() // the reading goroutine may use a buffer that is free
			if want := byte(at >> 18); bytes.Count(lent, []byte{want}) != len(lent) {
				t.Fatalf("the bytes at %d changed", at)
			}
		}
		at += int64(len(lent))
	}
}
