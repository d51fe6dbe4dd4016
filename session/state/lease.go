package state

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gcsup/session"
)

// Lease is the exclusive right to work on one upload. [Acquire] returns one for
// any [Store].
//
// The lock of a Store on one machine ends with its process. A Lease with such a lock never
// expires. A Store that several machines share cannot know whether a process on another machine
// still runs. Its leases expire unless they are renewed. The Lease renews itself in the
// background until Release, or until the context of Acquire is done. A canceled call that hangs, for example in a read
// from a dead file server, therefore does not keep other processes from the upload. A lease can be lost in two steps:
//   - It expires, for example because the store cannot be reached. Begin and Save
//     renew it, and the upload continues.
//   - Another process acquires it after it has expired. This is final: Context ends,
//     and the errors of Begin, Save and Delete wrap [ErrInUse].
//
// All methods except Release may be called concurrently. Release must be called once,
// when no other method is running. Only Context and Fence may be called after it.
//
// After a crash, the saved upload has the guarantees of [Store]. Another process can
// acquire the lease when it has expired.
type Lease interface {
	// Context ends when the Store notices that another process acquired the lease, even
	// if no method is called. Its cause wraps ErrInUse. It does not end when the lease
	// only expires, or with Release.
	Context() context.Context

	// Fence returns the fencing number. Each lease of an upload has a greater number
	// than all earlier leases, even if the upload was deleted since. It is positive, or
	// 0 if the Store is not a Leaser. It changes only if the lease is acquired again
	// after Delete.
	Fence() int64

	// Begin must be called immediately before each request to the service. If it returns
	// no error, the lease is valid. The request must use the returned context, which is
	// derived from ctx and also ends when the lease expires. The caller must call end
	// after the request. No other process can acquire the lease before the context has
	// ended, however much the clocks of the processes differ.
	//
	// If the lease has expired, Begin renews it. It tries for at most the duration of a
	// lease. An error that does not wrap ErrInUse is transient.
	Begin(ctx context.Context) (request context.Context, end context.CancelFunc, err error)

	// SaveInterval is the minimum time between saves that only make a resume shorter,
	// because each save costs time and money. It is 0 for a Store on one machine.
	SaveInterval() time.Duration

	// Load, Save and Delete are those of the Store for this upload. Load returns what was
	// last saved. Save returns an error for a saved upload with another ID.
	//
	// If another process acquired the lease, Save and Delete fail and change nothing:
	// the check and the change are one step. If the lease only expired, they succeed,
	// and Save renews it.
	//
	// A Store may store the lease with the upload. The lease then ends with Delete. The
	// next Begin or Save acquires it again, unless another process has acquired it.
	Load(ctx context.Context) (*Upload, error)
	Save(ctx context.Context, t *Upload) error
	Delete(ctx context.Context) error

	// Release saves the upload last, unless last is nil, and ends the lease in the same step,
	// so that other processes can acquire it. If Release fails, they can acquire it when it
	// has expired. If the lease was lost, the error wraps ErrInUse and nothing is saved.
	Release(ctx context.Context, last *Upload) error
}

// Leaser is implemented by a [Store] whose locks are leases. The contract of Store holds,
// with these differences:
//   - Lock acquires a lease, renews it, and releases it with unlock. A lock can be lost
//     in the same way as a lease.
//   - Save and Delete of the Store use the lease or lock that this Store holds of the
//     upload. If there is none, or it was lost, the error wraps ErrInUse. They never
//     replace what the next holder saved.
//   - Delete may end a lease or a lock, see Lease.
//   - The leases of a process that dies remain until they expire, or until another process
//     knows that it has ended. If Acquire or Lock fails although its request succeeded, the
//     lease remains until it expires.
//
// The clocks of the processes and of the shared storage may differ by any amount, and a
// process may be suspended at any time.
type Leaser interface {
	Store

	// Acquire acquires the lease of an upload, and renews it in the background until Release, or
	// until ctx is done. It does not wait: if another caller, in this or another process, holds
	// the lease, the error is a *[HeldError] with the fields of a lease.
	Acquire(ctx context.Context, id string) (Lease, error)
}

// Acquire acquires the lease of an upload. If s is not a [Leaser], the lease is the
// lock of the upload, which never expires. Otherwise it is renewed in the background while ctx is not done. The
// caller must call Release.
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

// lockLease is the lock of a Store that is not a Leaser, as a Lease.
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

func (l *lockLease) Load(ctx context.Context) (*Upload, error) { return l.store.Load(ctx, l.id) }
func (l *lockLease) Delete(ctx context.Context) error          { return l.store.Delete(ctx, l.id) }

func (l *lockLease) Save(ctx context.Context, t *Upload) error {
	if t.ID != l.id {
		return fmt.Errorf("%w: the lease is that of upload %s, not %s", session.ErrInvalid, l.id, t.ID)
	}
	return l.store.Save(ctx, t)
}

func (l *lockLease) Release(ctx context.Context, last *Upload) (err error) {
	if last != nil {
		err = l.Save(ctx, last)
	}
	l.unlock()
	return err
}
