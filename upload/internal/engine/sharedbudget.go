package engine

import (
	"sync/atomic"
	"time"

	"gcsup/session"
)

// RetryRule is the caller's rule for the retries of an upload.
type RetryRule struct {
	Time      time.Duration             // without newly committed bytes, after which an upload stops; 0 means no limit
	Retries   int                       // retries in a row; a negative number means none, and 0 a number that grows with the bytes at stake
	Permanent func(*session.Error) bool // reports a failure that is not retried; may be nil
}

// SharedBudget is the retry budget that is shared by the uploads of a call. It has the time to retry without
// progress, and the bytes at stake. Each upload compares its own failures with it, so
// that each file of a batch has the retries of one file of their total size.
type SharedBudget struct {
	rule    RetryRule
	staked  atomic.Int64 // bytes of the uploads that have begun
	Counted atomic.Int64 // bytes of the whole batch, as far as they are known
	Reached atomic.Bool  // the service answered one of the uploads
	moved   atomic.Int64 // when data of one of the uploads last arrived, in nanoseconds since began; 0 if never
	began   time.Time
	Blocked func() // called when the circuit breaker blocks an upload; may be nil
}

// NewSharedBudget returns a SharedBudget for uploads that begin now.
func NewSharedBudget(rule RetryRule) *SharedBudget {
	return &SharedBudget{rule: rule, began: time.Now()}
}

// Progressed records that data of an upload arrives at the service.
func (b *SharedBudget) Progressed() { b.moved.Store(max(1, int64(time.Since(b.began)))) }

// Progress returns when data of an upload last arrived. It is zero if none did.
func (b *SharedBudget) Progress() time.Time {
	if moved := b.moved.Load(); moved > 0 {
		return b.began.Add(time.Duration(moved))
	}
	return time.Time{}
}

// AtStake returns the bytes that would be lost, or left undone, if the uploads
// stopped.
func (b *SharedBudget) AtStake() int64 { return max(b.staked.Load(), b.Counted.Load()) }
