package upload

import (
	"sync/atomic"
	"time"

	"gcsup/session"
)

// retryRule is the caller's rule for the retries of an upload.
type retryRule struct {
	time      time.Duration             // without newly committed bytes, after which an upload stops; 0 means no limit
	tries     int                       // retries in a row; a negative number means none, and 0 a number that grows with the bytes at stake
	permanent func(*session.Error) bool // reports a failure that is not retried; may be nil
}

// budget is shared by the uploads of a call. It has the time to retry without
// progress, and the bytes at stake. Each upload compares its own failures with it, so
// that each file of a batch has the tries of one file of their total size.
type budget struct {
	rule    retryRule
	staked  atomic.Int64 // bytes of the uploads that have begun
	counted atomic.Int64 // bytes of the whole batch, as far as they are known
	reached atomic.Bool  // the service answered one of the uploads
	moved   atomic.Int64 // when data of one of the uploads last arrived, in nanoseconds since began; 0 if never
	began   time.Time
	held    func() // called when the gate holds an upload; may be nil
}

// newBudget returns a budget for uploads that begin now.
func newBudget(rule retryRule) *budget { return &budget{rule: rule, began: time.Now()} }

// progressed records that data of an upload arrives at the service.
func (b *budget) progressed() { b.moved.Store(max(1, int64(time.Since(b.began)))) }

// progress returns when data of an upload last arrived. It is zero if none did.
func (b *budget) progress() time.Time {
	if moved := b.moved.Load(); moved > 0 {
		return b.began.Add(time.Duration(moved))
	}
	return time.Time{}
}

// atStake returns the bytes that would be lost, or left undone, if the uploads
// stopped.
func (b *budget) atStake() int64 { return max(b.staked.Load(), b.counted.Load()) }
