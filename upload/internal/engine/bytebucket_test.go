package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// fill passes reads of n bytes through b from the time at until the time end, and returns
// the number of bytes that passed. Each timer fires late by late.
func fill(t *testing.T, b *byteBucket, n int, at, end time.Time, late time.Duration) (passed int64) {
	t.Helper()
	for range 1 << 24 {
		if !at.Before(end) {
			return passed
		}
		wait := b.pass(n, at)
		switch {
		case wait == 0:
			passed += int64(n)
		case wait == indefinitely && b.rate == 0:
			return passed
		case wait < 0 || wait > time.Second:
			t.Fatalf("a wait of %v at %d bytes per second", wait, b.rate)
		default:
			at = at.Add(wait + late)
		}
	}
	t.Fatalf("%d bytes passed, and it is %v", passed, at)
	return 0
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestByteBucket checks that the rate is exact with any size of reads, and with timers
// that fire late.
func TestByteBucket(t *testing.T) {
	t.Parallel()
	for _, rate := range []int64{1, 100, 1000, 16 << 10, 1 << 20, 1 << 30} {
		for _, n := range []int64{1, rate / 100, bytesPerTick(rate)} {
			for _, late := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
				if n == 0 || n == 1 && rate > 16<<10 {
					continue
				}
				t.Run(fmt.Sprintf("rate %d, reads of %d, %v late", rate, n, late), func(t *testing.T) {
					var b byteBucket
					b.setRate(rate, epoch)
					got := fill(t, &b, int(n), epoch, epoch.Add(100*time.Second), late)
					want := 100 * rate
					if got < want-n-bytesPerTick(rate) || got > want+n+bytesPerTick(rate) {
						t.Errorf("%d bytes passed in 100 s, want %d", got, want)
					}
				})
			}
		}
	}
}

// TestByteBucketCredit checks that an idle second gives a credit of 1/16 s.
func TestByteBucketCredit(t *testing.T) {
	t.Parallel()
	var b byteBucket
	b.setRate(1600, epoch)
	fill(t, &b, 10, epoch, epoch.Add(time.Second), 0)
	at := epoch.Add(time.Hour)
	if got := fill(t, &b, 10, at, at.Add(1), 0); got != 110 {
		t.Errorf("%d bytes passed at once, want the 100 of 1/16 s and one read", got)
	}
}

// TestByteBucketChanges checks at random changes of the rate that no wait is longer than a
// second, and that the bytes are those of the rates.
func TestByteBucketChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	rates := []int64{0, 1, 1000, 64 << 10, 1 << 20, Unlimited}
	for range 200 {
		var b byteBucket
		at := epoch
		for range 20 {
			rate := rates[random.IntN(len(rates))]
			b.setRate(rate, at)
			if rate == Unlimited {
				if wait := b.pass(1<<40, at); wait != 0 {
					t.Fatalf("a wait of %v without a limit", wait)
				}
				continue
			}
			n := bytesPerTick(rate)
			got := fill(t, &b, int(n), at, at.Add(10*time.Second), 0)
			if want := 10 * rate; got < want-2*n || got > want+2*n {
				t.Fatalf("%d bytes passed in 10 s, want %d", got, want)
			}
			at = at.Add(10 * time.Second)
		}
	}
}

// TestByteBucketPause checks that a pause neither pays a debt nor gives a credit.
func TestByteBucketPause(t *testing.T) {
	t.Parallel()
	var b byteBucket
	b.setRate(1000, epoch)
	b.pass(60, epoch)
	b.setRate(0, epoch)
	at := epoch.Add(time.Hour)
	if wait := b.pass(1, at); wait != indefinitely {
		t.Fatalf("a wait of %v while the rate is 0", wait)
	}
	b.setRate(1000, at)
	if wait := b.pass(1, at); wait != 60*time.Millisecond {
		t.Errorf("a wait of %v after the pause, want that for 60 bytes", wait)
	}
}

// TestByteBucketHeld checks that the time of a wait counts while the wait lasts.
func TestByteBucketHeld(t *testing.T) {
	t.Parallel()
	var b byteBucket
	steps := []struct {
		at   time.Duration
		do   func(now time.Time)
		held time.Duration
	}{
		{0, func(now time.Time) { b.setRate(1000, now); b.pass(500, now) }, 0},
		{time.Second, func(now time.Time) { b.setRate(0, now) }, 0},
		{2 * time.Second, func(now time.Time) { b.pass(1, now) }, 0},
		{time.Minute, b.advance, 58 * time.Second},
		{2 * time.Minute, func(now time.Time) { b.setRate(1000, now); b.pass(1, now) }, 118 * time.Second},
		{time.Hour, b.advance, 118 * time.Second},
		{time.Hour, func(now time.Time) { b.setRate(0, now); b.pass(1, now) }, 118 * time.Second},
		{time.Hour + time.Second, b.leave, 119 * time.Second},
		{2 * time.Hour, b.advance, 119 * time.Second},
	}
	for i, s := range steps {
		if s.do(epoch.Add(s.at)); b.held != s.held {
			t.Errorf("step %d: held for %v, want %v", i, b.held, s.held)
		}
	}
}
