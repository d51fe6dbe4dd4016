package bucketstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"gcsup/session"
	"gcsup/session/state"
)

// lease is the lease of one upload.
type lease struct {
	store    *Store
	id       string
	object   *leaseObject
	validity *validity
	kept     chan struct{} // closed when keep returns
}

var _ state.Lease = (*lease)(nil)

// Acquire acquires the lease of an upload, which need not be saved yet, and renews it in the
// background until Release, or until ctx is done. If another process holds it, the error is a
// *[state.HeldError]. For an ID that is not valid it wraps [state.ErrNotFound].
func (s *Store) Acquire(ctx context.Context, id string) (state.Lease, error) {
	return s.acquire(ctx, id, ctx)
}

// acquire acquires a lease, and renews it until held is done.
func (s *Store) acquire(ctx context.Context, id string, held context.Context) (state.Lease, error) {
	if !state.ValidID(id) {
		return nil, fmt.Errorf("%w: %q", state.ErrNotFound, id)
	}
	v := newValidity(s.opts.TTL, s.clock)
	o := &leaseObject{store: s, id: id, name: rand.Text(), validity: v, writing: make(chan struct{}, 1)}
	l := &lease{store: s, id: id, object: o, validity: v, kept: make(chan struct{})}
	if err := l.object.acquire(ctx); err != nil {
		v.end()
		if errors.Is(err, state.ErrInUse) {
			return nil, err
		}
		return nil, fmt.Errorf("lease of upload %s: %w", id, err)
	}
	s.mu.Lock()
	s.leases[id] = l
	s.mu.Unlock()
	go l.keep(held)
	return l, nil
}

// Context returns a context that ends when the lease notices that another process acquired it.
func (l *lease) Context() context.Context { return l.validity.lost }

// Fence returns the generation of the object when the lease was last acquired. Delete
// makes it necessary to acquire it again.
func (l *lease) Fence() int64 { return l.object.fence.Load() }

// SaveInterval returns half of the TTL, plus the time from the last save to the last renewal.
func (l *lease) SaveInterval() time.Duration { return l.validity.saveInterval() }

// Begin returns a context for one request. It renews the lease if it has expired.
func (l *lease) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	valid, err := l.validity.current()
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

// Load returns the upload as it was last saved. The error wraps [state.ErrNotFound] if it was
// not saved.
func (l *lease) Load(ctx context.Context) (*state.Upload, error) {
	free, err := l.object.own(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	return l.store.decode(l.id, l.object.content)
}

// Save saves the upload and thereby renews the lease.
func (l *lease) Save(ctx context.Context, t *state.Upload) error {
	if t.ID != l.id {
		return fmt.Errorf("%w: the lease is that of upload %s, not %s", session.ErrInvalid, l.id, t.ID)
	}
	content, err := l.store.encode(t)
	if err != nil {
		return err
	}
	return l.exclusive(ctx, "save", func(ctx context.Context) error {
		err := l.object.write(ctx, content)
		if err == nil {
			l.validity.save()
		}
		return err
	})
}

// Delete deletes the object of the upload. Another process can then acquire the lease. If none
// did, the next Begin or Save acquires it again, with a greater fencing number.
func (l *lease) Delete(ctx context.Context) error {
	return l.exclusive(ctx, "delete", l.object.remove)
}

// exclusive owns the object while it calls f, which writes it. what names f in
// errors.
func (l *lease) exclusive(ctx context.Context, what string, f func(context.Context) error) error {
	free, err := l.object.own(ctx)
	if err == nil {
		defer free()
		if err = l.validity.ended(); err == nil {
			err = f(ctx)
		}
	}
	if err != nil && !errors.Is(err, state.ErrInUse) {
		err = fmt.Errorf("%s upload %s: %w", what, l.id, err)
	}
	return err
}

// Release saves last, if it is not nil, and ends the lease. Further calls do nothing.
func (l *lease) Release(ctx context.Context, last *state.Upload) error {
	if !l.validity.finish() {
		return nil
	}
	<-l.kept
	defer l.forget()
	free, err := l.object.own(ctx)
	if err != nil {
		return fmt.Errorf("release the lease of upload %s: %w", l.id, err)
	}
	defer free()
	if err := context.Cause(l.validity.lost); err != nil {
		return err
	}
	content := l.object.content
	if last != nil {
		if content, err = l.store.encode(last); err != nil {
			return err
		}
	}
	if len(content) == 0 {
		if err = l.object.remove(ctx); errors.Is(err, state.ErrInUse) {
			err = nil // an earlier request, whose reply was lost, may have deleted it
		}
	} else {
		err = l.object.replace(ctx, map[string]string{releasedKey: l.object.name}, content)
	}
	if err != nil && !errors.Is(err, state.ErrInUse) {
		err = fmt.Errorf("release the lease of upload %s: %w", l.id, err)
	}
	return err
}

// forget removes the lease from the Store.
func (l *lease) forget() {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.leases[l.id] == l {
		delete(l.store.leases, l.id)
	}
}
