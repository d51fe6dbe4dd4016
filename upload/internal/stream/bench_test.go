package stream_test

import (
	"hash/crc32"
	"io"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/upload/internal/stream"
)

// BenchmarkStream reads 256 MiB through a Stream. For comparison, it reads and
// hashes the same in one goroutine. "x-plain" is the ratio of the times.
func BenchmarkStream(b *testing.B) {
	const size = 256 << 20
	var streamTime, plainTime time.Duration
	b.SetBytes(size)
	b.ReportAllocs()
	buf := make([]byte, 1<<20)
	for b.Loop() {
		start := time.Now()
		s, err := new(stream.Memory).NewStream(io.LimitReader(zeros{}, size), 0)
		require.NoError(b, err)
		for last := false; !last; {
			p, err := s.Next(b.Context())
			require.NoError(b, err)
			last = p.Last
			s.Release()
		}
		s.Close()
		streamTime += time.Since(start)

		b.StopTimer()
		start = time.Now()
		crc := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		if _, err := io.CopyBuffer(crc, io.LimitReader(zeros{}, size), buf); err != nil {
			b.Fatal(err)
		}
		plainTime += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(float64(streamTime)/float64(plainTime), "x-plain")
}
