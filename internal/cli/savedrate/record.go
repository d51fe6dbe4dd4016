package savedrate

import (
	"math"
	"time"
)

// Lifetime is how long a rate is remembered after the last 429.
const Lifetime = time.Hour

// together is the age of a record that a process which is still running has probably written. Processes
// write more often.
const together = time.Minute

// maxAhead is how far the clock of the record may be ahead.
const maxAhead = time.Minute

// BucketRate is the rate of one bucket.
type BucketRate struct {
	V         int       `json:"v"`
	Endpoint  string    `json:"endpoint"`
	Bucket    string    `json:"bucket"`
	PerSecond float64   `json:"per_second"` // requests that change objects, of all machines together
	Refused   time.Time `json:"refused"`    // the last 429
	Saved     time.Time `json:"saved"`
	Process   string    `json:"process"` // random
}

// valid reports whether the rate may be used at a time.
func (r BucketRate) valid(now time.Time) bool {
	age := now.Sub(r.Refused)
	return r.V == 1 && r.Bucket != "" && age < Lifetime && age > -maxAhead && r.PerSecond > 0 && !math.IsInf(r.PerSecond, 0)
}

// merge returns what replaces an earlier record. The rate of another process that is still running
// counts if it is lower: both together use what the bucket accepts.
func merge(earlier, latest BucketRate) BucketRate {
	if !earlier.valid(latest.Saved) || earlier.Endpoint != latest.Endpoint || earlier.Bucket != latest.Bucket {
		return latest
	}
	if earlier.Refused.After(latest.Refused) {
		latest.Refused = earlier.Refused
	}
	if earlier.Process != latest.Process && latest.Saved.Sub(earlier.Saved) < together {
		latest.PerSecond = min(latest.PerSecond, earlier.PerSecond)
	}
	return latest
}
