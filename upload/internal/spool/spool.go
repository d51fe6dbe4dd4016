package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gcsup/chunk"
	"gcsup/internal/nolink"
	"gcsup/session/state"
)

// MinLimit is the smallest limit of a spool.
const MinLimit = 4 << 20

// maxOpen is how many segments are open for reading, because parts are read at a time.
const maxOpen = 64

// maxSegment bounds the bytes of a segment. It is the unit in which space becomes free.
const maxSegment = 8 << 20

// segmentSize returns the size of the segments of a spool of at most limit bytes.
func segmentSize(limit int64) int64 {
	return max(chunk.Granularity, min(chunk.Floor(limit/8), maxSegment))
}

// Spool holds the bytes of one stream that the service has not committed. [Spool.Fill] adds bytes
// in one goroutine. The other methods are for another one, except where they say more.
type Spool struct {
	disk  disk
	path  string // of the directory
	limit int64  // of the bytes on disk; 0 for a stream that has ended
	piece int64  // the size of a segment
	close func() // releases the lock

	// write is the segment that is being filled; nil if the next byte starts another one. boundary is
	// the last multiple of 256 KiB below read, if it is in the segment. Only the goroutine of Fill uses
	// them.
	write    file
	boundary chunk.Checkpoint

	mu       sync.Mutex
	segments []*segment       // of the bytes that are held, ascending, without gaps
	read     chunk.Checkpoint // the end of the bytes on disk
	more     bool             // the input has bytes after those on disk
	released int64            // the greatest offset of Release
	end      *chunk.Checkpoint
	failed   error  // why the input ended early, or why the spool cannot be read
	waits    string // why the input waits for space; "" if it does not
	full     bool   // because the disk is full
	changed  chan struct{}

	reading sync.RWMutex // held while bytes are read, and exclusively while files are opened and closed
	open    map[*segment]file
}

// segment is a file of bytes.
type segment struct {
	start  chunk.Checkpoint
	name   string
	synced bool
	closed bool // nothing more is written to it
}

func newSpool(d disk, path string, limit int64, release func()) *Spool {
	return &Spool{disk: d, path: path, limit: limit, piece: segmentSize(limit), close: release, changed: make(chan struct{}), open: map[*segment]file{}}
}

// Create makes the spool of a new stream with an ID in dir, which must exist. At most limit bytes are held. The caller
// must call Close.
func Create(ctx context.Context, dir, id string, limit int64) (*Spool, error) {
	locks, release, err := lock(ctx, dir, id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, id)
	err = os.Mkdir(path, 0o700)
	if err == nil {
		err = syncParent(dir)
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(path)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("spool: %w", err)
	}
	sweep(ctx, locks, dir)
	return newSpool(rootDisk{root}, path, limit, release), nil
}

// Open opens the spool of a stream for its upload. If the input did not end, the error
// wraps [ErrNoEnd]. The caller must call Close.
func Open(ctx context.Context, dir, id string) (*Spool, error) {
	_, release, err := lock(ctx, dir, id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, id)
	root, err := os.OpenRoot(path)
	if err != nil {
		release()
		return nil, fmt.Errorf("spool: %w", err)
	}
	s := newSpool(rootDisk{root}, path, 0, release)
	if err := s.recover(); err != nil {
		s.Close()
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return s, nil
}

// lock locks the spool of a stream, with the lock files of package state in dir. It returns the store that has them. It
// does not create dir, which may be on a file system that is not mounted.
func lock(ctx context.Context, dir, id string) (locks *state.Dir, release func(), err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, nil, fmt.Errorf("spool: %w", err)
	}
	locks, err = state.OpenDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("spool: %w", err)
	}
	unlock, err := locks.Lock(ctx, id)
	if err != nil {
		_ = locks.Close()
		return nil, nil, fmt.Errorf("spool %s: %w", filepath.Join(dir, id), err)
	}
	return locks, func() {
		unlock()
		_ = locks.Close()
	}, nil
}

