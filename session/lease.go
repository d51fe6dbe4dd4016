package session

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Lease is the exclusive right to work on one upload. [Acquire] returns one for
// any [Store].
//
// The lock of a Store on one machine ends with its process, and is a lease that
// does not run out. A Store that machines share cannot know whether a process
// still runs. Its leases run out unless the holder renews them, which the Lease
// does in the background until Release. There are two ways to lose one:
//   - It runs out, for example because the store cannot be reached. Begin then
//     renews it before the next request. The upload continues.
//   - Another process acquired it after that. This is final: Context ends, and
//     the errors of Begin, Save and Delete wrap [ErrInUse].
//
// All methods but Release may be called concurrently. Release is called once, and no
// other call may be under way then, or follow, except of Context and Fence.
//
// Tokens and crashes are those of [Store]. The lease itself is lost in a crash: another
// process can acquire it when it has run out.
type Lease interface {
	// Context ends when the lease is lost to another process, as soon as the Store
	// notices it, even if no method is called. Its cause wraps ErrInUse. It does not
	// end when the lease runs out, or with Release.
	Context() context.Context

	// Fence returns the fencing number: each lease of an upload has a greater
	// one than those before, even if the upload was deleted since. It is positive,
	// and does not change. It is 0 if the Store is no Leaser.
	Fence() int64

	// Begin must be called immediately before each request to the service. The
	// lease was valid when it returned nil. The request must use the context that
	// it returns, which is one of ctx, and ends when the lease runs out. The
	// caller must call end after the request. No other process can acquire the lease
	// while the context has not ended, by the clock of this process or of any other.
	//
	// If the lease ran out, Begin renews it, and tries for at most the duration of a
	// lease. An error that does not wrap ErrInUse is transient.
	Begin(ctx context.Context) (request context.Context, end context.CancelFunc, err error)

	// SaveInterval is the least time between two saves that are not necessary,
	// because each save costs time and money. It is 0 for a Store on one machine.
	SaveInterval() time.Duration

	// Load, Save and Delete are the methods of the Store for this upload. Load returns
	// what was saved last. Save returns an error for a Token of another ID.
	//
	// Save and Delete fail if another process acquired the lease, and then change
	// nothing: the check and the change are one step. If the lease only ran out, they
	// succeed and renew it.
	//
	// The lease may be a part of what is saved, and then ends with Delete. The next
	// Begin or Save renews it. Both fail, as after any loss, if another process
	// acquired the lease before.
	Load(ctx context.Context) (*Token, error)
	Save(ctx context.Context, t *Token) error
	Delete(ctx context.Context) error

	// Release saves last, unless it is nil, and ends the lease in the same step. Other
	// processes can then acquire it. If there is an error, they can when it has
	// run out. The error wraps ErrInUse if the lease was lost, and nothing is saved.
	Release(ctx context.Context, last *Token) error
}

// Leaser is implemented by a [Store] whose locks are leases. The contract of Store holds,
// with these differences:
//   - Lock acquires a lease too, renews it, and releases it with unlock. A lock that is
//     held can be lost in the same way.
//   - Save and Delete of the Store use the lease or the lock that this Store holds for the
//     upload. The error wraps ErrInUse if there is none, or it was lost. They never
//     replace what the next holder saved.
//   - Delete may end a lease or a lock, see Lease.
//   - A process that dies keeps its leases until they run out. So does a call of Acquire
//     or Lock that fails with another error than ErrInUse, if its request reached the
//     place.
//
// The clocks of the processes and of the place may differ by any amount, and a process
// may be suspended at any time.
type Leaser interface {
	Store

	// Acquire returns the lease of an upload. It does not wait: if another caller, in
	// this process or another one, holds the lease, the error is a *[HeldError].
	Acquire(ctx context.Context, id string) (Lease, error)
}

// HeldError is the error of [Leaser] for an upload whose lease another process
// holds. It wraps [ErrInUse].
type HeldError struct {
	Holder  string        // the process, for people
	Renewal int64         // changes if and only if the holder renews the lease
	Left    time.Duration // until the lease runs out, if the holder does not renew it; at least 1 ns
}

// Error returns the holder, and when its lease runs out.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%v by %s, whose lease ends in %v unless it is renewed", ErrInUse, e.Holder, max(e.Left.Round(time.Second), time.Second))
}

// Unwrap returns ErrInUse.
func (e *HeldError) Unwrap() error { return ErrInUse }

// Acquire returns the lease of an upload. If s is no [Leaser], it is the lock of
// s. The caller must release the lease.
func Acquire(ctx context.Context, s Store, id string) (Lease, error) {
	if l, ok := s.(Leaser); ok {
		return l.Acquire(ctx, id)
	}
	unlock, err := s.Lock(ctx, id)
	if err != nil {
		return nil, err
	}
	return &lockLease{store: s, id: id, unlock: sync.OnceFunc(unlock)}, nil
}

// lockLease is the lock of a Store that is no Leaser.
type lockLease struct {
	store  Store
	id     string
	unlock func()
}

var _ Lease = (*lockLease)(nil)

func (l *lockLease) Context() context.Context    { return context.Background() }
func (l *lockLease) Fence() int64                { return 0 }
func (l *lockLease) SaveInterval() time.Duration { return 0 }

func (l *lockLease) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	return ctx, func() {}, nil
}

func (l *lockLease) Load(ctx context.Context) (*Token, error) { return l.store.Load(ctx, l.id) }
func (l *lockLease) Delete(ctx context.Context) error         { return l.store.Delete(ctx, l.id) }

func (l *lockLease) Save(ctx context.Context, t *Token) error {
	if t.ID != l.id {
		return fmt.Errorf("%w: the lease is that of upload %s, not %s", ErrInvalid, l.id, t.ID)
	}
	return l.store.Save(ctx, t)
}

func (l *lockLease) Release(ctx context.Context, last *Token) (err error) {
	if last != nil {
		err = l.Save(ctx, last)
	}
	l.unlock()
	return err
}
