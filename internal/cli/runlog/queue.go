package runlog

import (
	"gcsup/internal/grace"
	"io"
	"sync"
	"time"
)

// queueLimit is the maximum size of the queue in bytes. Writers block while it is
// full.
const queueLimit = 16 << 20

// Queue writes lines in a goroutine, so that a reader that stops reading, such
// as a pager, does not block an upload. Each Write must consist of whole lines.
type Queue struct {
	w io.Writer

	mu      sync.Mutex
	changed *sync.Cond // signals a change of the fields below
	lines   []queuedLine
	size    int // bytes in lines and in the write under way
	writing bool
	closed  bool  // Put does not wait: it drops what does not fit
	expired bool  // Flush does not wait
	err     error // the first error of w
}

type queuedLine struct {
	data []byte
	key  string // a later line with the same key replaces this one; "" for none
}

// NewQueue returns a queue in front of w.
func NewQueue(w io.Writer) *Queue {
	q := &Queue{w: w}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// Write queues a copy of p. It returns the first error of an earlier line.
func (q *Queue) Write(p []byte) (int, error) { return len(p), q.Put("", p) }

// Put queues a copy of p. If the last line in the queue has the same key, p
// replaces it. The key "" replaces nothing.
func (q *Queue) Put(key string, p []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := len(q.lines) - 1; key != "" && last >= 0 && q.lines[last].key == key {
		q.size += len(p) - len(q.lines[last].data)
		q.lines[last].data = append([]byte(nil), p...)
		return q.err
	}
	for q.size > 0 && q.size+len(p) > queueLimit && !q.closed {
		q.changed.Wait()
	}
	if q.closed && q.size+len(p) > queueLimit || q.err != nil {
		return q.err
	}
	q.lines = append(q.lines, queuedLine{append([]byte(nil), p...), key})
	q.size += len(p)
	if !q.writing {
		q.writing = true
		go q.drain()
	}
	return nil
}

// drain writes until the queue is empty.
func (q *Queue) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) > 0 && q.err == nil {
		line := q.lines[0]
		q.lines = q.lines[1:]
		q.mu.Unlock()
		_, err := q.w.Write(line.data)
		q.mu.Lock()
		q.size -= len(line.data)
		q.err = err
		q.changed.Broadcast()
	}
	if q.err != nil {
		q.lines, q.size = nil, 0
	}
	q.writing = false
	q.changed.Broadcast()
}

// Idle reports whether all lines are written.
func (q *Queue) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.writing
}

// Flush waits until everything is written, and returns the first error. After Close
// it waits for grace.Flush only, which is enough for a reader that still reads.
func (q *Queue) Flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.writing && !q.expired {
		if q.closed {
			time.AfterFunc(grace.Flush, q.expire)
		}
		q.changed.Wait()
	}
	return q.err
}

// Close makes later calls of Put return without waiting, and Flush wait for
// grace.Flush only.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

func (q *Queue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expired = true
	q.changed.Broadcast()
}
