package bucketstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"gcsup/session"
	"gcsup/session/state"
)

var errConflicts = fmt.Errorf("%w: another request replaced the object each time", session.ErrRetriesExhausted)

// maxConflicts is how often a write is tried. The service refuses it after another
// write: one of another process, or one of this lease whose reply was lost.
const maxConflicts = 16

// leaseObject is the object of a lease and its saved upload, as the holder of the
// lease sees it.
//
// The precondition of every write is that the object has the generation of the previous
// write. Once another process has acquired the lease, writes therefore fail and never
// replace what it saved.
//
// If the reply to a write is lost, reconcile finds out whether the write succeeded.
// If it did, the object has the unique name of this lease, and records the generation
// that the write replaced. A duplicate of an older write, which arrives late,
// replaced another generation.
type leaseObject struct {
	store    *Store
	id       string
	name     string // of the lease; unique
	validity *validity
	fence    atomic.Int64 // generation of the write that acquired the lease

	// writing holds a value while the object is written, see own. The owner may use the
	// fields below.
	writing    chan struct{}
	after      string    // name of the previous lease if it was released, or ""
	since      time.Time // when the lease was acquired, by the service's clock
	generation int64     // of the object; 0 if it does not exist
	content    []byte    // of the object; empty if the upload is not saved
}

// own waits until no other write of the lease is under way. The caller must call free.
func (o *leaseObject) own(ctx context.Context) (free func(), err error) {
	if ctx.Err() != nil {
		return nil, o.store.interrupted(ctx, nil)
	}
	select {
	case o.writing <- struct{}{}:
		return func() { <-o.writing }, nil
	case <-ctx.Done():
		return nil, o.store.interrupted(ctx, nil)
	}
}

// acquire makes the first write. It fails if another process holds the lease.
func (o *leaseObject) acquire(ctx context.Context) error {
	for range maxConflicts {
		r, began, err := o.store.insert(ctx, o.id, o.generation, o.metadata(), o.content)
		switch {
		case err != nil:
			return err
		case r.Object != nil:
			o.written(r.Object, o.content, began)
			return nil
		case r.Status != 412:
			return o.store.refusal(r)
		}
		if err := o.challenge(ctx); err != nil {
			return err
		}
	}
	return errConflicts
}

// challenge returns a *state.HeldError if another process holds the lease. Otherwise it
// prepares the next write to replace the present object.
func (o *leaseObject) challenge(ctx context.Context) error {
	for range maxConflicts {
		e, err := o.store.look(ctx, o.id)
		if err != nil {
			return err
		}
		if e.lease != o.name {
			left, err := o.store.left(ctx, o.id, e)
			if err != nil {
				return err
			}
			if left > 0 {
				return e.heldError(left)
			}
		}
		o.generation, o.content, o.after = e.generation, nil, e.released
		if e.generation == 0 {
			return nil
		}
		o.content, err = o.store.read(ctx, o.id, e.generation)
		if errors.Is(err, state.ErrNotFound) {
			continue // another process replaced it
		}
		return err
	}
	return errConflicts
}

// metadata returns the metadata of the object while the lease is held.
func (o *leaseObject) metadata() map[string]string {
	opts := &o.store.opts
	m := map[string]string{leaseKey: o.name, pidKey: strconv.Itoa(os.Getpid()), ttlKey: strconv.FormatInt(opts.TTL.Milliseconds(), 10)}
	if host, err := os.Hostname(); err == nil {
		m[hostKey] = host
	}
	if self := o.store.self.String(); self != "" {
		m[processKey] = self
	}
	if opts.Holder != "" {
		m[holderKey] = opts.Holder
	}
	if !o.since.IsZero() {
		m[sinceKey] = o.since.Format(time.RFC3339Nano)
	}
	if o.after != "" {
		m[releasedKey] = o.after
	}
	return m
}

// written records a successful write and when it was sent. The caller must own the object.
func (o *leaseObject) written(now *session.Object, content []byte, sent moment) {
	o.generation, o.content = now.Generation, content
	if first := o.validity.renew(sent); first {
		o.fence.Store(now.Generation)
		o.since = now.Updated
	}
}

// write replaces the object, which renews the lease. The caller must own the object.
func (o *leaseObject) write(ctx context.Context, content []byte) error {
	return o.replace(ctx, o.metadata(), content)
}

// replace replaces the object. The caller must own it.
func (o *leaseObject) replace(ctx context.Context, metadata map[string]string, content []byte) error {
	defer o.validity.write()()
	for range maxConflicts {
		if err := context.Cause(o.validity.lost); err != nil {
			return err
		}
		r, began, err := o.store.insert(ctx, o.id, o.generation, metadata, content)
		switch {
		case err != nil:
			return err
		case r.Object != nil:
			o.written(r.Object, content, began)
			return nil
		case r.Status != 412:
			return o.store.refusal(r)
		}
		if released, err := o.reconcile(ctx); released || err != nil {
			return err
		}
	}
	return errConflicts
}

// reconcile finds out why a write was refused. The error is nil if the reason was an
// earlier write of this lease, whose reply was lost. The caller must then write
// again, unless released is true: that write was the one of Release. The caller must
// own the object.
func (o *leaseObject) reconcile(ctx context.Context) (released bool, err error) {
	e, err := o.store.look(ctx, o.id)
	if err != nil {
		return false, err
	}
	switch {
	case e.released == o.name: // even if another process has acquired it since
		return true, nil
	case e.lease == o.name && e.replaced == o.generation, e.generation == 0 && !o.validity.exists():
		o.generation = e.generation
		return false, nil
	case e.generation == o.generation:
		return false, fmt.Errorf("%w: the service refused to replace generation %d of the object, which is the current one", session.ErrProtocol, e.generation)
	}
	return false, o.taken(e)
}

// taken records that the lease is lost, as e shows, and returns the error.
func (o *leaseObject) taken(e entry) error {
	var err error
	switch {
	case e.generation == 0:
		err = fmt.Errorf("%w: the lease expired, and the object was deleted", state.ErrInUse)
	case e.lease == "":
		err = fmt.Errorf("%w: the lease expired, and another process acquired it", state.ErrInUse)
	default:
		err = fmt.Errorf("the lease expired, and another process acquired it: %w", e.heldError(0))
	}
	o.validity.stolen(err)
	return err
}

// remove deletes the object. The caller must own it.
func (o *leaseObject) remove(ctx context.Context) error {
	o.validity.unback()
	o.since = time.Time{}
	for range maxConflicts {
		if o.generation == 0 {
			o.content = nil
			return nil
		}
		r, err := o.store.remove(ctx, o.id, o.generation)
		switch {
		case err != nil:
			return err
		case r.Status == 412:
			if _, err := o.reconcile(ctx); err != nil {
				return err
			}
		case r.Status == 404, r.Status >= 200 && r.Status < 300:
			o.generation = 0
		default:
			return o.store.refusal(r)
		}
	}
	return errConflicts
}
