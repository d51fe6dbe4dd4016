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
// The methods may be called concurrently. No method may be called after Release.
type Lease interface {
	// Context ends when the lease is lost to another process. Its cause wraps
	// ErrInUse. It does not end when the lease runs out, or with Release.
	Context() context.Context

	// Fence returns the fencing number: each lease of an upload has a greater
	// one than those before. It is 0 if the Store has none.
	Fence() int64

	// Begin must be called immediately before each request to the service. The
	// lease was valid when it returned nil. The request must use the context that
	// it returns, which is one of ctx, and ends when the lease runs out. The
	// caller must call end after the request.
	//
	// If the lease ran out, Begin renews it, and waits as long as it is valid in
	// general. An error that does not wrap ErrInUse is transient.
	Begin(ctx context.Context) (request context.Context, end context.CancelFunc, err error)

	// SaveInterval is the least time between two saves that are not necessary,
	// because each save costs time and money. It is 0 for a Store on one machine.
	SaveInterval() time.Duration

	// Load, Save and Delete are the methods of the Store for this upload. Save
	// and Delete fail if the lease is lost.
	Load(ctx context.Context) (*Token, error)
	Save(ctx context.Context, t *Token) error
	Delete(ctx context.Context) error

	// Release ends the lease. It first saves last, which may be nil. Other
	// processes can then acquire it. If there is an error, they can when it has
	// run out.
	Release(ctx context.Context, last *Token) error
}

// Leaser is implemented by a [Store] whose locks are leases. Its method Lock
// acquires a lease too, and its methods Save and Delete use it.
type Leaser interface {
	Store

	// Acquire returns the lease of an upload. It does not wait: if another
	// process holds the lease, the error wraps ErrInUse. It is a *[HeldError] if
	// the Store knows when the lease runs out.
	Acquire(ctx context.Context, id string) (Lease, error)
}

// HeldError is the error of [Leaser] for an upload whose lease another process
// holds. It wraps [ErrInUse].
type HeldError struct {
	Holder  string        // the process, for people
	Renewal int64         // changes when the holder renews the lease
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
func (l *lockLease) Save(ctx context.Context, t *Token) error { return l.store.Save(ctx, t) }
func (l *lockLease) Delete(ctx context.Context) error         { return l.store.Delete(ctx, l.id) }

func (l *lockLease) Release(ctx context.Context, last *Token) (err error) {
	if last != nil {
		err = l.store.Save(ctx, last)
	}
	l.unlock()
	return err
}
