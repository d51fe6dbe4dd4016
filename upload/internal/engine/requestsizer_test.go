package engine

import (
	"testing"
	"time"

	"gcsup/chunk"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// TestRequestSizerFollowsTheRate checks that a request should take about a minute
// after the rate is known.
func TestRequestSizerFollowsTheRate(t *testing.T) {
	for _, tt := range []struct {
		n    int64
		took time.Duration
		want int64
	}{
		{gib, 10 * time.Second, 6 * gib},
		{gib, time.Minute, gib},
		{gib, 10 * time.Minute, chunk.Floor(gib / 10)},
		{chunk.Granularity, time.Hour, chunk.Granularity},
		{gib, 0, 1 << 40},
		{gib, time.Nanosecond, 1 << 40},
	} {
		b := newRequestSizer(0)
		if got := b.size(); got != gib {
			t.Fatalf("first size = %d, want 1 GiB", got)
		}
		b.passed(tt.n, tt.took)
		if got := b.size(); got != tt.want {
			t.Errorf("after %d bytes in %v: size = %d, want %d", tt.n, tt.took, got, tt.want)
		}
	}
}

func TestRequestSizerShrinksAfterCutsAndGrowsBack(t *testing.T) {
	for _, tt := range []struct {
		name             string
		chunkSize, first int64
	}{{"timed", 0, gib}, {"fixed", 64 * mib, 64 * mib}} {
		t.Run(tt.name, func(t *testing.T) {
			b := newRequestSizer(tt.chunkSize)
			b.cut(40*mib, true)
			b.cut(40*mib, false)
			if got := b.size(); got != tt.first {
				t.Errorf("after one cut without progress: size = %d, want %d", got, tt.first)
			}
			b.cut(40*mib, false)
			if got := b.size(); got != 20*mib {
				t.Errorf("after two cuts at 40 MiB: size = %d, want 20 MiB", got)
			}
			for range 20 {
				b.cut(b.size(), false)
			}
			if got := b.size(); got != chunk.Granularity {
				t.Errorf("after many cuts: size = %d, want 256 KiB", got)
			}
			b.passed(chunk.Granularity, time.Millisecond)
			if got := b.size(); got != 2*chunk.Granularity {
				t.Errorf("after it passed: size = %d, want 512 KiB", got)
			}
			for range 20 {
				b.passed(b.size(), time.Second)
			}
			if got := b.size(); got < tt.first || tt.chunkSize > 0 && got != tt.chunkSize {
				t.Errorf("after it passed often: size = %d, want %d again", got, tt.first)
			}
		})
	}
}
