package saved

import (
	"slices"
	"testing"
	"time"

	"gcsup/chunk"
)

// TestCheckpointDue checks after how many bytes, and after which time, a checkpoint is saved.
func TestCheckpointDue(t *testing.T) {
	const kib, mib, ms = 1 << 10, 1 << 20, time.Millisecond
	for _, tt := range []struct {
		offset, last int64
		since        time.Duration
		due          bool
	}{
		{32 * mib, 0, 0, true}, // a fast network
		{32*mib - 1, 0, 0, false},
		{72 * mib, 40 * mib, 0, true},
		{72*mib - 1, 40 * mib, 0, false},
		{mib, 0, 100 * ms, true}, // the first ones: the distance doubles
		{mib, 0, 100*ms - 1, false},
		{mib - 1, 0, 100 * ms, false},
		{8 * mib, 4 * mib, 100 * ms, true},
		{8*mib - 1, 4 * mib, 100 * ms, false},
		{9 * mib, 4 * mib, 99 * ms, false},
		{256 * kib, 0, 1000 * ms, true}, // a slow network
		{256 * kib, 0, 1000*ms - 1, false},
		{256*kib - 1, 0, 1000 * ms, false},
		{10*mib + 256*kib, 10 * mib, 1000 * ms, true},
		{10 * mib, 10 * mib, time.Hour, false}, // nothing was sent since
	} {
		if due := checkpointDue(tt.offset, tt.last, tt.since); due != tt.due {
			t.Errorf("at %d, %v after the last one at %d: due %v, want %v", tt.offset, tt.since, tt.last, due, tt.due)
		}
	}
}

// TestWithCheckpoint checks that a list keeps what a resume at or after the committed offset may need,
// and that the earlier list does not change.
func TestWithCheckpoint(t *testing.T) {
	list := func(offsets ...int64) (l []chunk.Checkpoint) {
		for _, o := range offsets {
			l = append(l, chunk.Checkpoint{Offset: o, CRC32C: uint32(o)})
		}
		return l
	}
	for _, tt := range []struct {
		list      []int64
		add       int64
		committed int64
		want      []int64
	}{
		{nil, 0, 0, nil},
		{nil, 8, 0, []int64{8}},
		{nil, 8, 9, []int64{8}},
		{[]int64{8}, 8, 0, []int64{8}},
		{[]int64{8}, 4, 0, []int64{8}},
		{[]int64{8}, 16, 15, []int64{8, 16}}, // a resume at 15 begins at 8
		{[]int64{8}, 16, 16, []int64{16}},
		{[]int64{4, 8, 16}, 32, 16, []int64{16, 32}},
		{[]int64{4, 8, 16}, 0, 7, []int64{4, 8, 16}},
	} {
		earlier := list(tt.list...)
		got := withCheckpoint(earlier, chunk.Checkpoint{Offset: tt.add, CRC32C: uint32(tt.add)}, tt.committed)
		if want := list(tt.want...); !slices.Equal(got, want) || !slices.Equal(earlier, list(tt.list...)) {
			t.Errorf("%v and %d, committed %d: %v, want %v; the earlier list is %v", tt.list, tt.add, tt.committed, got, want, earlier)
		}
		if last := LastCheckpoint(got); len(tt.want) > 0 && last != tt.want[len(tt.want)-1] || len(tt.want) == 0 && last != 0 {
			t.Errorf("the last one of %v is at %d", got, last)
		}
	}
}
