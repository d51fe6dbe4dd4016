package outbox

import (
	"container/heap"
	"testing"
	"unsafe"
)

// TestEntrySize limits the memory of a file: a larger entry would be in the next size class, of 112 bytes.
func TestEntrySize(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size > 96 {
		t.Errorf("an entry has %d bytes, want at most 96", size)
	}
}

// TestTimersShrink checks that the timers of a backlog that has settled take no memory.
func TestTimersShrink(t *testing.T) {
	var h timers
	for i := range 100_000 {
		heap.Push(&h, timer{at: instant(i * 7919 % 100_000)})
	}
	for i := range 99_000 {
		if got := heap.Pop(&h).(timer).at; got != instant(i) {
			t.Fatalf("timer %d is at %d", i, got)
		}
	}
	if len(h) != 1000 || cap(h) > 8000 {
		t.Errorf("%d timers take the memory of %d, want 1000 and at most 8000", len(h), cap(h))
	}
}

// TestScanForgets checks that a scan forgets the files that it did not find, and no file that has changed.
func TestScanForgets(t *testing.T) {
	table := newTable(testRules, limits{})
	var do todo
	scan := func(size int64, names ...string) {
		table.begin()
		for _, name := range names {
			table.seen(name, event{kind: glanced, id: identity(size, 900, 1000)}, at(0), &do)
		}
		table.end(true, at(0), &do)
	}
	scan(5, "a", "b", "c")
	scan(6, "b", "c")
	if table.files.get("a") != nil || table.files.get("b") == nil || table.files.get("c") == nil {
		t.Errorf("%d files, want b and c", table.files.n)
	}
}
