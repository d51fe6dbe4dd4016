package runlog

import (
	"errors"
	"fmt"
	"gcsup/internal/grace"
	"gcsup/internal/require"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a writer that blocks until it is opened.
type gate struct {
	opened chan struct{}
	mu     sync.Mutex
	text   strings.Builder
	err    error
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.opened
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return 0, g.err
	}
	return g.text.Write(p)
}

// TestQueueKeepsOrderAndMergesProgress checks that a reader that pauses gets
// every line once, in order, but only the newest progress.
func TestQueueKeepsOrderAndMergesProgress(t *testing.T) {
	g := &gate{opened: make(chan struct{})}
	q := NewQueue(g)
	var want strings.Builder
	fmt.Fprintln(q, "first") // the one that blocks
	for i := range 100 {
		for j := range 1000 {
			require.NoError(t, q.Put("progress", fmt.Appendf(nil, "progress %d\n", j)))
		}
		fmt.Fprintf(q, "line %d\n", i)
		fmt.Fprintf(&want, "progress 999\nline %d\n", i)
	}
	close(g.opened)
	require.NoError(t, q.Flush())
	if got := g.text.String(); got != "first\n"+want.String() {
		t.Errorf("%d bytes were written, want %d", len(got), want.Len()+6)
	}
	if !q.Idle() {
		t.Error("the queue is not idle after flush")
	}
}

// TestQueueIsBounded checks that a writer blocks when 16 MiB are queued, and
// that close unblocks it.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{opened: make(chan struct{})}
		q := NewQueue(g)
		line := make([]byte, 1<<20)
		for range queueLimit >> 20 {
			q.Write(line)
		}
		var written, flushed atomic.Bool
		go func() {
			q.Write(line)
			written.Store(true)
			_ = q.Flush()
			flushed.Store(true)
		}()
		synctest.Wait()
		if written.Load() {
			t.Error("17 MiB were queued")
		}
		q.Close()
		synctest.Wait()
		if !written.Load() || flushed.Load() {
			t.Errorf("after close: written %v, flushed %v, want true and false", written.Load(), flushed.Load())
		}
		time.Sleep(grace.Flush)
		synctest.Wait()
		if !flushed.Load() || q.size > queueLimit {
			t.Errorf("flush returned %v, %d bytes are queued", flushed.Load(), q.size)
		}
		close(g.opened)
	})
}

// TestQueueReportsErrors checks that the error of a closed reader is not lost.
func TestQueueReportsErrors(t *testing.T) {
	g := &gate{opened: make(chan struct{}), err: errors.New("broken pipe")}
	close(g.opened)
	q := NewQueue(g)
	fmt.Fprintln(q, "line")
	if err := q.Flush(); err != g.err {
		t.Errorf("flush: %v, want %v", err, g.err)
	}
	if _, err := fmt.Fprintln(q, "another"); err != g.err {
		t.Errorf("Write after it: %v", err)
	}
}

// TestQueueAfterHurry checks that the last lines are written even if an interruption
// takes longer than a second. An earlier version lost them.
func TestQueueAfterHurry(t *testing.T) {
	lost := 0
	for range 100 {
		g := &gate{opened: make(chan struct{})}
		close(g.opened)
		q := NewQueue(g)
		q.Close() // a second after the interruption
		fmt.Fprintln(q, "to resume: gcsup resume ID")
		_ = q.Flush()
		g.mu.Lock()
		if g.text.Len() == 0 {
			lost++
		}
		g.mu.Unlock()
	}
	if lost > 0 {
		t.Errorf("%d of 100 last lines were not written when Flush returned, and the process exits", lost)
	}
}
