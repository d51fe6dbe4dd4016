package upload_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"syscall"

	"gcsup/session/state"
)

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// hooked is a store that calls before with the name of each method except List, and fails if it fails.
type hooked struct {
	state.Store
	before func(ctx context.Context, method string) error
}

func (h *hooked) Load(ctx context.Context, id string) (*state.Upload, error) {
	if err := h.before(ctx, "Load"); err != nil {
		return nil, err
	}
	return h.Store.Load(ctx, id)
}

func (h *hooked) Save(ctx context.Context, t *state.Upload) error {
	if err := h.before(ctx, "Save"); err != nil {
		return err
	}
	return h.Store.Save(ctx, t)
}

func (h *hooked) Delete(ctx context.Context, id string) error {
	if err := h.before(ctx, "Delete"); err != nil {
		return err
	}
	return h.Store.Delete(ctx, id)
}

func (h *hooked) Lock(ctx context.Context, id string) (func(), error) {
	if err := h.before(ctx, "Lock"); err != nil {
		return nil, err
	}
	return h.Store.Lock(ctx, id)
}

// hook returns s, which calls f before each of some methods.
func hook(s state.Store, f func(context.Context) error, methods ...string) state.Store {
	return &hooked{s, func(ctx context.Context, method string) error {
		if !slices.Contains(methods, method) {
			return nil
		}
		return f(ctx)
	}}
}

// failAfter returns a function that succeeds n times, and then fails.
func failAfter(n int64, err error) func(context.Context) error {
	var calls atomic.Int64
	return func(context.Context) error {
		if calls.Add(1) > n {
			return err
		}
		return nil
	}
}

// errFull is the error of a full disk.
var errFull = fmt.Errorf("save upload: %w", syscall.ENOSPC)
