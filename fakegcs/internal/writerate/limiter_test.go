package writerate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gcsup/fakegcs/internal/writerate"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// write makes requests evenly for a time, and counts the verdicts.
func write(l *writerate.Limiter, now *time.Time, perSecond int, length time.Duration, name func() string) map[writerate.Verdict]int {
	counts := map[writerate.Verdict]int{}
	for end := now.Add(length); now.Before(end); *now = now.Add(time.Second / time.Duration(perSecond)) {
		counts[l.Admit(*now, "b", name())]++
	}
	return counts
}

func near(got, want int) bool { return got >= want*98/100-2 && got <= want*102/100+12 }

func TestAdmit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() string { return fmt.Sprintf("%08x", r.Uint32()) }
	grown := 0
	growing := func() string { grown++; return fmt.Sprintf("logs/%08d", grown) }
	one := func() string { return "one" }
	const minute = time.Minute
	type phase struct {
		perSecond          int
		length             time.Duration
		accepted           int // per second
		tooFast, tooSpread bool
	}
	for _, test := range []struct {
		name   string
		names  func() string
		phases []phase
	}{
		{"below the rate", random, []phase{{50, 3 * minute, 50, false, false}}},
		{"above the rate", random, []phase{{300, minute - 2*time.Second, 100, true, false}}},
		{"divided once", random, []phase{{150, 2 * minute, 0, true, true}, {150, 2 * minute, 150, false, false}}},
		{"divided twice", random, []phase{{390, 4 * minute, 0, true, true}, {330, minute, 330, false, true}}},
		{"names that grow", growing, []phase{{300, 5 * minute, 100, true, true}, {300, minute, 100, false, true}}},
		{"one name", one, []phase{{300, 5 * minute, 100, true, false}}},
		{"load with pauses", random, []phase{{300, 40 * time.Second, 100, true, false}, {1, 40 * time.Second, 1, false, false}, {300, 40 * time.Second, 100, true, false}}},
		{"a little load", random, []phase{{79, 10 * minute, 79, false, false}, {300, 50 * time.Second, 100, true, false}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, now := writerate.New(100, minute), start
			for i, p := range test.phases {
				got := write(l, &now, p.perSecond, p.length, test.names)
				if want := p.accepted * int(p.length/time.Second); want > 0 && !near(got[writerate.Accepted], want) {
					t.Errorf("phase %d: %d accepted, want %d", i, got[writerate.Accepted], want)
				}
				if fast, uneven := got[writerate.TooFast] > 0, got[writerate.TooUneven] > 0; fast != p.tooFast || uneven && !p.tooSpread {
					t.Errorf("phase %d: %v, want too fast %v, too uneven %v", i, got, p.tooFast, p.tooSpread)
				}
			}
		})
	}
}

func TestAdmitBuckets(t *testing.T) {
	l := writerate.New(10, time.Minute)
	for _, bucket := range []string{"a", "b"} {
		if l.Admit(start, bucket, "x") != writerate.Accepted || l.Admit(start, bucket, "y") != writerate.TooFast {
			t.Errorf("bucket %s: want one write at once", bucket)
		}
	}
	if got := (*writerate.Limiter)(nil).Admit(start, "a", "x"); got != writerate.Accepted {
		t.Errorf("nil: %v, want accepted", got)
	}
}

// TestAdmitClock checks that a clock that is set back or far ahead gives no burst and holds nothing.
func TestAdmitClock(t *testing.T) {
	l := writerate.New(100, time.Minute)
	now, accepted := start, 0
	for i := range 10_000 { // 10 s
		now = now.Add(time.Millisecond)
		switch i {
		case 3000:
			now = now.Add(-100 * time.Hour)
		case 6000:
			now = now.Add(1e6 * time.Hour)
		}
		if l.Admit(now, "b", fmt.Sprint(i)) == writerate.Accepted {
			accepted++
		}
	}
	if !near(accepted, 1000) {
		t.Errorf("%d accepted in 10 s, want 1000", accepted)
	}
}
