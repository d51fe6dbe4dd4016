package engine

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// limitedZeros returns an endless body that limit limits.
func limitedZeros(limit *RateLimit) io.Reader {
	return limit.Share().body(context.Background(), zeroes{})
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return len(p), nil }

// TestRateLimitAllocations checks that a read allocates nothing, even if it waits.
func TestRateLimitAllocations(t *testing.T) {
	for name, limit := range map[string]int64{"unlimited": Unlimited, "waits": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body, p := limitedZeros(NewRateLimit(limit)), make([]byte, 64<<10)
				began := time.Now()
				if n := testing.AllocsPerRun(160, func() { _, _ = body.Read(p) }); n > 0 {
					t.Errorf("%v allocations per read", n)
				}
				if took := time.Since(began); limit < Unlimited && took < 9*time.Second {
					t.Errorf("the reads took %v", took)
				}
			})
		})
	}
}

// TestRateLimitHeld checks that a wait counts as held back while it lasts, and that the
// waits of two uploads count once.
func TestRateLimitHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := NewRateLimit(0)
		for range 2 {
			body := limitedZeros(limit)
			go func() { _, _ = body.Read(make([]byte, 1)) }()
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		if held := limit.Held(); held != time.Hour {
			t.Errorf("held back for %v", held)
		}
		limit.SetLimit(Unlimited)
		time.Sleep(time.Hour)
		if held := limit.Held(); held != time.Hour {
			t.Errorf("held back for %v after the wait", held)
		}
	})
}

// BenchmarkRateLimit measures reads of 64 KiB. A "high" limit never holds bytes back.
func BenchmarkRateLimit(b *testing.B) {
	for _, bb := range []struct {
		name  string
		limit *RateLimit
	}{{"none", nil}, {"unlimited", NewRateLimit(Unlimited)}, {"high", NewRateLimit(Unlimited - 1)}, {"waiting", NewRateLimit(1 << 30)}} {
		b.Run(bb.name, func(b *testing.B) {
			body, p := limitedZeros(bb.limit), make([]byte, 64<<10)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = body.Read(p)
			}
		})
	}
}
