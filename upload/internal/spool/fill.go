package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
)

// Input is what [Spool.Fill] reads.
type Input struct {
	Reader io.Reader
	Stop   <-chan struct{} // closed when nothing more must be read

	// Ended is called at the end of the input, before the end is recorded. Its error fails the
	// input.
	Ended func(whole chunk.Checkpoint) error

	// Waits is called when the input begins to wait for space, with the reason, and Continues when
	// there is space again.
	Waits     func(why string, err error)
	Continues func()
}

const (
	fillBuffer = 256 << 10
	fullPoll   = time.Second // how often a disk without space is tried again

	// maxEmptyReads is how often in a row a reader may return 0 bytes and no error.
	maxEmptyReads = 100
)

var errStopped = fmt.Errorf("spool: %w", fs.ErrClosed)

// Fill reads the input to its end, and records the end. It must be called once, for a spool of
// Create. Other goroutines see the result by Await.
func (s *Spool) Fill(in Input) {
	err := (&filler{s, in}).fill()
	if s.write != nil {
		_ = s.write.Close()
		s.write = nil
	}
	if err != nil {
		s.change(func() { s.failed, s.waits = err, "" })
	}
}

// filler writes an input to a spool.
type filler struct {
	*Spool
	in Input
}

func (f *filler) fill() error {
	buf, empty := make([]byte, fillBuffer), 0
	for {
		room, err := f.room()
		if err != nil {
			return err
		}
		n, rerr := f.in.Reader.Read(buf[:min(room, fillBuffer)])
		if n < 0 || n > fillBuffer {
			return fmt.Errorf("stream: at byte %d: %w: the reader returned an invalid count", f.read.Offset, chunk.ErrRead)
		}
		if err := f.keep(buf[:n]); err != nil {
			return err
		}
		if empty++; n > 0 {
			empty = 0
		}
		switch {
		case rerr == io.EOF: // only a bare io.EOF is the end, as in stream.Stream
			return f.finish()
		case rerr == nil && empty >= maxEmptyReads:
			rerr = io.ErrNoProgress
		}
		if rerr != nil {
			return fmt.Errorf("stream: at byte %d: %w: %w", f.read.Offset, chunk.ErrRead, rerr)
		}
	}
}

// stopped returns an error if nothing more must be read.
func (in *Input) stopped() error {
	select {
	case <-in.Stop:
		return errStopped
	default:
		return nil
	}
}

// room waits until the spool is below its limit, and returns how many bytes are free.
func (f *filler) room() (int64, error) {
	waiting := false
	for {
		f.mu.Lock()
		now, changed := f.status(), f.changed
		f.mu.Unlock()
		room := f.limit - (now.Read - now.From)
		if err := f.in.stopped(); err != nil {
			return 0, err
		}
		if room > 0 {
			if waiting {
				f.continues()
			}
			return room, nil
		}
		if !waiting {
			waiting = true
			f.wait(fmt.Sprintf("the spool has reached its limit of %d MiB", f.limit>>20), nil)
			continue
		}
		select {
		case <-changed:
		case <-f.in.Stop:
		}
	}
}

func (f *filler) wait(why string, err error) {
	f.change(func() { f.waits, f.full = why, err != nil })
	f.in.Waits(why, err)
}

func (f *filler) continues() {
	f.change(func() { f.waits, f.full = "", false })
	f.in.Continues()
}

// patiently calls write until it succeeds. While the disk is full, it waits. rest are the bytes of the input
// that are not on the disk, which write keeps.
func (f *filler) patiently(rest *[]byte, write func() error) error {
	waiting := false
	for {
		err := write()
		if _, lost := errors.AsType[lostError](err); err == nil || lost || !full(err) {
			if waiting {
				f.continues()
			}
			return err
		}
		if err := f.cut(rest); err != nil {
			return err
		}
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if !waiting {
			waiting = true
			f.wait("the disk of the spool is full", err)
			continue // what was released meanwhile may suffice
		}
		poll := time.NewTimer(fullPoll)
		select {
		case <-changed:
		case <-poll.C:
		case <-f.in.Stop:
		}
		poll.Stop()
		if err := f.in.stopped(); err != nil {
			return err
		}
	}
}

// lostError is an error after which bytes that were written may be lost. It is not waited for, even if the disk is
// full: a file server reports a failed write when the file is closed or synced.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// keep writes bytes of the input to the disk.
func (f *filler) keep(p []byte) error {
	err := f.patiently(&p, func() error { return f.appendAll(&p) })
	if err != nil {
		return f.broken(err)
	}
	return nil
}

// appendAll writes the bytes rest, and leaves those for which there is no space.
func (s *Spool) appendAll(rest *[]byte) error {
	for len(*rest) > 0 {
		n, err := s.append(*rest)
		if err == nil {
			err = s.endSegment()
		}
		*rest = (*rest)[n:]
		if err != nil {
			return err
		}
	}
	return nil
}

