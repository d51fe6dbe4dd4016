package main

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"gcsup/internal/storeretry"
	"gcsup/session/state"
)

// lazyStore opens the saved uploads when they are first needed. An upload that saves
// nothing therefore needs no state directory, and no request to a state bucket.
type lazyStore struct {
	open    func(context.Context) (openStore, error)
	missing func() bool             // reports whether nothing was ever saved there, without opening it
	shared  bool                    // the store is a state.Leaser
	retry   func() storeretry.Retry // for calls of the command itself; not used for a directory

	mu     sync.Mutex // guards the rest
	opened openStore  // nil before it is opened
	err    error      // a directory is opened again after an error: it may have been the lack of space
	closed bool
}

// openStore is an open store of saved uploads.
type openStore interface {
	state.Store
	Close() error
}

var (
	_ state.Store      = (*lazyStore)(nil)
	_ state.Quarantine = (*lazyStore)(nil)
	_ state.Leaser     = lazyLeaser{}
)

// store returns the state.Store for an Uploader.
func (s *lazyStore) store() state.Store {
	if s.shared {
		return lazyLeaser{s}
	}
	return s
}

// get opens the store, if it is not open. It returns the context for calls of it: those of
// package upload have a storeretry.Retry already.
func (s *lazyStore) get(ctx context.Context) (context.Context, openStore, error) {
	if _, ok := storeretry.Of(ctx); !ok && s.shared {
		ctx = storeretry.With(ctx, s.retry())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ctx, nil, fs.ErrClosed
	case s.opened == nil && (s.err == nil || !s.shared):
		s.opened, s.err = s.open(ctx)
	}
	return ctx, s.opened, s.err
}

// sweep deletes the leases of processes that died before they saved their uploads, and
// returns their number. A directory has none.
func (s *lazyStore) sweep(ctx context.Context, dryRun bool) (int, error) {
	ctx, opened, err := s.get(ctx)
	if bucket, ok := opened.(stateBucket); ok {
		return bucket.Sweep(ctx, dryRun)
	}
	return 0, err
}

// close closes the store if it was opened.
func (s *lazyStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.opened != nil {
		_ = s.opened.Close()
	}
}

// Load does not create the directory: without one there is no saved upload.
func (s *lazyStore) Load(ctx context.Context, id string) (*state.Upload, error) {
	if s.missing() {
		return nil, fmt.Errorf("%w: %s", state.ErrNotFound, id)
	}
	ctx, d, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return d.Load(ctx, id)
}

func (s *lazyStore) Save(ctx context.Context, t *state.Upload) error {
	ctx, d, err := s.get(ctx)
	if err != nil {
		return err
	}
	return d.Save(ctx, t)
}

// List does not create the directory either.
func (s *lazyStore) List(ctx context.Context) ([]string, error) {
	if s.missing() {
		return nil, nil
	}
	ctx, d, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return d.List(ctx)
}

func (s *lazyStore) Delete(ctx context.Context, id string) error {
	ctx, d, err := s.get(ctx)
	if err != nil {
		return err
	}
	return d.Delete(ctx, id)
}

func (s *lazyStore) SetAside(ctx context.Context, id string) error {
	ctx, d, err := s.get(ctx)
	if err != nil {
		return err
	}
	return state.SetAside(ctx, d, id)
}

func (s *lazyStore) Lock(ctx context.Context, id string) (unlock func(), err error) {
	ctx, d, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return d.Lock(ctx, id)
}

// lazyLeaser is a lazyStore whose store machines share.
type lazyLeaser struct{ *lazyStore }

// Acquire returns the lease of an upload.
func (s lazyLeaser) Acquire(ctx context.Context, id string) (state.Lease, error) {
	ctx, d, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return state.Acquire(ctx, d, id)
}
