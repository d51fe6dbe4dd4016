package chunk_test

import (
	"hash/crc32"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"gcsup/chunk"
)

// sink returns a TCP connection over loopback whose other end discards all
// data. Each byte costs a copy in the kernel, as in an upload.
func sink(b *testing.B) io.Writer {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, mib)
		for err == nil {
			_, err = c.Read(buf)
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return onlyWriter{c} // without ReadFrom, as inside net/http
}

type onlyWriter struct{ io.Writer }

// BenchmarkBody sends a file of 256 MiB in the page cache over loopback, as a
// Body with its checksum. In the same round, a plain loop reads, hashes and
// writes it. "x-plain" is the time of the Body divided by the time of the loop;
// below 1 the Body is faster.
func BenchmarkBody(b *testing.B) {
	const size = 256 * mib
	path := b.TempDir() + "/file"
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	piece := content(mib)
	for range size / mib {
		if _, err := f.Write(piece); err != nil {
			b.Fatal(err)
		}
	}
	src := open(b, path)
	conn := sink(b)
	buf := make([]byte, 256<<10)

	plain := func() uint32 {
		crc := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		if _, err := io.CopyBuffer(io.MultiWriter(conn, crc), io.NewSectionReader(onlyReaderAt{f}, 0, size), buf); err != nil {
			b.Fatal(err)
		}
		return crc.Sum32()
	}
	ours := func() uint32 {
		sum := chunk.NewPrefixCRC(chunk.Checkpoint{})
		body := src.Body(chunk.Range{To: size}, sum)
		defer body.Close()
		if _, err := io.CopyBuffer(conn, body, buf); err != nil {
			b.Fatal(err)
		}
		return sum.Sum()
	}
	if plain() != ours() {
		b.Fatal("two checksums for one file")
	}

	var oursTime, plainTime time.Duration
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		ours()
		oursTime += time.Since(start)
		b.StopTimer()
		start = time.Now()
		plain()
		plainTime += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(float64(oursTime)/float64(plainTime), "x-plain")
}

type onlyReaderAt struct{ io.ReaderAt }
