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

// Times since the last write was sent, in eighths of the TTL.
const (
	saveAfter  = 4 // minimum time between saves that are not necessary
	renewAfter = 5 // the lease is renewed if nothing was saved
	validFor   = 7 // no request begins later; the last eighth allows for clocks of different speed
)

var (
	errExpired  = errors.New("the lease of the upload expired")
	errReleased = errors.New("the lease of the upload was released")
	errLate     = errors.New("the reply to the renewal took too long")

	errConflicts = fmt.Errorf("%w: another request replaced the object each time", session.ErrRetriesExhausted)
)

// maxConflicts is how often a write is tried that the service refuses because of another
// write, by another process or by this lease with a lost reply.
const maxConflicts = 16

// lease is the lease of one upload.
//
// The precondition of every write is that the object has the generation of the previous
// write. Once another process has acquired the lease, writes therefore fail and never
// replace what it saved.
//
// If the reply to a write is lost, reconcile finds out whether it succeeded: then the
// object has the unique name of this lease, and the generation that the write replaced.
// A duplicate of an older write, which arrives late, replaced another generation.
type lease struct {
	store *Store
	id    string
	name  string // unique
	after string // name of the previous lease if it was released, or ""

	lost context.Context // ends when another process acquired the lease
	lose context.CancelCauseFunc

	alive context.Context // ends with Release
	end   context.CancelFunc
	kept  chan struct{} // closed when keep returns

	// writing holds a value while the object is written, see own. The owner may use the
	// fields below.
	writing    chan struct{}
	generation int64  // of the object; 0 if it does not exist
	content    []byte // of the object; empty if the upload is not saved

	mu        sync.Mutex
	fence     int64           // generation of the write that acquired the lease
	backed    bool            // the object was written, and no request to delete it was sent since
	renewed   moment          // when the last successful write was sent; valid if backed is set
	saved     moment          // when the last save was sent, or the write that acquired the lease
	valid     context.Context // ends when the lease expires; replaced by a later renewal
	invalid   context.CancelCauseFunc
	expiry    *time.Timer
	listening chan struct{} // receives a value when the lease is renewed, for keep
}

var _ session.Lease = (*lease)(nil)

// Acquire acquires the lease of an upload, which need not be saved yet, and renews it in the
// background. If another process holds it, the error is a *[session.HeldError]. For an ID
// that is not valid it wraps [session.ErrNoToken].
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

// newLease returns a lease that is not acquired.
func newLease(s *Store, id string) *lease {
	l := &lease{
		store: s, id: id, name: rand.Text(),
		kept: make(chan struct{}), writing: make(chan struct{}, 1), listening: make(chan struct{}, 1),
	}
	l.lost, l.lose = context.WithCancelCause(context.Background())
	l.alive, l.end = context.WithCancel(context.Background())
	l.valid, l.invalid = context.WithCancelCause(context.Background())
	l.invalid(errExpired)
	return l
}

// acquire makes the first write, unless another process holds the lease.
func (l *lease) acquire(ctx context.Context) error {
	for range maxConflicts {
		r, began, err := l.store.insert(ctx, l.id, l.generation, l.metadata(), l.content)
		switch {
		case err != nil:
			return err
		case r.Object != nil:
			l.written(r.Object.Generation, l.content, began)
			return nil
		case r.Status != 412:
			return refusal(r)
		}
		if err := l.challenge(ctx); err != nil {
			return err
		}
	}
	return errConflicts
}

// challenge returns a *session.HeldError if another process holds the lease. Otherwise it
// prepares the next write to replace the present object.
func (l *lease) challenge(ctx context.Context) error {
	for range maxConflicts {
		e, err := l.store.look(ctx, l.id)
		if err != nil {
			return err
		}
		if e.left > 0 && e.lease != l.name {
			return &session.HeldError{Holder: e.holder, Renewal: e.generation, Left: e.left}
		}
		l.generation, l.content, l.after = e.generation, nil, e.released
		if e.generation == 0 {
			return nil
		}
		l.content, err = l.store.read(ctx, l.id, e.generation)
		if errors.Is(err, session.ErrNoToken) {
			continue // another process replaced it
		}
		return err
	}
	return errConflicts
}

