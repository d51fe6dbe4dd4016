package stream

import (
	"gcsup/chunk"
	"sync"
)

// minWindow is the number of bytes that a window can always have, even if the
// budget is spent. A stream therefore never waits for another one, except for a section that must be large.
const minWindow = 1 << 20

// Memory is the memory that streams share, see [Memory.NewStream]. The zero value
// has no limit. A Memory is safe for concurrent use, and must not be copied.
type Memory struct {
	budget int64 // of all windows; 0: no limit

	mu      sync.Mutex
	streams int           // started and not closed
	used    int64         // bytes of all pieces in use
	freed   chan struct{} // closed when there may be more memory; nil unless a divided stream waits for that
	turns   []*account    // divided streams that wait for memory beyond their share, in order
	grown   int           // sections that have such memory
}

// NewMemory returns a budget of bytes for streams. 0 means no limit. The windows get
// seven eighths of it, because connections need memory too. The heap grows to twice
// the memory in use before the garbage collector runs. With 128 MiB, the heap of 50
// streams stays below 256 MiB.
//
// Each stream gets an equal share, which shrinks when another stream starts and grows
// when one is closed. A window ends when it has half of the share, or when the budget
// is spent, but not before it has 1 MiB. A window that replaces both windows of a
// stream, see [Stream], can have twice that. While the number of streams does not
// change, they use at most the budget, or 2 MiB each if that is more.
//
// A stream keeps the bytes that it has read until the server has committed them. If
// it was the only stream, and its server does not answer, it can therefore keep the
// whole budget. Each other stream then uses 2 MiB in addition.
func NewMemory(bytes int64) *Memory {
	bytes = max(bytes, 0)
	return &Memory{budget: bytes - bytes/8}
}

// piece is the unit of memory. A window is a list of pieces, so that it can grow
// without a copy, and any stream can reuse freed pieces.
type piece [chunk.Granularity]byte

// pieces is shared by all streams of a process. The garbage collector frees pieces
// that were not used during two of its cycles, which are at most two minutes apart.
var pieces = sync.Pool{New: func() any { return new(piece) }}

// join and leave count the streams that share the budget.
func (m *Memory) join() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams++
}

func (m *Memory) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams--
	m.wake()
}

// wake wakes the divided streams that wait for memory. The caller holds m.mu.
func (m *Memory) wake() {
	if m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
}

// take returns a piece for a window that has size bytes, or nil if the window must
// end. whole is the field of the window.
func (m *Memory) take(size, limit int64, whole bool) *piece {
	if !m.grant(size, limit, whole) {
		return nil
	}
	return pieces.Get().(*piece)
}

func (m *Memory) grant(size, limit int64, whole bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := size + chunk.Granularity
	if next > limit {
		return false
	}
	least, share := m.share()
	if !whole {
		least, share = least/windows, share/windows
	}
	if m.budget > 0 && next > least && (next > share || m.used+chunk.Granularity > m.budget) {
		return false
	}
	m.used += chunk.Granularity
	return true
}

// share returns the bytes that a stream can always have, and its share of the budget.
// The caller holds m.mu.
func (m *Memory) share() (least, share int64) {
	return windows * minWindow, m.budget / int64(max(m.streams, 1))
}

// scarce reports whether one window of at most limit bytes can use the whole share of
// a stream.
func (m *Memory) scarce(limit int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.budget > 0 && max(m.share()) <= limit
}

// put takes pieces back. The caller must not use them afterwards.
func (m *Memory) put(list []*piece) {
	m.recycle(list)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= int64(len(list)) * chunk.Granularity
	m.wake()
}

// recycle makes pieces available to all streams of the process.
func (*Memory) recycle(list []*piece) {
	for i, b := range list {
		pieces.Put(b)
		list[i] = nil
	}
}

// Share returns the share of each stream in bytes; 0 means no limit.
func (m *Memory) Share() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, share := m.share()
	return share
}

// Budget returns the size of the budget in bytes; 0 means no limit.
func (m *Memory) Budget() int64 { return m.budget }
