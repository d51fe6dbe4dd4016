package upload

import (
	"sync/atomic"
	"time"
)

// budget is what uploads share that stop retrying together: how long to try without
// progress, and what is at stake. Each upload counts its own failures against
// it, so a batch of files tries as long as one file of their total size.
type budget struct {
	retryFor time.Duration // see Options.RetryFor
	atStake  atomic.Int64  // bytes that giving up would lose or leave undone
}
