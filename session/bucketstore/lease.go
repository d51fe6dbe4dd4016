package bucketstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"gcsup/backoff"
	"gcsup/session"
)

// The life of a lease, in parts of its TTL since the last write was sent.
const (
	saveAfter  = 4 // /8: the least time between saves that are not necessary
	renewAfter = 5 // /8: the lease is renewed if nothing was saved
	validFor   = 7 // /8: no request begins after it. The rest is for clocks that run at another speed
)

var (
	errRanOut   = errors.New("the lease of the upload ran out")
	errReleased = errors.New("the lease of the upload was released")
)

// lease is the lease of one upload.
//
// Every write has the precondition that the object has the generation of the write
// before. The writes therefore fail once another process acquired the lease, and never
// replace what it saved. The reply to a write may be lost. The object then has the
// unique name of this lease, and the generation is taken from there.
type lease struct {
	store *Store
	id    string
	name  string // unique
	fence int64  // generation of the first write

	lost context.Context // ends when another process acquired the lease
	lose context.CancelCauseFunc

	alive context.Context // ends with Release
	end   context.CancelFunc
	kept  chan struct{} // closed when keep returns

	// writing holds a token while an object is written. The fields below belong to
	// its owner.
	writing    chan struct{}
	generation int64  // of the object; 0 if there is none
	content    []byte // of the object

	mu        sync.Mutex
	backed    bool            // the object exists, as far as is known
	renewed   moment          // when the last successful write was sent; valid if backed
	valid     context.Context // ends when the lease runs out; replaced when it is renewed after that
	invalid   context.CancelCauseFunc
	expiry    *time.Timer
	listening chan struct{} // tells keep that the lease was renewed
}

var _ session.Lease = (*lease)(nil)

// Acquire returns the lease of an upload. The error is a *[session.HeldError] if another
// process holds it.
func (s *Store) Acquire(ctx context.Context, id string) (session.Lease, error) {
	if !session.ValidID(id) {
		return nil, fmt.Errorf("%w: %q", session.ErrNoToken, id)
	}
	l := newLease(s, id)
	if err := l.acquire(ctx); err != nil {
		l.end()
		if errors.Is(err, session.ErrInUse) {
			return nil, err
		}
		return nil, fmt.Errorf("lease of upload %s: %w", id, err)
	}
	s.mu.Lock()
	s.leases[id] = l
	s.mu.Unlock()
	go l.keep()
	return l, nil
}

func newLease(s *Store, id string) *lease {
	l := &lease{
		store: s, id: id, name: rand.Text(),
		kept: make(chan struct{}), writing: make(chan struct{}, 1), listening: make(chan struct{}, 1),
	}
	l.lost, l.lose = context.WithCancelCause(context.Background())
	l.alive, l.end = context.WithCancel(context.Background())
	l.valid, l.invalid = context.WithCancelCause(context.Background())
	l.invalid(errRanOut)
	return l
}

// acquire makes the first write.
func (l *lease) acquire(ctx context.Context) error {
	for {
		r, began, err := l.store.insert(ctx, l.id, l.generation, l.store.leased(l.name), l.content)
		switch {
		case err != nil:
			return err
		case r.Object != nil:
			l.generation, l.fence = r.Object.Generation, r.Object.Generation
			l.extend(began)
			return nil
		case r.Status != 412:
			return refusal(r)
		}
		if err := l.challenge(ctx); err != nil {
			return err
		}
	}
}

// challenge looks who holds the lease. If it returns nil, the lease is free, and the
// next write replaces what is there.
func (l *lease) challenge(ctx context.Context) error {
	for {
		e, err := l.store.look(ctx, l.id)
		if err != nil {
			return err
		}
		if e.left > 0 && e.lease != l.name {
			return &session.HeldError{Holder: e.holder, Renewal: e.generation, Left: e.left}
		}
		l.generation, l.content = e.generation, nil
		if e.generation == 0 {
			return nil
		}
		l.content, err = l.store.read(ctx, l.id, e.generation)
		if errors.Is(err, session.ErrNoToken) {
			continue // another process replaced it
		}
		return err
	}
}

// Context returns a context that ends when another process acquired the lease.
func (l *lease) Context() context.Context { return l.lost }

// Fence returns the generation with which the lease was acquired.
func (l *lease) Fence() int64 { return l.fence }

// SaveInterval returns half of the TTL.
func (l *lease) SaveInterval() time.Duration { return l.part(saveAfter) }

// part returns n eighths of the TTL.
func (l *lease) part(n time.Duration) time.Duration { return l.store.opts.TTL * n / 8 }

