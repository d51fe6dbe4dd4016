package stream

import (
	"slices"
	"testing"
)

// TestTurns checks the order of streams that need memory beyond their share: one that got it in another way, or does
// not need it any more, does not keep the turn.
func TestTurns(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	m := NewMemory(16 * mib)
	m.streams, m.grown = 3, 1
	streams := []*account{{memory: m}, {memory: m}, {memory: m}}
	sections := make([]*Buffer, len(streams))
	for i, a := range streams {
		sections[i] = &Buffer{memory: m, of: a, size: 2 * mib}
		a.count(2 * mib)
	}
	m.used = m.budget
	grant := func(i int) bool {
		granted, _ := streams[i].grant(sections[i], 2*mib, 8*mib)
		return granted
	}
	if grant(0) || grant(1) || grant(2) || !slices.Equal(m.turns, streams) {
		t.Fatal("a section was granted beyond the budget")
	}
	m.used = 6 * mib
	if !grant(0) || !slices.Equal(m.turns, streams[1:]) {
		t.Error("a stream with a share waits in turn")
	}
	m.used = m.budget
	streams[1].leaveTurns() // it is closed
	if grant(2) {
		t.Error("a section was granted beyond the budget")
	}
	m.grown = 0
	if !grant(2) || len(m.turns) > 0 || m.used != m.budget+6*mib || m.grown != 1 {
		t.Errorf("nobody continues: %d bytes", m.used)
	}
	streams[2].give(sections[2], 8*mib)
	if m.used != m.budget-2*mib || m.grown != 0 {
		t.Errorf("%d bytes after it was sent", m.used)
	}
}
