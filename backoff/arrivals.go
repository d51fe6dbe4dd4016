package backoff

import "time"

// arrivals measures the rate of events in the last one to two seconds in which there were any.
// The zero value has none.
type arrivals struct {
	count, earlier    int           // of this span, and of the one before it
	from, earlierFrom time.Duration // when the spans begin; equal if there is only one
}

const (
	arrivalSpan = time.Second

	// shortestArrivals is the time for which a burst counts.
	shortestArrivals = 100 * time.Millisecond
)

func (a *arrivals) add(now time.Duration) {
	switch {
	case a.count == 0 || now-a.from > 2*arrivalSpan:
		*a = arrivals{from: now, earlierFrom: now}
	case now-a.from > arrivalSpan:
		a.earlier, a.earlierFrom = a.count, a.from
		a.count, a.from = 0, now
	}
	a.count++
}

func (a *arrivals) perSecond(now time.Duration) float64 {
	return float64(a.count+a.earlier) / max(now-a.earlierFrom, shortestArrivals).Seconds()
}