// endSegment closes the segment that is being filled, if it is complete.
func (s *Spool) endSegment() error {
	if s.read.Offset-s.current().start.Offset < s.piece {
		return nil
	}
	return s.closeSegment()
}

// current returns the last segment.
func (s *Spool) current() *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.segments[len(s.segments)-1]
}

// closeSegment ends the segment that is being filled.
func (s *Spool) closeSegment() error {
	err := s.write.Close()
	s.write = nil
	if err != nil {
		return lostError{err}
	}
	g := s.current()
	s.mu.Lock()
	g.closed = true
	s.mu.Unlock()
	return nil
}

// cut makes it possible that all bytes on the disk are committed, and become space: it ends the last segment at a
// multiple of 256 KiB. The bytes after that are added to the beginning of rest.
func (s *Spool) cut(rest *[]byte) error {
	if s.read.Offset > 0 && (s.write != nil || len(*rest) == 0) {
		if err := s.cutSegment(rest); err != nil {
			return err
		}
	}
	s.change(func() { s.more = len(*rest) > 0 })
	s.Release(0) // the service may have committed all of the segment
	return nil
}

func (s *Spool) cutSegment(rest *[]byte) error {
	at := s.boundary
	if len(*rest) > 0 && chunk.Floor(s.read.Offset) == s.read.Offset {
		at = s.read
	}
	if at.Offset <= s.current().start.Offset {
		return nil
	}
	tail := make([]byte, s.read.Offset-at.Offset)
	if _, err := s.ReadAt(tail, at.Offset); err != nil {
		return lostError{err}
	}
	*rest = append(tail, *rest...)
	s.change(func() { s.read, s.more = at, true })
	if s.write == nil {
		return nil
	}
	return s.closeSegment()
}

// broken returns the error of an input whose bytes cannot be kept.
func (s *Spool) broken(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return err
	}
	return fmt.Errorf("spool: at byte %d: %w", s.read.Offset, err)
}

// append writes the first of the bytes p, and returns their number, which is at least 1 if err is nil.
func (s *Spool) append(p []byte) (int, error) {
	if s.write == nil {
		g := &segment{start: s.read, name: segmentName(s.read)}
		f, err := s.disk.Create(g.name)
		if err != nil {
			return 0, err
		}
		s.write = f
		s.mu.Lock()
		s.segments = append(s.segments, g)
		s.mu.Unlock()
	}
	// Of a write that fails, an os.File does not count the bytes that were written. One that ends at the next
	// multiple of 256 KiB may succeed, so that they can be sent.
	at := s.read.Offset
	n, err := s.write.WriteAt(p[:min(int64(len(p)), chunk.Floor(at)+chunk.Granularity-at)], at-s.current().start.Offset)
	if n == 0 && err == nil {
		err = io.ErrShortWrite
	}
	if n == 0 {
		return 0, err
	}
	// The bytes are kept, even if there is no space for those after them.
	s.advance(p[:n], n < len(p))
	if err != nil && !full(err) {
		return n, err
	}
	return n, nil
}

// advance adds bytes that were written to those on disk. more reports whether the input has bytes after them.
func (s *Spool) advance(p []byte, more bool) {
	if chunk.Floor(s.read.Offset) == s.read.Offset {
		s.boundary = s.read
	}
	read := chunk.Checkpoint{Offset: s.read.Offset + int64(len(p)), CRC32C: checksum.Update(s.read.CRC32C, p)}
	s.change(func() { s.read, s.more = read, more })
}

// finish records the end of the input.
func (f *filler) finish() error {
	if err := f.in.stopped(); err != nil {
		return err
	}
	whole := f.read
	if err := f.in.Ended(whole); err != nil {
		return err
	}
	var rest []byte // if the last bytes left their place to the end
	err := f.patiently(&rest, func() error {
		if err := f.appendAll(&rest); err != nil {
			return err
		}
		if err := f.syncSegments(); err != nil {
			return lostError{err}
		}
		return writeEnd(f.disk, whole)
	})
	if err != nil {
		return f.broken(err)
	}
	f.change(func() { f.end = &whole })
	return nil
}

// syncSegments writes the segments and their names to the disk. Segments that are released
// meanwhile need not be there.
func (s *Spool) syncSegments() error {
	for {
		g := s.unsynced()
		if g == nil {
			return s.disk.Sync()
		}
		err := s.sync(g)
		if err != nil && s.holds(g) {
			return err
		}
	}
}

// unsynced returns a segment that was not synced, and marks it. It returns nil if there is none.
func (s *Spool) unsynced() *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.segments {
		if !g.synced {
			g.synced = true
			return g
		}
	}
	return nil
}

func (s *Spool) sync(g *segment) error {
	f, err := s.disk.Open(g.name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (s *Spool) holds(g *segment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.segments {
		if h == g {
			return true
		}
	}
	return false
}
