package badlink

import (
	"math"
	"testing"
	"time"
)

// TestShaper sends packets at fixed times through each kind of link.
func TestShaper(t *testing.T) {
	const packets = 20_000
	for _, test := range []struct {
		name        string
		c           Conditions
		every       time.Duration // a packet of 1000 bytes
		lost        float64       // share
		overtaken   float64       // share of the packets that a later one overtakes
		least, most time.Duration // delay
	}{
		{"delay", Conditions{Delay: 75 * time.Millisecond}, time.Millisecond, 0, 0, 75 * time.Millisecond, 75 * time.Millisecond},
		{"loss", Conditions{Delay: time.Millisecond, Loss: 0.01}, time.Millisecond, 0.01, 0, time.Millisecond, time.Millisecond},
		{"jitter keeps the order", Conditions{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond}, time.Millisecond, 0, 0, 10 * time.Millisecond, 15 * time.Millisecond},
		{"reorder", Conditions{Delay: 10 * time.Millisecond, Reorder: 0.05, Late: 3 * time.Millisecond}, time.Millisecond, 0, 0.05, 10 * time.Millisecond, 13 * time.Millisecond},
		{"rate that suffices", Conditions{Rate: 1_000_000, Queue: 10_000}, time.Millisecond, 0, 0, time.Millisecond, time.Millisecond},
		{"half of the rate", Conditions{Rate: 500_000, Queue: 10_000}, time.Millisecond, 0.5, 0, 2 * time.Millisecond, 20 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newShaper(test.c, 1)
			start := time.Unix(1_000_000, 0)
			lost, overtaken := 0, 0
			least, most := time.Hour, time.Duration(0)
			var arrivals []time.Time
			for i := range packets {
				now := start.Add(time.Duration(i) * test.every)
				due, ok := s.pass(now, 1000)
				if !ok {
					lost++
					continue
				}
				least, most = min(least, due.Sub(now)), max(most, due.Sub(now))
				arrivals = append(arrivals, due)
			}
			for i := range arrivals[1:] {
				if arrivals[i+1].Before(arrivals[i]) {
					overtaken++
				}
			}
			if share := float64(lost) / packets; math.Abs(share-test.lost) > 0.005 {
				t.Errorf("%.3f of the packets are lost, want %.3f", share, test.lost)
			}
			if share := float64(overtaken) / packets; math.Abs(share-test.overtaken) > 0.005 {
				t.Errorf("%.3f of the packets are overtaken, want %.3f", share, test.overtaken)
			}
			if slack := time.Millisecond / 2; least < test.least-slack || least > test.least+slack || most > test.most+slack || most < test.most-slack {
				t.Errorf("delays of %v to %v, want %v to %v", least, most, test.least, test.most)
			}
		})
	}
}
