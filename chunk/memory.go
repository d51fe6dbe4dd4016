package chunk

import "sync"

// minWindow is the number of bytes that a window can always have, even if the
// budget is spent. A stream therefore never waits for another one.
const minWindow = 1 << 20

// Memory is the memory that streams share, see [Memory.NewStream]. The zero value
// has no limit. A Memory is safe for concurrent use, and must not be copied.
type Memory struct {
	budget int64 // of all windows; 0: no limit

	mu      sync.Mutex
	streams int   // started and not closed
	used    int64 // bytes of all pieces in use
}

// NewMemory returns a budget of bytes for streams. 0 means no limit. The windows
// get seven eighths of it: connections need memory, too, and the heap grows to
// twice what is in use before the garbage collector runs. With 128 MiB, the heap
// of 50 streams stays below 256 MiB.
//
// Each stream gets an equal share, which shrinks when another stream starts and
// grows when one is closed. A window ends when it has half of the share, or when
// the budget is spent, but not before it has 1 MiB. A window that takes the place of
// both, see [Stream], can have twice that. While the number of streams does not
// change, they use at most the budget, or 2 MiB each if that is more.
//
// A stream keeps what it has read until the server has committed it. A stream that
// was alone, and whose server does not answer, can therefore keep the whole
// budget. Each further stream then uses 2 MiB beyond it.
func NewMemory(bytes int64) *Memory {
	bytes = max(bytes, 0)
	return &Memory{budget: bytes - bytes/8}
}

// piece is the unit of memory. A window is a list of pieces, so that a stream takes
// what it needs without a copy, and any stream can reuse what another one freed.
type piece [Granularity]byte

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
}

// take returns a piece for a window of size bytes, or nil if the window ends. whole
// is that of the window.
func (m *Memory) take(size, limit int64, whole bool) *piece {
	if !m.grant(size, limit, whole) {
		return nil
	}
	return pieces.Get().(*piece)
}

func (m *Memory) grant(size, limit int64, whole bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := size + Granularity
	if next > limit {
		return false
	}
	least, share := m.share()
	if !whole {
		least, share = least/windows, share/windows
	}
	if m.budget > 0 && next > least && (next > share || m.used+Granularity > m.budget) {
		return false
	}
	m.used += Granularity
	return true
}

// share returns the bytes that a stream can always have, and its share of the
// budget. m.mu is held.
func (m *Memory) share() (least, share int64) {
	return windows * minWindow, m.budget / int64(max(m.streams, 1))
}

// scarce reports whether one window of at most limit bytes can have all that the
// windows of a stream can have.
func (m *Memory) scarce(limit int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.budget > 0 && max(m.share()) <= limit
}

// put takes pieces back. The caller must not use them any more.
func (m *Memory) put(list []*piece) {
	for i, b := range list {
		pieces.Put(b)
		list[i] = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= int64(len(list)) * Granularity
}

// Budget returns the bytes of the budget; 0 is no limit.
func (m *Memory) Budget() int64 { return m.budget }