func syncParent(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return nolink.SyncDir(root)
}

// recover finds the bytes of a stream that has ended: all those that another process kept, up to
// the end. Segments before a gap were removed, and a power loss has restored them.
func (s *Spool) recover() error {
	end, err := readEnd(s.disk)
	if err != nil {
		return err
	}
	if end == nil {
		return ErrNoEnd
	}
	names, err := s.disk.Names()
	if err != nil {
		return err
	}
	var all []*segment
	for _, name := range names {
		if start, ok := parseSegment(name); ok && start.Offset < max(end.Offset, 1) {
			all = append(all, &segment{start: start, name: name})
		}
	}
	slices.SortFunc(all, func(a, b *segment) int { return int(min(1, max(-1, a.start.Offset-b.start.Offset))) })
	held, to := len(all), end.Offset
	for held > 0 {
		size, err := s.size(all[held-1])
		if err != nil {
			return err
		}
		if all[held-1].start.Offset+size < to {
			break
		}
		held--
		to = all[held].start.Offset
	}
	s.segments, s.read, s.end = all[held:], *end, end
	return nil
}

func (s *Spool) size(g *segment) (int64, error) {
	f, err := s.disk.Open(g.name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Size()
}

// Close closes the files and releases the lock. Fill must have returned.
func (s *Spool) Close() {
	if s.write != nil {
		_ = s.write.Close()
		s.write = nil
	}
	s.reading.Lock()
	s.closeSegments(nil)
	s.reading.Unlock()
	_ = s.disk.Close()
	s.close()
}

// Limit returns the greatest number of bytes on disk; 0 for a stream that has ended.
func (s *Spool) Limit() int64 { return s.limit }

// Path returns the directory of the spool.
func (s *Spool) Path() string { return s.path }

// Status describes how far a spool is filled.
type Status struct {
	From, Read int64             // the bytes on disk. Read decreases if the disk is full
	Sendable   int64             // the end of those that can be sent before the end is known
	End        *chunk.Checkpoint // size and CRC32C of the stream; nil while the end is not recorded
	Waits      string            // why the input waits for space; "" if it does not
	Full       bool              // it waits because the disk is full, and not because of the limit
}

// status returns the Status. The caller holds s.mu.
func (s *Spool) status() Status {
	from := s.read.Offset
	if len(s.segments) > 0 {
		from = s.segments[0].start.Offset
	}
	sendable := chunk.LastBoundary(s.read.Offset)
	if s.more {
		sendable = chunk.Floor(s.read.Offset)
	}
	return Status{From: from, Read: s.read.Offset, Sendable: sendable, End: s.end, Waits: s.waits, Full: s.full}
}

// Status returns the Status. It may be called from any goroutine.
func (s *Spool) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status()
}

// Await waits until enough returns true. If the input has failed, it returns that error. It may be
// called from any goroutine.
func (s *Spool) Await(ctx context.Context, enough func(Status) bool) (Status, error) {
	for {
		s.mu.Lock()
		now, err, changed := s.status(), s.failed, s.changed
		s.mu.Unlock()
		if err != nil || enough(now) {
			return now, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, fmt.Errorf("spool: %w", context.Cause(ctx))
		}
	}
}

// change changes the state that Await sees.
func (s *Spool) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// ReadAt implements [io.ReaderAt] for the bytes that are held. It may be called from any goroutine.
func (s *Spool) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		g, to := s.find(at)
		if g == nil {
			return n, fmt.Errorf("%w: byte %d is not in %s", ErrDamaged, at, s.path)
		}
		m, err := s.readSegment(g, p[n:min(int64(len(p)), int64(n)+to-at)], at-g.start.Offset)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// find returns the segment with the byte at an offset, and the end of its bytes. It returns nil if
// the byte is not held.
func (s *Spool) find(at int64) (*segment, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.read.Offset
	for _, g := range slices.Backward(s.segments) {
		if g.start.Offset <= at {
			if at >= to {
				return nil, 0
			}
			return g, to
		}
		to = g.start.Offset
	}
	return nil, 0
}

