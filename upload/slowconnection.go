package upload

import (
	"context"
	"fmt"
	"time"

	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
)

// slowConnection is the error of a request whose first bytes were slow.
type slowConnection struct {
	rate int64 // bytes per second
	// divide returns the step that sends the file in parts, or nil if its session must continue.
	divide func(context.Context) (func(context.Context) error, error)
}

func (e *slowConnection) Error() string {
	return fmt.Sprintf("one connection reaches only %.1f MiB/s", float64(e.rate)/(1<<20))
}

// measureFirst makes the first bytes measure the rate of a single connection. If it is high enough,
// the reason is reported, and otherwise the request ends with a slowConnection.
func (j *job) measureFirst() {
	limit, link := j.u.opts.RateLimit, j.u.link
	j.measure = func() engine.Measure {
		held, measure := limit.held(), link.Measure()
		return func(n int64, took time.Duration) (done bool, err error) {
			rate, done := measure(n, took-(limit.held()-held))
			if !done {
				return false, nil
			}
			if why, one := link.WhyUndivided(j.u.opts.Parallel.orOne()).(parts.Reason); one {
				j.reportUndivided(why)
				return true, nil
			}
			return true, &slowConnection{rate, j.divide}
		}
	}
}
