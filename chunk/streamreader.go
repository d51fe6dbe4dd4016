package chunk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// streamReader is the goroutine of a [Stream]. It reads, hashes and splits the
// stream.
type streamReader struct {
	r      io.Reader
	size   int // of a window
	filled chan<- filled
	free   <-chan window
	head   chan<- []byte // nil once it has the first bytes
	stop   <-chan struct{}

	off   int64   // start of the next part
	crc   uint32  // of the stream up to the byte in held
	held  [1]byte // the byte after a full window, read to know whether the stream continues
	holds bool
	err   error // returned by r with its latest bytes
}

func (f *streamReader) run() {
	for {
		var w window
		select {
		case <-f.stop:
			return
		case w = <-f.free:
		}
		part, err := f.fill(w)
		select {
		case <-f.stop:
			return // the stream is closed, and no caller waits for the part
		default:
		}
		if err != nil {
			err = fmt.Errorf("stream: at byte %d: %w: %w", part.To, ErrRead, err)
		}
		f.filled <- filled{part, err}
		if err != nil || part.Last {
			return
		}
		f.off = part.To
	}
}

// fill reads the next part. If it fails, part.To is the offset of the failure.
func (f *streamReader) fill(w window) (Part, error) {
	begin := f.crc
	w.data, w.marks = w.data[:0], w.marks[:0]
	if f.holds {
		w.data = append(f.room(w.data), f.held[0])
		f.hash(&w, 1)
	}
	var err error
	for err == nil && len(w.data) < f.size {
		w.data = f.room(w.data)
		var n int
		n, err = f.read(w.data[len(w.data):cap(w.data)])
		w.data = w.data[:len(w.data)+n]
		f.hash(&w, n)
		f.showHead(w.data, err)
	}
	if err == nil {
		_, err = f.read(f.held[:])
		f.holds = true
	}
	part := Part{
		Range:  Range{f.off, f.off + int64(len(w.data))},
		CRC32C: f.crc,
		window: w,
		begin:  begin,
	}
	// Only a bare io.EOF is the end of the stream. A wrapped io.EOF is a
	// reader's error for an input that ended too early.
	if err == io.EOF {
		part.Last, err = true, nil
	}
	return part, err
}

// showHead passes the first bytes on, once they are read or the reader has ended.
func (f *streamReader) showHead(data []byte, err error) {
	if f.head == nil || err == nil && len(data) < HeadSize {
		return
	}
	f.head <- append([]byte(nil), data[:min(len(data), HeadSize)]...)
	f.head = nil
}

// room returns data with room for at least one more byte. The first window of a
// stream grows with its content. The second window is allocated at once,
// because growing it would need the memory of a third during the copy.
func (f *streamReader) room(data []byte) []byte {
	if len(data) < cap(data) {
		return data
	}
	size := f.size
	if f.off == 0 {
		size = min(max(2*cap(data), Granularity), f.size)
	}
	return append(make([]byte, 0, size), data...)
}

// hash adds the latest n bytes of w to the checksum.
func (f *streamReader) hash(w *window, n int) {
	for at := len(w.data) - n; at < len(w.data); {
		to := min(len(w.data), at-at%Granularity+Granularity)
		f.crc = Update(f.crc, w.data[at:to])
		if to%Granularity == 0 {
			w.marks = append(w.marks, f.crc)
		}
		at = to
	}
}

// read returns either at least one byte or an error. After Close it returns an
// error without reading.
func (f *streamReader) read(p []byte) (int, error) {
	for range maxEmptyReads {
		select {
		case <-f.stop:
			return 0, fs.ErrClosed
		default:
		}
		if f.err != nil {
			return 0, f.err
		}
		n, err := f.r.Read(p)
		if n < 0 || n > len(p) {
			return 0, errors.New("the reader returned an invalid count")
		}
		f.err = err
		if n > 0 {
			return n, nil
		}
	}
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.ErrNoProgress
}
