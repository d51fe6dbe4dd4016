package saved

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"gcsup/session/state"
)

// Move gives a saved upload another source, at path. withSource returns its saved upload with that
// source and the ID for it. Move returns that ID.
func Move(ctx context.Context, store state.Store, id, path string, withSource func(*state.Upload) (*state.Upload, error)) (string, error) {
	doc, from, err := Lock(ctx, store, id)
	if err != nil {
		return "", err
	}
	defer Release(ctx, from)
	moved, err := withSource(doc)
	if err != nil {
		return "", err
	}
	if moved.ID == doc.ID {
		return moved.ID, from.Save(ctx, moved)
	}
	to, err := acquireVacant(ctx, store, moved, path)
	if err != nil {
		return "", err
	}
	defer Release(ctx, to)
	old := *moved
	old.ID, old.MovedTo = doc.ID, moved.ID
	if err := from.Save(ctx, &old); err != nil {
		return "", err
	}
	return moved.ID, move(ctx, store, &old, from, to)
}

// Add saves an upload from elsewhere, whose source is at path.
func Add(ctx context.Context, store state.Store, t *state.Upload, path string) error {
	lease, err := acquireVacant(ctx, store, t, path)
	if err != nil {
		return err
	}
	defer Release(ctx, lease)
	return lease.Save(ctx, t)
}

// acquireVacant acquires the lease of the ID of t, whose source is path. If the store has
// a usable upload with that ID, the error wraps fs.ErrExist.
func acquireVacant(ctx context.Context, store state.Store, t *state.Upload, path string) (state.Lease, error) {
	lease, err := state.Acquire(ctx, store, t.ID)
	if err != nil {
		return nil, fmt.Errorf("upload of %s: %w", path, err)
	}
	if _, err = loadMoved(ctx, store, lease); unusable(err) {
		return lease, nil
	}
	Release(ctx, lease)
	if err == nil {
		err = fmt.Errorf("%w: upload %s of %s to %s; resume that upload, or delete it first", fs.ErrExist, t.ID, path, t.Spec.URL())
	}
	return nil, err
}

// unusable reports whether err means that there is no saved upload, or only a corrupt one.
func unusable(err error) bool {
	return errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt)
}

// Lock acquires the lease of a saved upload, and loads it. If it was moved, the
// saved upload has another ID. The caller must release the lease.
func Lock(ctx context.Context, store state.Store, id string) (*state.Upload, state.Lease, error) {
	for {
		lease, err := state.Acquire(ctx, store, id)
		if err != nil {
			return nil, nil, err
		}
		t, err := loadMoved(ctx, store, lease)
		if err == nil {
			return t, lease, nil
		}
		Release(ctx, lease)
		if t == nil || t.MovedTo == "" {
			return nil, nil, err
		}
		id = t.MovedTo
	}
}

// Follow returns the ID that a saved upload has after a move, or id.
func Follow(ctx context.Context, store state.Store, id string) (string, error) {
	if t, err := store.Load(ctx, id); err != nil || t.MovedTo == "" {
		return id, nil // a later call returns the error again
	}
	t, lease, err := Lock(ctx, store, id)
	if err != nil {
		return "", err
	}
	Release(ctx, lease)
	return t.ID, nil
}

// loadMoved loads the saved upload of a lease, and completes a move from or to its ID.
// If the upload was moved to another ID, the error wraps [state.ErrNotFound], and MovedTo of the
// saved upload is that ID.
//
// A move takes four steps, under the leases of both IDs:
//
//  1. The saved upload of the old ID gets the new path, and MovedTo.
//  2. The saved upload of the new ID is saved, with MovedFrom.
//  3. The old one is deleted.
//  4. The new one is saved without MovedFrom.
//
// Before step 2 the old saved upload is used, and afterwards the new one. A saved upload with
// MovedFrom is not used, and not deleted, before the old one is deleted. An old saved upload
// without a new one therefore always means that step 2 was not done, and never that
// the upload has finished since.
func loadMoved(ctx context.Context, store state.Store, lease state.Lease) (*state.Upload, error) {
	t, err := lease.Load(ctx)
	switch {
	case err != nil:
		return nil, err
	case t.MovedTo == "" && t.MovedFrom == "":
		return t, nil
	}
	other, err := state.Acquire(ctx, store, cmp.Or(t.MovedTo, t.MovedFrom))
	if err != nil {
		return nil, err
	}
	defer Release(ctx, other)
	if t.MovedTo == "" {
		return arrived(ctx, t, other, lease)
	}
	if err := move(ctx, store, t, lease, other); err != nil {
		return nil, err
	}
	return t, fmt.Errorf("%w: %s was moved to %s", state.ErrNotFound, t.ID, t.MovedTo)
}

// move makes the steps of a move after the first, with the leases of both IDs. old is
// the saved upload of the old ID.
func move(ctx context.Context, store state.Store, old *state.Upload, from, to state.Lease) error {
	moved, err := to.Load(ctx)
	switch {
	case unusable(err):
		copied := *old
		copied.ID, copied.MovedTo, copied.MovedFrom = old.MovedTo, "", old.ID
		if err := to.Save(ctx, &copied); err != nil {
			return err
		}
		moved = &copied
	case err != nil:
		return err
	}
	if moved.MovedFrom != old.ID {
		// The user started another upload of the file at the new path.
		if old.Parts != nil {
			if _, err := Retire(ctx, store, old); err != nil {
				return err
			}
		}
		return from.Delete(ctx)
	}
	_, err = arrived(ctx, moved, from, to)
	return err
}

// arrived makes the last two steps of a move, with the leases of both IDs. It returns
// the saved upload to use.
func arrived(ctx context.Context, moved *state.Upload, from, to state.Lease) (*state.Upload, error) {
	switch old, err := from.Load(ctx); {
	case err == nil && old.MovedTo == moved.ID:
		if err := from.Delete(ctx); err != nil {
			return nil, err
		}
	case err != nil && !unusable(err):
		return nil, err
	}
	clean := *moved
	clean.MovedFrom = ""
	return &clean, to.Save(ctx, &clean)
}

// Exists reports whether a store has an upload with that ID, which may be damaged.
// It returns false if the store cannot be read.
func Exists(ctx context.Context, store state.Store, id string) bool {
	_, err := store.Load(ctx, id)
	return err == nil || errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrVersion)
}

// Retire saves a saved upload again under an ID of its own, which it returns. What the service stores
// for it, in parts, must be removed.
func Retire(ctx context.Context, store state.Store, t *state.Upload) (id string, err error) {
	retired := cloned(t)
	retired.ID, retired.MovedTo, retired.MovedFrom, retired.Parts.Over = "removed-"+rand.Text(), "", "", true
	lease, err := state.Acquire(ctx, store, retired.ID)
	if err != nil {
		return "", err
	}
	defer Release(ctx, lease)
	return retired.ID, lease.Save(ctx, retired)
}
