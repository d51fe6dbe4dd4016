package source

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/stream"
)

const q = chunk.Granularity

var silent Reread = func(int64, int64, int64) {}

// random returns n bytes that cannot be compressed.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// received is what a service has of an object.
type received struct {
	t         *testing.T
	committed []byte
	highWater int64              // the end of what was sent
	known     []chunk.Checkpoint // that the client recorded
	zipped    *Compression       // the same; nil if the content is plain
}

// send makes one request, of which the service commits a part, and reports whether the object is complete. It checks
// the contract of content.Source.
func (r *received) send(c content.Source, limit int64, rng *rand.Rand) (complete bool) {
	r.t.Helper()
	offset := int64(len(r.committed))
	b, err := c.Next(r.t.Context(), offset, limit)
	if err != nil {
		r.t.Fatalf("Next(%d, %d): %v", offset, limit, err)
	}
	if most := limit + offset%q; b.From > offset || b.To < offset || b.Len() > max(most, limit+q) || offset%q == 0 && b.Len() > limit && b.Len() > q {
		r.t.Errorf("Next(%d, %d) has the bytes %v", offset, limit, b.Range)
	}
	if !b.Last && (b.To%q != 0 || b.Len() < q) {
		r.t.Errorf("Next(%d, %d) has the bytes %v, and is not the last one", offset, limit, b.Range)
	}
	if res, ok := c.(Resumable); ok { // as saved.SessionRecord does
		if n := res.Newest(offset, b.To); n.Offset > 0 && (len(r.known) == 0 || n.Offset > r.known[len(r.known)-1].Offset) {
			r.known = append(r.known, n)
		}
		if _, ok := c.(*Gzip); ok && b.To > r.highWater {
			size, file := res.Compression(b.To)
			r.zipped = &Compression{size, file}
		}
	}
	r.highWater = max(r.highWater, b.To)
	data, err := io.ReadAll(b)
	if finished := b.Finish(); err != nil || finished != nil || int64(len(data)) != b.Len() {
		r.t.Fatalf("body %v: %d bytes, %v, %v", b.Range, len(data), err, finished)
	}
	commit := b.To
	switch left := b.To - offset; rng.IntN(4) {
	case 0:
		commit = offset + rng.Int64N(left+1)
	case 1:
		commit = max(chunk.Floor(offset+rng.Int64N(left+1)), offset)
	}
	r.committed = append(r.committed, data[offset-b.From:commit-b.From]...)
	if complete = b.Last && commit == b.To; complete && b.CRC32C != checksum.Update(0, r.committed) {
		r.t.Errorf("the last body has the CRC32C %08x, want %08x", b.CRC32C, checksum.Update(0, r.committed))
	}
	// The service may report a checksum of what it has.
	crc := checksum.Update(0, r.committed)
	other := crc + 1
	reread := rng.IntN(2) == 0
	for sum, wrong := range map[*uint32]content.Verdict{&crc: content.Different, &other: content.Same} {
		if v, err := c.Compare(r.t.Context(), content.Prefix{Offset: commit, CRC32C: sum}, reread); v == wrong || err != nil {
			r.t.Errorf("the CRC32C of the first %d bytes is right: %v; Compare: %v, %v", commit, sum == &crc, v, err)
		}
	}
	c.Committed(commit)
	return complete
}

// TestEverySourceIsSentWhole sends each kind of source to a service that commits any part of a request and loses
// sessions. After some requests the process dies, and another one continues with the file.
func TestEverySourceIsSentWhole(t *testing.T) {
	t.Parallel()
	seed := testsize.Seed(t)
	fast := Compressor{flate.HuffmanOnly} // ten times as fast as the default
	all := random(4*q + 1000)
	for kind, open := range map[string]func(t *testing.T, data []byte) content.Source{
		"file": func(_ *testing.T, data []byte) content.Source {
			return FromReaderAt(bytes.NewReader(data), int64(len(data)), silent)
		},
		"gzip": func(t *testing.T, data []byte) content.Source {
			g := NewGzip(FromReaderAt(bytes.NewReader(data), int64(len(data)), silent), fast, &stream.Memory{}, 2*q)
			t.Cleanup(g.Close)
			return g
		},
		"stream": func(t *testing.T, data []byte) content.Source { return streamOf(t, bytes.NewReader(data)) },
		"gzip stream": func(t *testing.T, data []byte) content.Source {
			s, err := fast.NewStream(bytes.NewReader(data), &stream.Memory{}, 2*q)
			require.NoError(t, err)
			t.Cleanup(s.Close)
			return s
		},
		"file, then stream": func(t *testing.T, data []byte) content.Source {
			n, tail := int64(len(data))*2/3, make(chan []byte, 1)
			rest := io.MultiReader(&tailReader{tail: tail, ctx: t.Context()}, bytes.NewReader(data[n:]))
			return NewFileThenStream(FromReaderAt(bytes.NewReader(data), n, silent), streamOf(t, rest), tail)
		},
	} {
		for run := range testsize.Full(200, 24) {
			rng := rand.New(rand.NewPCG(seed, uint64(run)))
			size := []int{0, 1, q - 1, q, q + 1, 2 * q, 3 * q, 4*q + 1000}[rng.IntN(8)]
			data, limit := all[:size], (1+rng.Int64N(4))*q
			t.Run(fmt.Sprintf("%s/%d", kind, run), func(t *testing.T) {
				c, r := open(t, data), &received{t: t}
				_, resumable := c.(Resumable)
				for !r.send(c, limit, rng) {
					switch n := rng.IntN(8); {
					case n == 0 && c.Replayable(): // the session is lost
						c.Restart()
						*r = received{t: t}
					case n == 1 && resumable: // the process dies
						next, saved := open(t, data).(Resumable), Saved{r.known, r.highWater, r.zipped}
						if rng.IntN(2) == 0 {
							require.NoError(t, next.CompareAll(t.Context(), saved))
						} else if err := next.CompareLast(t.Context(), saved); err != nil {
							t.Fatal(err)
						}
						next.Adopt(saved)
						require.NoError(t, next.Seek(t.Context(), int64(len(r.committed))))
						c = next
					}
				}
				want := chunk.Checkpoint{Offset: int64(len(r.committed)), CRC32C: checksum.Update(0, r.committed)}
				if whole, err := c.Whole(t.Context()); err != nil || whole != want || c.Total() != want.Offset {
					t.Errorf("the whole source is %+v, %v, and it has %d bytes; want %+v", whole, err, c.Total(), want)
				}
				got := r.committed
				if bytes.HasPrefix([]byte(kind), []byte("gzip")) {
					got = unzip(t, got)
				}
				if !bytes.Equal(got, data) {
					t.Errorf("%d bytes were sent, and they are not those of the source of %d bytes", len(got), size)
				}
			})
		}
	}
}

func unzip(t *testing.T, zipped []byte) []byte {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(zipped))
	require.NoError(t, err)
	data, err := io.ReadAll(zr)
	require.NoError(t, err)
	return data
}

// streamOf returns a stream with windows of two units.
func streamOf(t *testing.T, r io.Reader) *Stream {
	t.Helper()
	s, err := NewStream(r, &stream.Memory{}, 2*q)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// tailReader reads the bytes that a FileThenStream sends.
type tailReader struct {
	tail <-chan []byte
	ctx  context.Context
	rest io.Reader
}

func (r *tailReader) Read(p []byte) (int, error) {
	if r.rest == nil {
		select {
		case tail := <-r.tail:
			r.rest = bytes.NewReader(tail)
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
	}
	return r.rest.Read(p)
}
