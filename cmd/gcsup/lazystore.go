package main

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"gcsup/session"
)

// lazyStore opens the saved uploads when they are first needed, so that an upload
// that saves nothing needs no state directory.
type lazyStore struct {
	open    func() (*session.Dir, error)
	missing func() bool // reports whether the directory does not exist

	once sync.Once
	dir  *session.Dir // nil before it is opened
	err  error
}

var (
	_ session.Store      = (*lazyStore)(nil)
	_ session.Quarantine = (*lazyStore)(nil)
)

func (s *lazyStore) opened() (*session.Dir, error) {
	s.once.Do(func() { s.dir, s.err = s.open() })
	return s.dir, s.err
}

// close closes the store if it was opened.
func (s *lazyStore) close() {
	s.once.Do(func() { s.err = fs.ErrClosed })
	if s.dir != nil {
		_ = s.dir.Close()
	}
}

// Load does not create the directory: without one there is no saved upload.
func (s *lazyStore) Load(ctx context.Context, id string) (*session.Token, error) {
	if s.missing() {
		return nil, fmt.Errorf("%w: %s", session.ErrNoToken, id)
	}
	d, err := s.opened()
	if err != nil {
		return nil, err
	}
	return d.Load(ctx, id)
}

func (s *lazyStore) Save(ctx context.Context, t *session.Token) error {
	d, err := s.opened()
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
	d, err := s.opened()
	if err != nil {
		return nil, err
	}
	return d.List(ctx)
}

func (s *lazyStore) Delete(ctx context.Context, id string) error {
	d, err := s.opened()
	if err != nil {
		return err
	}
	return d.Delete(ctx, id)
}

func (s *lazyStore) SetAside(ctx context.Context, id string) error {
	d, err := s.opened()
	if err != nil {
		return err
	}
	return d.SetAside(ctx, id)
}

func (s *lazyStore) Lock(ctx context.Context, id string) (unlock func(), err error) {
	d, err := s.opened()
	if err != nil {
		return nil, err
	}
	return d.Lock(ctx, id)
}
