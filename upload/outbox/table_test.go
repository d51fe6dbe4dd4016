package outbox

import (
	"container/heap"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"gcsup/internal/sourcefile"
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

// TestClockJumps checks that a file does not seem to be older than it is because the clock has jumped.
func TestClockJumps(t *testing.T) {
	opened := time.Unix(1000, 0)
	table := newTable(testRules, limits{})
	for _, tt := range []struct {
		name    string
		jump    time.Duration
		changed int64 // by the clock of the file system
		first   int64 // when it was first seen, in seconds since the outbox was opened
		want    time.Duration
	}{
		{"no jump", 0, 1098, 98, 8 * time.Second},
		{"no jump, seen late", 0, 1092, 99, 2 * time.Second},
		{"forward, changed before", time.Hour, 1098, 98, 8 * time.Second},
		{"forward, changed after", time.Hour, 1098 + 3600, 98, 8 * time.Second},
		{"backward, changed before", -time.Hour, 1098, 98, 8 * time.Second},
		{"backward, changed after", -time.Hour, 1098 - 3600, 98, 8 * time.Second},
	} {
		now := 100 * time.Second // since the outbox was opened
		m := table.moment(now, opened, opened.Add(now+tt.jump))
		f := file{phase: settling, id: identity(5, tt.changed, tt.changed), since: time.Duration(tt.first) * time.Second}
		if got := testRules.rest(f, sourcefile.NoWriters, m); got != tt.want {
			t.Errorf("%s: it rests for %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestForemost checks which files a status lists.
func TestForemost(t *testing.T) {
	for _, tt := range []struct{ failing, active, wantFailing, wantActive int }{
		{0, 0, 0, 0}, {3, 4, 3, 4}, {300, 0, 100, 0}, {0, 1000, 0, 100}, {1000, 7, 93, 7}, {7, 1000, 7, 93}, {1000, 1000, 50, 50},
	} {
		failing, active := newForemost(moreFailures), newForemost(byName)
		for i := range max(tt.failing, tt.active) {
			n := i * 7919 % 1000 // another order
			if i < tt.failing {
				failing.add(&entry{name: fmt.Sprintf("f%03d", n), file: file{attempts: uint16(n / 2), phase: waiting}})
			}
			if i < tt.active {
				active.add(&entry{name: fmt.Sprintf("a%03d", n), file: file{phase: uploading}})
			}
		}
		list := shared(failing.entries(), active.entries())
		n := 0
		for n < len(list) && list[n].phase == waiting {
			n++
		}
		if n != tt.wantFailing || len(list)-n != tt.wantActive {
			t.Errorf("of %d and %d: %d and %d, want %d and %d", tt.failing, tt.active, n, len(list)-n, tt.wantFailing, tt.wantActive)
		}
		if tt.failing == 1000 && (list[0].name != "f998" || list[1].name != "f999" || list[2].name != "f996") {
			t.Errorf("first are %s, %s and %s", list[0].name, list[1].name, list[2].name)
		}
		if tt.active == 1000 && list[n].name != "a000" {
			t.Errorf("the first active file is %s", list[n].name)
		}
	}
}

// TestOrderWaitsForWalks checks that no ordered file is taken while a directory is read, also one below another.
func TestOrderWaitsForWalks(t *testing.T) {
	table := newTable(testRules, limits{small: lane{fixed: 1}, ordered: true})
	var do todo
	found := func(name string) {
		table.seen(name, event{kind: inspected, id: identity(5, 900, 1000), writers: sourcefile.NoWriters}, at(0), &do)
	}
	table.walking++
	found("b")
	table.walking++
	table.walking--
	if f := table.take(at(0)); f != nil {
		t.Errorf("%s is taken before all names are known", f.name)
	}
	found("a")
	table.walking--
	if f := table.take(at(0)); f == nil || f.name != "a" {
		t.Errorf("%v is taken, want a", f)
	}
}
