package stream

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
)

// streamReader is the goroutine of a [Stream]. It reads, hashes and splits the
// stream.
type streamReader struct {
	streamChannels
	r      io.Reader
	memory *Memory
	limit  int64          // of a window
	after  chan *division // see Stream.Hold
	early  *early         // reads the part after the first one; nil if it is not read ahead

	divided *division // of a stream that is divided before it is read; otherwise nil

	off   int64   // start of the next part
	crc   uint32  // of the stream up to the byte in held
	held  [1]byte // the byte after a full window, which shows that the stream continues
	holds bool
	err   error // returned by r with its latest bytes

	full time.Time     // when the latest window was full
	took time.Duration // to fill it
}

func (f *streamReader) run() {
	if f.divided != nil {
		f.divide(f.divided, filled{})
		return
	}
	f.full = time.Now()
	for {
		w, open := f.window()
		if !open {
			return
		}
		began := time.Now()
		part, err := f.fill(w)
		f.full = time.Now()
		f.took = f.full.Sub(began)
		select {
		case <-f.stop: // the stream is closed
			f.memory.put(part.pieces)
			return
		default:
		}
		if err != nil {
			f.memory.put(part.pieces)
			part.window = window{}
		}
		f.filled <- filled{part, err}
		if err != nil || part.Last {
			return
		}
		f.off = part.To
		if f.after != nil && !f.follow() {
			return
		}
	}
}

// follow waits until it is known what follows the first part, and reads ahead meanwhile. It reports whether another part
// follows. If the stream is divided, follow reads the sections.
func (f *streamReader) follow() bool {
	next, ok := f.readAhead()
	if !ok {
		return false
	}
	select {
	case d := <-f.after:
		f.after = nil
		if d != nil {
			f.divide(d, next)
			return false
		}
		if next.err == nil && next.part.Len() == 0 {
			return true // nothing was read ahead
		}
		f.filled <- next
		f.off = next.part.To
		return next.err == nil && !next.part.Last
	case <-f.stop:
		f.memory.put(next.part.pieces)
		return false
	}
}

// early is how the part after the first one is read, see [Stream.Hold].
type early struct {
	limit, notice int64
	noticed       chan struct{} // closed when the part has notice bytes
	enough        chan struct{} // closed when the part may end
	done          chan filled   // gets the part without its memory
}

// ends reports whether a part of size bytes may end, although there is memory for more. e may be nil.
func (e *early) ends(size int64) bool {
	if e == nil {
		return false
	}
	if size >= e.notice && e.noticed != nil {
		close(e.noticed)
		e.noticed = nil
	}
	select {
	case <-e.enough:
		return size > 0
	default:
		return false
	}
}

// readAhead reads the part after the first one. ok is false if the stream is closed.
func (f *streamReader) readAhead() (next filled, ok bool) {
	e := f.early
	if e == nil {
		return filled{}, true
	}
	w, open := f.await()
	if !open {
		return filled{}, false
	}
	usual := f.limit
	f.limit = e.limit
	next.part, next.err = f.fill(w)
	f.limit, f.early = usual, nil
	f.full = time.Now()
	if next.err != nil {
		f.memory.put(next.part.pieces)
		next.part = Part{}
	}
	e.done <- filled{Part{Last: next.part.Last}, next.err}
	return next, true
}

// fastReader decides whether a stream has one window instead of two. It has one if
// its reader waited for the server more than fastReader times as long as it needed to
// fill a window.
const fastReader = 8

// window waits for a window to fill. open is false if the stream is closed.
func (f *streamReader) window() (w window, open bool) {
	if w, open = f.await(); !open {
		return w, false
	}
	waited := time.Since(f.full)
	w.whole = f.memory.scarce(f.limit) && waited > fastReader*f.took
	if w.whole {
		_, open = f.await()
	}
	return w, open
}

// await waits for one of the windows.
func (f *streamReader) await() (w window, open bool) {
	select {
	case <-f.stop:
		return w, false
	case w = <-f.free:
		return w, true
	}
}

// fill reads the next part.
func (f *streamReader) fill(w window) (Part, error) {
	part := Part{begin: f.crc}
	w.pieces, w.marks = w.pieces[:0], w.marks[:0]
	var size int64
	var err error
	for err == nil && (f.off == 0 || !f.early.ends(size)) {
		b := f.memory.take(size, f.limit, w.whole)
		if b == nil {
			break
		}
		w.pieces = append(w.pieces, b)
		var n int
		n, err = f.fillPiece(b)
		size += int64(n)
		if n == len(b) {
			w.marks = append(w.marks, f.crc)
		}
		if f.off == 0 && len(w.pieces) == 1 {
			err = f.showHead(b[:n], err)
		}
	}
	if err == nil {
		err = f.peek()
	}
	part.Range, part.CRC32C, part.window = chunk.Range{From: f.off, To: f.off + size}, f.crc, w
	// Only a bare io.EOF is the end of the stream. A wrapped io.EOF is a
	// reader's error for an input that ended too early.
	if err == io.EOF {
		part.Last, err = true, nil
	}
	return part, f.wrap(part.To, err)
}

// fillPiece reads and hashes a piece. It returns an error if the piece is not full.
func (f *streamReader) fillPiece(b *piece) (n int, err error) {
	if f.holds {
		n, f.holds = copy(b[:], f.held[:]), false
		f.crc = checksum.Update(f.crc, b[:n])
	}
	for n < len(b) && err == nil {
		var read int
		read, err = f.read(b[n:])
		f.crc = checksum.Update(f.crc, b[n:n+read])
		n += read
	}
	return n, err
}

// peek reads a byte to know whether the stream continues.
func (f *streamReader) peek() error {
	if f.holds {
		return nil
	}
	_, err := f.read(f.held[:])
	f.holds = err == nil
	return err
}

// wrap adds the offset to an error of the reader.
func (f *streamReader) wrap(offset int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream: at byte %d: %w: %w", offset, chunk.ErrRead, err)
}

// showHead sends the first piece to Head. If the stream continues, showHead returns
// when Next is called.
func (f *streamReader) showHead(first []byte, err error) error {
	if err == nil {
		err = f.peek()
	}
	h := head{first: first, whole: err == io.EOF}
	if !h.whole {
		h.err = f.wrap(int64(len(first)), err)
	}
	f.head <- h
	if err == nil {
		select {
		case <-f.next:
		case <-f.stop:
			err = fs.ErrClosed
		}
	}
	return err
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
