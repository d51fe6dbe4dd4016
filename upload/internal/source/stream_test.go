package source

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/stream"
)

// TestRangesOfRequests checks the bytes of a request from an offset, for a limit. A file and a stream must return at
// least 256 KiB unless it is the last request; a stream sends bytes again for that.
func TestRangesOfRequests(t *testing.T) {
	const size, large = 3*q + 1000, 64 << 20
	data := random(size)
	whole := checksum.Update(0, data)
	for _, tt := range []struct {
		offset, limit int64
		file          chunk.Range
		stream        chunk.Range // its windows have two units
	}{
		{0, large, chunk.Range{From: 0, To: 3 * q}, chunk.Range{From: 0, To: 2 * q}},
		{0, q, chunk.Range{From: 0, To: q}, chunk.Range{From: 0, To: q}},
		{0, 2*q - 1, chunk.Range{From: 0, To: q}, chunk.Range{From: 0, To: q}},
		{1, q, chunk.Range{From: 1, To: 2 * q}, chunk.Range{From: 1, To: 2 * q}},
		{1, 2 * q, chunk.Range{From: 1, To: 2 * q}, chunk.Range{From: 1, To: 2 * q}},
		{q, q, chunk.Range{From: q, To: 2 * q}, chunk.Range{From: q, To: 2 * q}},
		{q + 1, q, chunk.Range{From: q + 1, To: 3 * q}, chunk.Range{From: q, To: 2 * q}},
		{2 * q, q, chunk.Range{From: 2 * q, To: 3 * q}, chunk.Range{From: 2 * q, To: 3 * q}},
		{2*q + 1, q, chunk.Range{From: 2*q + 1, To: size}, chunk.Range{From: 2*q + 1, To: size}},
		{2 * q, large, chunk.Range{From: 2 * q, To: 3 * q}, chunk.Range{From: 2 * q, To: size}},
		{3 * q, q, chunk.Range{From: 3 * q, To: size}, chunk.Range{From: 3 * q, To: size}},
		{size - 1, q, chunk.Range{From: size - 1, To: size}, chunk.Range{From: size - 1, To: size}},
	} {
		stream := streamOf(t, bytes.NewReader(data))
		if tt.offset >= 2*q {
			if _, err := stream.Next(t.Context(), 0, large); err != nil {
				t.Fatal(err)
			}
			stream.Committed(2 * q)
		}
		for _, c := range []content.Source{FromBytes(data, silent), stream} {
			want := tt.file
			if c == content.Source(stream) {
				want = tt.stream
			}
			b, err := c.Next(t.Context(), tt.offset, tt.limit)
			require.NoError(t, err)
			got, err := io.ReadAll(b)
			if last := want.To == size; err != nil || b.Range != want || b.Last != last || last && b.CRC32C != whole || !bytes.Equal(got, data[want.From:want.To]) {
				t.Errorf("%T: from %d, at most %d: %v, last %v, %d bytes, %v, want %v", c, tt.offset, tt.limit, b.Range, b.Last, len(got), err, want)
			}
			if err := b.Finish(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStreamKeepsAWindow checks what a stream knows before and after the bytes of its window are committed.
func TestStreamKeepsAWindow(t *testing.T) {
	data := random(3*q + 1000)
	s := streamOf(t, bytes.NewReader(data))
	head, whole, err := s.Head(t.Context())
	if err != nil || whole || !bytes.Equal(head, data[:content.HeadSize]) {
		t.Errorf("a head of %d bytes, whole %v, %v", len(head), whole, err)
	}
	known := func(total int64, replayable bool, verdicts ...content.Verdict) {
		t.Helper()
		if s.Total() != total || s.Replayable() != replayable || s.Offsets() != nil || s.Changed(t.Context(), 1) != nil {
			t.Errorf("total %d, replayable %v, want %d, %v", s.Total(), s.Replayable(), total, replayable)
		}
		if whole, err := s.Whole(t.Context()); errors.Is(err, session.ErrUnexpectedData) != (total < 0) || total >= 0 && whole != (chunk.Checkpoint{Offset: total, CRC32C: checksum.Update(0, data)}) {
			t.Errorf("whole: %+v, %v", whole, err)
		}
		var got []content.Verdict
		for _, p := range []content.Prefix{prefix(data[:q], ""), prefix(data[:q+1], "crc32c"), prefix(data[:2*q], "crc32c"), prefix(data[:q], "other crc32c"), prefix(data[:q], "md5"), prefix(data[:2*q], "other md5"), prefix(data[:3*q], "crc32c")} {
			v, err := s.Compare(t.Context(), p, true)
			require.NoError(t, err)
			got = append(got, v)
		}
		if !slices.Equal(got, verdicts) {
			t.Errorf("the verdicts are %v, want %v", got, verdicts)
		}
	}
	const u, same, different = content.Unknown, content.Same, content.Different
	known(-1, true, u, u, u, u, u, u, u)
	if _, err := s.Next(t.Context(), 0, 4*q); err != nil {
		t.Fatal(err)
	}
	for _, committed := range []int64{0, q} { // in the window
		s.Committed(committed)
		known(-1, true, u, same, same, different, same, different, u)
	}
	s.Committed(2 * q)
	known(-1, false, u, u, u, u, u, u, u)
	if _, err := s.Next(t.Context(), 2*q, 4*q); err != nil {
		t.Fatal(err)
	}
	known(3*q+1000, false, u, u, same, u, u, u, same) // the MD5 of a prefix needs all its bytes
	s.Committed(3*q + 1000)
	known(3*q+1000, false, u, u, same, u, u, u, same)
	for _, offset := range []int64{0, 2*q - 1, 3*q + 1001} {
		if _, err := s.Next(t.Context(), offset, q); !errors.Is(err, session.ErrProtocol) {
			t.Errorf("bytes from %d, which are no longer kept: %v", offset, err)
		}
	}
}

// TestFirst checks the size of the first window, and the error of a stream that cannot be read.
func TestFirst(t *testing.T) {
	for _, tt := range []struct{ size, want int }{{1000, 1000}, {3 * q, 2 * q}} {
		n, whole, err := streamOf(t, bytes.NewReader(random(tt.size))).First(t.Context())
		if int(n) != tt.want || whole != (tt.size == tt.want) || err != nil {
			t.Errorf("%d bytes: a window of %d, whole %v, %v", tt.size, n, whole, err)
		}
	}
	if _, _, err := streamOf(t, iotest.ErrReader(io.ErrClosedPipe)).First(t.Context()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a stream that cannot be read: %v", err)
	}
}

// TestShortStream checks a stream that ends within its first window, plain and compressed.
func TestShortStream(t *testing.T) {
	data := bytes.Repeat([]byte("text "), 2000)
	for _, zipped := range []bool{false, true} {
		s := streamOf(t, bytes.NewReader(data))
		if zipped {
			s, _ = Compressor{}.NewStream(bytes.NewReader(data), &stream.Memory{}, 2*q)
			defer s.Close()
		}
		head, whole, err := s.Head(t.Context())
		if err != nil || !whole || !bytes.Equal(head, data[:content.HeadSize]) {
			t.Errorf("compressed %v: a head of %d bytes, whole %v, %v", zipped, len(head), whole, err)
		}
		loaded, err := s.Load(t.Context())
		require.NoError(t, err)
		for range 2 {
			got, err := io.ReadAll(loaded.Open())
			if loaded.Size != int64(len(got)) || loaded.CRC32C != checksum.Update(0, got) {
				t.Errorf("compressed %v: %d bytes, %08x", zipped, loaded.Size, loaded.CRC32C)
			}
			if zipped {
				got = unzip(t, got)
			}
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("compressed %v: %d bytes, %v", zipped, len(got), err)
			}
		}
		if zipped {
			if file, committed := s.Offsets().Estimate(loaded.Size, 0); s.Offsets().Size() != 10000 || file != 10000 || committed != 0 {
				t.Errorf("offsets in the stream: %d and %d of %d", file, committed, s.Offsets().Size())
			}
		}
	}
}