// metadata returns the metadata of the object while the lease is held.
func (l *lease) metadata() map[string]string {
	m := l.store.leased(l.name)
	if l.after != "" {
		m[releasedKey] = l.after
	}
	return m
}

// Context returns a context that ends when the lease notices that another process acquired it.
func (l *lease) Context() context.Context { return l.lost }

// Fence returns the generation with which the lease was acquired, or acquired again after
// Delete.
func (l *lease) Fence() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fence
}

// SaveInterval returns half of the TTL, plus the time from the last save to the last renewal:
// every write delays the next save.
func (l *lease) SaveInterval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.part(saveAfter) + l.renewed.since(l.saved)
}

// part returns n eighths of the TTL.
func (l *lease) part(n time.Duration) time.Duration { return l.store.opts.TTL * n / 8 }

// Begin returns a context for one request. It renews the lease if it has expired.
func (l *lease) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	valid, err := l.current()
	if err == nil && valid == nil {
		valid, err = l.renew(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	request, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(valid, func() { cancel(context.Cause(valid)) })
	return request, func() {
		stop()
		cancel(nil)
	}, nil
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

// current returns the context that ends when the lease expires, or nil if it has expired. The
// error is that of ended.
func (l *lease) current() (context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ended(); err != nil || l.left(validFor) <= 0 {
		return nil, err
	}
	return l.valid, nil
}

// left returns the time until n eighths of the TTL after the last renewal, or 0 if there is no
// object. l.mu is held.
func (l *lease) left(n time.Duration) time.Duration {
	if !l.backed {
		return 0
	}
	return l.part(n) - l.store.clock().since(l.renewed)
}

// written records a successful write and when it was sent. The caller must own the object.
func (l *lease) written(generation int64, content []byte, sent moment) {
	l.generation, l.content = generation, content
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended() != nil {
		return
	}
	if !l.backed {
		l.fence, l.saved = generation, sent
	}
	l.backed, l.renewed = true, sent
	left := l.left(validFor)
	if left <= 0 {
		return // the reply took too long
	}
	if l.valid.Err() != nil {
		l.valid, l.invalid = context.WithCancelCause(context.Background())
	}
	if l.expiry == nil {
		l.expiry = time.AfterFunc(l.nap(left), l.expire)
	} else {
		l.expiry.Reset(l.nap(left))
	}
	select {
	case l.listening <- struct{}{}:
	default:
	}
}

// expire ends the requests under way if the lease has expired.
func (l *lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.left(validFor); left > 0 && l.ended() == nil {
		l.expiry.Reset(l.nap(left))
		return
	}
	l.invalid(errExpired)
}

// nap returns how long to wait before reading the clocks again, if something is due after left.
// It is short, because timers do not run while the machine is suspended.
func (l *lease) nap(left time.Duration) time.Duration { return min(left, l.part(1)) }

// unback records that the object may be deleted. Another process can then acquire the lease.
func (l *lease) unback() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backed = false
	l.invalid(errExpired)
}

// taken records that the lease is lost, as e shows, and returns the error.
func (l *lease) taken(e entry) error {
	why := "another process acquired it"
	switch {
	case e.generation == 0:
		why = "the object was deleted"
	case e.holder != "":
		why = e.holder + " acquired it"
	}
	err := fmt.Errorf("%w: the lease expired, and %s", session.ErrInUse, why)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive.Err() == nil {
		l.lose(err)
		l.invalid(err)
	}
	return err
}

// own waits until no other write of the lease is under way. The caller must call free.
func (l *lease) own(ctx context.Context) (free func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case l.writing <- struct{}{}:
		return func() { <-l.writing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// renew writes the object again if the lease has expired, and returns the context of current.
// It tries for at most one TTL.
func (l *lease) renew(ctx context.Context) (valid context.Context, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.store.opts.TTL, errTimeout)
	defer cancel()
	free, err := l.own(ctx)
	if err == nil {
		defer free()
		if valid, err = l.current(); valid == nil && err == nil {
			if err = l.write(ctx, l.content); err == nil {
				valid, err = l.current()
			}
		}
	}
	if valid == nil && err == nil {
		err = errLate
	}
	if err != nil && l.ended() == nil {
		err = fmt.Errorf("%w and cannot be renewed: %w", errExpired, err)
	}
	return valid, err
}

// write replaces the object, which renews the lease. The caller must own the object.
func (l *lease) write(ctx context.Context, content []byte) error {
	return l.replace(ctx, l.metadata(), content)
}

// replace replaces the object. The caller must own it.
func (l *lease) replace(ctx context.Context, metadata map[string]string, content []byte) error {
	for range maxConflicts {
		if err := context.Cause(l.lost); err != nil {
			return err
		}
		r, began, err := l.store.insert(ctx, l.id, l.generation, metadata, content)
		switch {
		case err != nil:
			return err
		case r.Object != nil:
			l.written(r.Object.Generation, content, began)
			return nil
		case r.Status != 412:
			return refusal(r)
		}
		if released, err := l.reconcile(ctx); released || err != nil {
			return err
		}
	}
	return errConflicts
}

// reconcile finds out why a write was refused. The error is nil if the reason was an earlier
// write of this lease with a lost reply: then the caller must write again, unless released
// reports that this was the write of Release. The caller must own the object.
func (l *lease) reconcile(ctx context.Context) (released bool, err error) {
	e, err := l.store.look(ctx, l.id)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	backed := l.backed
	l.mu.Unlock()
	switch {
	case e.released == l.name: // even if another process has acquired it since
		return true, nil
	case e.lease == l.name && e.replaced == l.generation, e.generation == 0 && !backed:
		l.generation = e.generation
		return false, nil
	case e.generation == l.generation:
		return false, fmt.Errorf("%w: the service refused to replace generation %d of the object, which is the current one", session.ErrProtocol, e.generation)
	}
	return false, l.taken(e)
}

// Load returns the upload as it was last saved. The error wraps [session.ErrNoToken] if it was
// not saved.
func (l *lease) Load(ctx context.Context) (*session.Token, error) {
	free, err := l.own(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	return l.store.decode(l.id, l.content)
}

// Save saves the upload and thereby renews the lease.
func (l *lease) Save(ctx context.Context, t *session.Token) error {
	if t.ID != l.id {
		return fmt.Errorf("%w: the lease is that of upload %s, not %s", session.ErrInvalid, l.id, t.ID)
	}
	content, err := l.store.encode(t)
	if err != nil {
		return err
	}
	return l.exclusive(ctx, "save", func(ctx context.Context) error {
		err := l.write(ctx, content)
		if err == nil {
			l.mu.Lock()
			l.saved = l.renewed
			l.mu.Unlock()
		}
		return err
	})
}

// Delete deletes the object of the upload. Another process can then acquire the lease. If none
// did, the next Begin or Save acquires it again, with a greater fencing number.
func (l *lease) Delete(ctx context.Context) error {
	return l.exclusive(ctx, "delete", l.remove)
}

// exclusive calls f, which writes the object, as its owner. what names f in errors.
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
	l.unback()
	for range maxConflicts {
		if l.generation == 0 {
			l.content = nil
			return nil
		}
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
	return errConflicts
}

// Release saves last, if it is not nil, and ends the lease. Further calls do nothing.
func (l *lease) Release(ctx context.Context, last *session.Token) error {
	if !l.finish() {
		return nil
	}
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
		if err = l.remove(ctx); errors.Is(err, session.ErrInUse) {
			err = nil // an earlier request, whose reply was lost, may have deleted it
		}
	} else {
		err = l.replace(ctx, map[string]string{releasedKey: l.name}, content)
	}
	if err != nil && !errors.Is(err, session.ErrInUse) {
		err = fmt.Errorf("release the lease of upload %s: %w", l.id, err)
	}
	return err
}

// finish ends the requests under way and the renewals. It returns false if an earlier call did.
func (l *lease) finish() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive.Err() != nil {
		return false
	}
	l.end()
	l.invalid(errReleased)
	if l.expiry != nil {
		l.expiry.Stop()
	}
	return true
}

// forget removes the lease from the Store.
func (l *lease) forget() {
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

// due waits until the lease must be renewed. It returns false if the lease is released or lost.
func (l *lease) due() bool {
	for {
		l.mu.Lock()
		backed, left := l.backed, l.left(renewAfter)
		l.mu.Unlock()
		if backed && left <= 0 {
			return true
		}
		timer := time.NewTimer(max(l.nap(left), 0))
		if !backed {
			timer.Stop() // wait until the object is written again
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
