package stream

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
)

const (
	// DefaultWindow is the maximum size of a window if the caller gives none.
	DefaultWindow = 16 << 20

	// maxEmptyReads is how often in a row a reader may return 0 bytes and no
	// error, as in package bufio.
	maxEmptyReads = 100
)

// Stream splits a reader that can be read only once into parts. It keeps each
// part in memory until the server has committed it. While one part is in
// flight, a goroutine reads the next one. The first Head or Next starts the
// goroutine.
//
// If memory is scarce and the reader is much faster than the server, longer parts
// gain more time than reading ahead. A part then uses the memory of both windows, and
// the next part is read after its release.
//
// Head, Next and Release must be called from one goroutine. Close may be called
// from any. The zero value is a closed Stream.
type Stream struct {
	streamReader *streamReader
	streamChannels
	memory    *Memory
	done      chan struct{}  // closed when the goroutine ends
	cur       *Part          // returned by Next and not released
	end       error          // returned by Next after the last part
	continued bool           // next is closed
	after     chan *division // gets what follows the first part; nil without Hold
	enough    chan struct{}  // closed with it: the part that is read ahead may end
	ahead     chan filled    // the part that was read ahead, without its memory
	divided   *division      // nil unless the stream is divided

	mu      sync.Mutex
	started bool // the goroutine was started
	closed  bool
}

// streamChannels connect a [Stream] with its goroutine.
type streamChannels struct {
	filled chan filled   // parts in order; the last message is the last part or an error
	free   chan window   // windows to fill
	head   chan head     // the first bytes, once; see Stream.Head
	next   chan struct{} // closed by the first Next: the bytes after the head are wanted
	stop   chan struct{} // closed by Close
}

func newStreamChannels() streamChannels {
	return streamChannels{
		// Each message uses a window, so that sending never blocks.
		filled: make(chan filled, windows),
		free:   newWindows(),
		head:   make(chan head, 1),
		next:   make(chan struct{}),
		stop:   make(chan struct{}),
	}
}

// windows is the number of windows of a stream: one in flight, and one that is
// being filled.
const windows = 2

// window is the memory of a part. Pieces are added while it is filled. All except the
// last one are full.
type window struct {
	pieces []*piece
	marks  []uint32 // CRC32C of the stream at the end of each full piece
	whole  bool     // it replaces both windows
}

// filled is a part, or the error that ended the stream.
type filled struct {
	part Part
	err  error
}

// Part is a piece of a stream. It is valid until [Stream.Release].
type Part struct {
	chunk.Range        // within the stream
	Last        bool   // the part ends the stream, which has Range.To bytes
	CRC32C      uint32 // of the whole stream up to Range.To

	window
	begin uint32 // CRC32C of the stream up to Range.From
}

// Reader returns a reader of the bytes [from, to). from and to are offsets in the
// stream. Reader panics if they are not inside the part.
func (p Part) Reader(from, to int64) io.Reader {
	if from < p.From || to < from || to > p.To {
		panic(fmt.Sprintf("stream: Part.Reader: %v is not inside %v", chunk.Range{From: from, To: to}, p.Range))
	}
	return &partReader{p.pieces, from - p.From, to - p.From}
}

// partReader reads the bytes [at, to) of pieces.
type partReader struct {
	pieces []*piece
	at, to int64
}

func (r *partReader) Read(p []byte) (int, error) {
	lent, err := r.Lend(len(p))
	return copy(p, lent), err
}

// Lend implements [lend.Reader].
func (r *partReader) Lend(max int) ([]byte, error) {
	if r.at == r.to {
		return nil, io.EOF
	}
	rest := r.pieces[r.at/chunk.Granularity][r.at%chunk.Granularity:]
	p := rest[:min(int64(max), int64(len(rest)), r.to-r.at)]
	r.at += int64(len(p))
	return p, nil
}

// Checkpoint returns the CRC32C of the stream up to offset, to compare it with
// the server's. It hashes less than one [chunk.Granularity]. It panics if offset is
// outside the part; the end of the part is allowed.
func (p Part) Checkpoint(offset int64) chunk.Checkpoint {
	if offset < p.From || offset > p.To {
		panic(fmt.Sprintf("stream: Part.Checkpoint: %d is not inside %v", offset, p.Range))
	}
	// A part starts at a boundary, because a window is a multiple of Granularity.
	crc, full := p.begin, (offset-p.From)/chunk.Granularity
	if full > 0 {
		crc = p.marks[full-1]
	}
	if rest := offset % chunk.Granularity; rest > 0 {
		crc = checksum.Update(crc, p.pieces[full][:rest])
	}
	return chunk.Checkpoint{Offset: offset, CRC32C: crc}
}

