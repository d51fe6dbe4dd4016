package upload

import (
	"fmt"
	"time"

	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
)

// slowConnection is the error of a first request that was slow although the service is near.
// rate is in bytes per second.
type slowConnection struct{ rate int64 }

func (e *slowConnection) Error() string {
	return fmt.Sprintf("one connection reaches only %.1f MiB/s, so that the file is sent in parts", float64(e.rate)/(1<<20))
}

// measureFirst makes the first request measure the rate of a single connection to a near
// service. why is the reason to use one connection. If the rate is high enough, it is
// reported, and otherwise the request ends with a slowConnection.
func (j *job) measureFirst(why parts.Reason) {
	limit := j.u.opts.RateLimit
	held := limit.held()
	j.measure = &engine.Measurement{Size: parts.FirstBytes, Check: func(n int64, took time.Duration) error {
		if rate, fast := j.u.link.Fast(n, took, limit.held()-held); !fast {
			return &slowConnection{rate}
		}
		j.reportUndivided(why)
		return nil
	}}
}
