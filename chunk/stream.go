package chunk

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

const (
	defaultWindow = 16 << 20
	// maxEmptyReads is how often in a row a reader may give neither bytes nor
	// an error, as in package bufio.
	maxEmptyReads = 100
)

// Stream cuts a reader that cannot be read again into parts, and keeps each in
// memory until the server has committed it. While one part is in flight, the
// next one fills in a goroutine. The first Next starts it, and it ends with the
// stream.
//
// Next and Release are for one goroutine; Close may be called from any.
type Stream struct {
	filler *filler
	filled chan filled   // in order; ends with the last part or an error
	free   chan window   // windows to fill
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when the goroutine has ended
	cur    *Part         // from Next, until Release
	end    error         // what Next returns after the last part

	mu      sync.Mutex
	started bool // the goroutine was
	closed  bool
}

// windows is how many a stream has: one in flight, one that fills.
const windows = 2

// window is the memory of a part. It is allocated as it is filled.
type window struct {
	data  []byte
	marks []uint32 // CRC32C of the stream after each whole quantum of data
}

// filled is a part or the reason why there is none.
type filled struct {
	part Part
	err  error
}

// Part is a piece of a stream. It is valid until [Stream.Release].
type Part struct {
	Range         // within the stream
	Last   bool   // nothing follows: the stream has Range.To bytes in all
	CRC32C uint32 // of the whole stream up to Range.To

	window
	begin uint32 // CRC32C of the stream up to Range.From
}

// Bytes returns the bytes [from, to), offsets in the stream, without copying
// them. It panics if they are not inside the part.
func (p Part) Bytes(from, to int64) []byte {
	if from < p.From || to < from || to > p.To {
		panic(fmt.Sprintf("chunk: Part.Bytes: %v is not inside %v", Range{from, to}, p.Range))
	}
	return p.data[from-p.From : to-p.From : to-p.From]
}

// Checkpoint returns the CRC32C of the stream up to offset, to compare with
// what the server says about the bytes that it holds. It hashes less than one
// [Quantum]. It panics if offset is neither inside the part nor its end.
func (p Part) Checkpoint(offset int64) Checkpoint {
	if offset < p.From || offset > p.To {
		panic(fmt.Sprintf("chunk: Part.Checkpoint: %d is not inside %v", offset, p.Range))
	}
	// A part begins at a boundary, because windows are whole quanta.
	crc, boundary := p.begin, Floor(offset)
	if boundary > p.From {
		crc = p.marks[(boundary-p.From)/Quantum-1]
	}
	return Checkpoint{offset, Update(crc, p.Bytes(boundary, offset))}
}

// NewStream returns a stream that cuts r into parts of window bytes: a multiple
// of [Quantum], or 0 for 16 MiB. It keeps at most two windows in memory; a
// stream shorter than a window takes memory in proportion to its length.
//
// Nothing is read before the first [Stream.Next]. From then until
// [Stream.Close] has returned, only the stream may read from r. The caller must
// close the stream.
func NewStream(r io.Reader, window int) (*Stream, error) {
	if window == 0 {
		window = defaultWindow
	}
	if window < 0 || window%Quantum != 0 {
		return nil, fmt.Errorf("stream: a window of %d bytes is not a positive multiple of %d (256 KiB)", window, Quantum)
	}
	s := &Stream{
		// Each message stands for a window, so sending one never waits.
		filled: make(chan filled, windows),
		free:   newWindows(),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	s.filler = &filler{r: r, size: window, filled: s.filled, free: s.free, stop: s.stop}
	return s, nil
}

// start starts the goroutine, unless that was done or the stream is closed.
func (s *Stream) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.closed {
		return
	}
	s.started = true
	go func() {
		defer close(s.done)
		s.filler.run()
	}()
}

func newWindows() chan window {
	free := make(chan window, windows)
	for range windows {
		free <- window{}
	}
	return free
}

// Next waits until the next part is known in full, and returns it: exactly one
// window, if at least one more byte follows, or else the rest, marked Last. So
// the last part has 1 to window bytes, and only an empty stream has a last part
// of none. There is always something left for the request that carries the
// total and the checksum of the whole.
//
// Until Release, Next returns the same part again. After the last part is
// released it returns [io.EOF]. If the reader fails, Next returns, from there
// on, an error that wraps [ErrRead] and the cause: what was read since the part
// before is not given out, and no part is ever marked Last. After Close the
// error wraps [fs.ErrClosed]; when ctx is done, the cause of ctx.
func (s *Stream) Next(ctx context.Context) (Part, error) {
	select {
	case <-s.stop:
		return Part{}, fmt.Errorf("stream: %w", fs.ErrClosed)
	default:
	}
	if s.cur != nil {
		return *s.cur, nil
	}
	if s.end != nil {
		return Part{}, s.end
	}
	s.start()
	select {
	case <-s.stop:
		return Part{}, fmt.Errorf("stream: %w", fs.ErrClosed)
	case <-ctx.Done():
		return Part{}, fmt.Errorf("stream: %w", context.Cause(ctx))
	case f := <-s.filled:
		if f.err != nil {
			s.end = f.err
			return Part{}, f.err
		}
		s.cur = &f.part
		return f.part, nil
	}
}

// Release says that the part from Next is committed: its bytes are no longer
// needed, and its memory is filled anew. Without a part it does nothing.
func (s *Stream) Release() {
	if s.cur == nil {
		return
	}
	if s.cur.Last {
		s.end = io.EOF
	} else {
		s.free <- s.cur.window
	}
	s.cur = nil
}

// readDeadliner is a reader whose Read can be interrupted: a [net.Conn], or one
// end of an [os.Pipe].
type readDeadliner interface{ SetReadDeadline(time.Time) error }

// Close stops the stream. It returns after the last Read of the underlying
// reader has returned, so that the caller may read on from where that ended. A
// reader with a SetReadDeadline method that works is interrupted through it, and
// its deadline is cleared. Any other reader must return by itself, or must be
// closed to make it. The part from Next remains readable. Close returns nil.
func (s *Stream) Close() error {
	s.mu.Lock()
	first, started := !s.closed, s.started
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.stop)
	}
	if !started {
		return nil
	}
	if first {
		defer s.interrupt()()
	}
	<-s.done
	return nil
}

// interrupt ends the Read under way, if there is one and the reader allows it.
// The function that it returns makes the reader readable again.
func (s *Stream) interrupt() (restore func()) {
	select {
	case <-s.done:
		return func() {}
	default:
	}
	// The goroutine begins no other Read once stop is closed.
	r, ok := s.filler.r.(readDeadliner)
	if !ok || r.SetReadDeadline(time.Unix(1, 0)) != nil {
		return func() {}
	}
	return func() { _ = r.SetReadDeadline(time.Time{}) }
}