// NewStream returns a stream that splits r into parts of at most window bytes. window
// must be a multiple of [chunk.Granularity]; 0 means 16 MiB. The stream keeps at most two
// windows in memory. Parts are shorter than a window if the stream's share of the
// memory is. A stream that is shorter than a window uses memory in proportion to its
// length.
//
// The stream does not read from r before the first [Stream.Head] or
// [Stream.Next]. From then until [Stream.Close] has returned, only the stream may
// read from r. The caller must close the stream, and then call [Stream.Release].
func (m *Memory) NewStream(r io.Reader, window int) (*Stream, error) {
	return m.ResumeStream(r, window, chunk.Checkpoint{})
}

// ResumeStream is NewStream for a reader whose first from.Offset bytes were already
// read. The parts and the checksums continue from there. from.Offset must be a
// multiple of [chunk.Granularity].
func (m *Memory) ResumeStream(r io.Reader, window int, from chunk.Checkpoint) (*Stream, error) {
	if from.Offset < 0 || from.Offset%chunk.Granularity != 0 {
		return nil, fmt.Errorf("stream: offset %d is not a multiple of %d (256 KiB)", from.Offset, chunk.Granularity)
	}
	if window == 0 {
		window = DefaultWindow
	}
	if window < 0 || window%chunk.Granularity != 0 {
		return nil, fmt.Errorf("stream: a window of %d bytes is not a positive multiple of %d (256 KiB)", window, chunk.Granularity)
	}
	s := &Stream{streamChannels: newStreamChannels(), memory: m, done: make(chan struct{})}
	s.streamReader = &streamReader{
		streamChannels: s.streamChannels, r: r, memory: m, limit: int64(window), off: from.Offset, crc: from.CRC32C,
	}
	return s, nil
}

// start starts the goroutine, unless it was started or the stream is closed.
func (s *Stream) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.closed {
		return
	}
	s.started = true
	s.memory.join()
	go func() {
		defer close(s.done)
		s.streamReader.run()
	}()
}

func newWindows() chan window {
	free := make(chan window, windows)
	for range windows {
		free <- window{}
	}
	return free
}

// Next waits for the next part and returns it. A part that is not Last is a
// multiple of [chunk.Granularity], and at least one more byte follows it. The Last
// part has at least 1 byte; only an empty stream has an empty Last part. The
// final request of an upload, with the total and the checksum of the object,
// therefore always has the last bytes.
//
// Until Release is called, Next returns the same part again. After the Last
// part is released, Next returns [io.EOF]. If the reader fails, Next returns an
// error that wraps [chunk.ErrRead] and the cause, and so does every later Next. The
// bytes since the previous part are dropped, and no part is marked Last. After
// Close the error wraps [fs.ErrClosed]. If ctx is done, the error wraps the
// cause of ctx.
func (s *Stream) Next(ctx context.Context) (Part, error) {
	if s.streamReader == nil { // the zero Stream
		return Part{}, fmt.Errorf("stream: %w", fs.ErrClosed)
	}
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
	if !s.continued {
		s.continued = true
		close(s.next)
	}
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

// Release releases the part that Next returned, so that its memory can be reused.
// Call it when the server has committed the part, or when the part is no longer
// needed. Release does nothing if there is no part.
func (s *Stream) Release() {
	if s.cur == nil {
		return
	}
	s.memory.put(s.cur.pieces)
	if s.cur.Last {
		s.end = io.EOF
	} else {
		s.free <- s.cur.window
		if s.cur.whole {
			s.free <- window{}
		}
	}
	s.cur = nil
}

// readDeadliner is a reader whose Read can be interrupted, such as a [net.Conn]
// or one end of an [os.Pipe].
type readDeadliner interface{ SetReadDeadline(time.Time) error }

// Close stops the stream. It returns after the last Read of the underlying
// reader has returned, so that the caller can continue to read from it. If the
// reader has a SetReadDeadline method that works, Close interrupts a Read with
// it and then clears the deadline. If not, Close waits until Read returns by
// itself or because the caller closed the reader. The part from Next stays
// readable until it is released. Close always returns nil.
func (s *Stream) Close() error {
	if s.streamReader == nil { // the zero Stream
		return nil
	}
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
		defer s.discard()
	}
	<-s.done
	return nil
}

// discard frees the parts that Next has not returned.
func (s *Stream) discard() {
	<-s.done
	s.memory.leave()
	for {
		select {
		case f := <-s.filled:
			s.memory.put(f.part.pieces)
		default:
			return
		}
	}
}

// interrupt ends a Read that is under way, if the reader supports it. restore
// clears the read deadline.
func (s *Stream) interrupt() (restore func()) {
	select {
	case <-s.done:
		return func() {}
	default:
	}
	// The goroutine starts no Read after stop is closed.
	r, ok := s.streamReader.r.(readDeadliner)
	if !ok || r.SetReadDeadline(time.Unix(1, 0)) != nil {
		return func() {}
	}
	return func() { _ = r.SetReadDeadline(time.Time{}) }
}