func (s *Spool) readSegment(g *segment, p []byte, off int64) (int, error) {
	s.reading.RLock()
	f := s.open[g]
	if f == nil {
		s.reading.RUnlock()
		if err := s.openSegment(g); err != nil {
			return 0, err
		}
		return s.readSegment(g, p, off)
	}
	defer s.reading.RUnlock()
	n, err := f.ReadAt(p, off)
	switch {
	case n == len(p):
		return n, nil
	case err == nil || errors.Is(err, io.EOF):
		return n, fmt.Errorf("%w: %s ends at byte %d", ErrDamaged, filepath.Join(s.path, g.name), off+int64(n))
	}
	return n, err
}

// openSegment opens a segment for reading.
func (s *Spool) openSegment(g *segment) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.open[g] != nil {
		return nil
	}
	if len(s.open) == maxOpen {
		s.closeSegments(nil)
	}
	f, err := s.disk.Open(g.name)
	if err == nil {
		s.open[g] = f
	}
	return err
}

// closeSegments closes segments that are open for reading, or all. The caller holds s.reading.
func (s *Spool) closeSegments(list []*segment) {
	for g, f := range s.open {
		if list == nil || slices.Contains(list, g) {
			_ = f.Close()
			delete(s.open, g)
		}
	}
}

// base returns the last known checkpoint at or before an offset. ok is false if the bytes before the
// offset are not held.
func (s *Spool) base(offset int64) (c chunk.Checkpoint, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.segments {
		if g.start.Offset <= offset {
			c, ok = g.start, true
		}
	}
	if len(s.segments) == 0 && s.read.Offset == offset {
		return s.read, true
	}
	return c, ok
}

// Release removes the segments whose bytes before an offset, or before that of an earlier call, are all committed. It
// may be called from any goroutine.
func (s *Spool) Release(offset int64) {
	var gone []*segment
	s.mu.Lock()
	s.released = max(s.released, chunk.Floor(offset)) // a request may begin there again
	for len(s.segments) > 0 && s.firstEnd() <= s.released {
		gone, s.segments = append(gone, s.segments[0]), s.segments[1:]
	}
	if len(gone) > 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	s.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	s.reading.Lock()
	s.closeSegments(gone)
	s.reading.Unlock()
	for _, g := range gone {
		_ = s.disk.Remove(g.name) // Remove of the whole spool tries again
	}
	s.change(func() {})
}

// firstEnd returns the offset at which the first segment can be removed. The last segment is removed only if the disk was
// full: after the end of the stream no space is needed, and another session may send it again. The caller holds s.mu.
func (s *Spool) firstEnd() int64 {
	switch {
	case len(s.segments) > 1:
		return s.segments[1].start.Offset
	case s.segments[0].closed && s.end == nil:
		return s.read.Offset
	}
	return math.MaxInt64
}

// Discard removes all files. Fill must have returned. Close must still be called.
func (s *Spool) Discard() error {
	if s.write != nil {
		_ = s.write.Close()
		s.write = nil
	}
	s.reading.Lock()
	s.closeSegments(nil)
	s.reading.Unlock()
	return removeFiles(s.disk, s.path)
}

// removeFiles removes the files of a stream, and its directory. The end is removed first, durably: what a
// crash leaves is then a stream without an end. The caller may delete the saved upload after that.
func removeFiles(d disk, path string) error {
	err := d.Remove(endName)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // an earlier call may have removed it, and then failed
		err = d.Sync()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spool: %w", err)
	}
	names, err := d.Names()
	if errors.Is(err, fs.ErrNotExist) { // the directory was removed
		return nil
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	for _, name := range names {
		if _, ours := parseSegment(name); !ours && name != endTemp {
			continue
		}
		if rerr := d.Remove(name); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = fmt.Errorf("spool: %w", rerr)
		}
	}
	if err == nil {
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = fmt.Errorf("spool: %w", rerr)
		}
	}
	return err
}