// Begin returns a context for one request.
func (l *lease) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	for {
		if err := l.ended(); err != nil {
			return nil, nil, err
		}
		if valid, ok := l.current(); ok {
			request, cancel := context.WithCancelCause(ctx)
			stop := context.AfterFunc(valid, func() { cancel(context.Cause(valid)) })
			return request, func() {
				stop()
				cancel(nil)
			}, nil
		}
		if err := l.renew(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// ended returns why the lease can no longer be used, or nil.
func (l *lease) ended() error {
	if err := context.Cause(l.lost); err != nil {
		return err
	}
	if l.alive.Err() != nil {
		return errReleased
	}
	return nil
}

// current returns the context of the present validity, if the lease did not run out.
func (l *lease) current() (context.Context, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.valid, l.left(validFor) > 0
}

// left returns how long it is until n eighths of the TTL have passed since the last
// renewal. l.mu is held.
func (l *lease) left(n time.Duration) time.Duration {
	if !l.backed {
		return 0
	}
	return l.part(n) - l.store.clock().since(l.renewed)
}

// extend notes a write that was sent at a moment and succeeded.
func (l *lease) extend(sent moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backed, l.renewed = true, sent
	left := l.left(validFor)
	if left <= 0 {
		return // the reply took too long
	}
	if l.valid.Err() != nil {
		l.valid, l.invalid = context.WithCancelCause(context.Background())
	}
	if l.expiry == nil {
		l.expiry = time.AfterFunc(left, l.expire)
	} else {
		l.expiry.Reset(left)
	}
	select {
	case l.listening <- struct{}{}:
	default:
	}
}

// expire ends the requests under way if the lease ran out.
func (l *lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.left(validFor); left > 0 {
		l.expiry.Reset(left)
		return
	}
	l.invalid(errRanOut)
}

// unback notes that there is no object any more.
func (l *lease) unback() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backed = false
	l.invalid(errRanOut)
}

// taken notes that another process has the lease, and returns the error.
func (l *lease) taken(e entry) error {
	by := "another process"
	if e.holder != "" {
		by = e.holder
	}
	l.lose(fmt.Errorf("%w: the lease ran out, and %s acquired it", session.ErrInUse, by))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backed = false
	l.invalid(context.Cause(l.lost))
	return context.Cause(l.lost)
}

// own waits until no other write is under way.
func (l *lease) own(ctx context.Context) (free func(), err error) {
	select {
	case l.writing <- struct{}{}:
		return func() { <-l.writing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// renew writes the object again if the lease ran out. It tries for at most one TTL.
func (l *lease) renew(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, l.store.opts.TTL, errTimeout)
	defer cancel()
	free, err := l.own(limited)
	if err == nil {
		defer free()
		if _, ok := l.current(); ok {
			return nil
		}
		err = l.write(limited, l.content)
	}
	if err != nil && !errors.Is(err, session.ErrInUse) {
		err = fmt.Errorf("%w and cannot be renewed: %w", errRanOut, err)
	}
	return err
}

// write replaces the object, which renews the lease. The caller must own the object.
func (l *lease) write(ctx context.Context, content []byte) error {
	return l.replace(ctx, l.store.leased(l.name), content)
}

// replace replaces the object. The caller must own it.
func (l *lease) replace(ctx context.Context, metadata map[string]string, content []byte) error {
	for {
		if err := context.Cause(l.lost); err != nil {
			return err
		}
		r, began, err := l.store.insert(ctx, l.id, l.generation, metadata, content)
		switch {
		case err != nil:
			return err
		case r.Object != nil:
			l.generation, l.content = r.Object.Generation, content
			l.extend(began)
			return nil
		case r.Status != 412:
			return refusal(r)
		}
		if released, err := l.reconcile(ctx); released || err != nil {
			return err
		}
	}
}

// reconcile looks why a write was refused. It returns nil if that was because of an
// earlier write of this lease whose reply was lost. released reports that this was the
// last one.
func (l *lease) reconcile(ctx context.Context) (released bool, err error) {
	e, err := l.store.look(ctx, l.id)
	switch {
	case err != nil:
		return false, err
	case e.lease == l.name:
		l.generation = e.generation
		return false, nil
	case e.released == l.name:
		return true, nil
	}
	return false, l.taken(e)
}

// Load returns the upload as it was saved last.
func (l *lease) Load(ctx context.Context) (*session.Token, error) {
	free, err := l.own(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	return l.store.decode(l.id, l.content)
}

// Save saves the upload, which renews the lease.
func (l *lease) Save(ctx context.Context, t *session.Token) error {
	if t.ID != l.id {
		return fmt.Errorf("%w: the lease is that of upload %s, not %s", session.ErrInvalid, l.id, t.ID)
	}
	content, err := l.store.encode(t)
	if err != nil {
		return err
	}
	return l.exclusive(ctx, "save", func(ctx context.Context) error { return l.write(ctx, content) })
}

// Delete deletes the upload, and the object with it. The next request or Save makes
// another one.
func (l *lease) Delete(ctx context.Context) error {
	return l.exclusive(ctx, "delete", l.remove)
}

// exclusive calls f, which writes the object.
func (l *lease) exclusive(ctx context.Context, what string, f func(context.Context) error) error {
	free, err := l.own(ctx)
	if err == nil {
		defer free()
		if err = l.ended(); err == nil {
			err = f(ctx)
		}
	}
	if err != nil && !errors.Is(err, session.ErrInUse) {
		err = fmt.Errorf("%s upload %s: %w", what, l.id, err)
	}
	return err
}

// remove deletes the object. The caller must own it.
func (l *lease) remove(ctx context.Context) error {
	for l.generation != 0 {
		r, err := l.store.remove(ctx, l.id, l.generation)
		switch {
		case err != nil:
			return err
		case r.Status == 412:
			if _, err := l.reconcile(ctx); err != nil {
				return err
			}
		case r.Status == 404, r.Status >= 200 && r.Status < 300:
			l.generation = 0
		default:
			return refusal(r)
		}
	}
	l.content = nil
	l.unback()
	return nil
}

// Release saves last, if it is not nil, and ends the lease. Further calls do nothing.
func (l *lease) Release(ctx context.Context, last *session.Token) error {
	if l.alive.Err() != nil {
		return nil
	}
	l.end()
	<-l.kept
	defer l.forget()
	free, err := l.own(ctx)
	if err != nil {
		return fmt.Errorf("release the lease of upload %s: %w", l.id, err)
	}
	defer free()
	if err := context.Cause(l.lost); err != nil {
		return err
	}
	content := l.content
	if last != nil {
		if content, err = l.store.encode(last); err != nil {
			return err
		}
	}
	if len(content) == 0 {
		err = l.remove(ctx)
	} else {
		err = l.replace(ctx, map[string]string{releasedKey: l.name}, content)
	}
	if err != nil && !errors.Is(err, session.ErrInUse) {
		err = fmt.Errorf("release the lease of upload %s: %w", l.id, err)
	}
	return err
}

// forget ends what the lease has in memory.
func (l *lease) forget() {
	l.mu.Lock()
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.invalid(errReleased)
	l.mu.Unlock()
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.leases[l.id] == l {
		delete(l.store.leases, l.id)
	}
}

// keep renews the lease until it is released or lost.
func (l *lease) keep() {
	defer close(l.kept)
	waiter := backoff.Waiter{Policy: l.store.policy, Budget: backoff.Budget{For: 365 * 24 * time.Hour}}
	defer waiter.Close()
	for {
		if !l.due() {
			return
		}
		ctx, cancel := context.WithTimeoutCause(l.alive, l.part(1)+time.Second, errTimeout)
		err := l.refresh(ctx)
		cancel()
		switch {
		case err == nil:
			waiter.Progress()
		case l.ended() != nil:
			return
		default:
			if waiter.Wait(l.alive, backoff.Failure{}) != nil {
				return
			}
		}
	}
}

// due waits until the lease must be renewed. It returns false if that is no longer
// necessary.
func (l *lease) due() bool {
	for {
		l.mu.Lock()
		backed, left := l.backed, l.left(renewAfter)
		l.mu.Unlock()
		if backed && left <= 0 {
			return true
		}
		timer := time.NewTimer(max(left, 0))
		if !backed {
			timer.Stop() // until it is written again
		}
		select {
		case <-timer.C:
		case <-l.listening:
			timer.Stop()
		case <-l.lost.Done():
			timer.Stop()
			return false
		case <-l.alive.Done():
			timer.Stop()
			return false
		}
	}
}

// refresh renews the lease if it is due.
func (l *lease) refresh(ctx context.Context) error {
	free, err := l.own(ctx)
	if err != nil {
		return err
	}
	defer free()
	l.mu.Lock()
	due := l.backed && l.left(renewAfter) <= 0
	l.mu.Unlock()
	if !due {
		return nil
	}
	return l.write(ctx, l.content)
}
