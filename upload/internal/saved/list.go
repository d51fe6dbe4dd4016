package saved

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gcsup/session/state"
)

// Entry is a saved upload, as it was last saved.
type Entry struct {
	ID     string
	Upload *state.Upload // nil with an error
	InUse  bool          // a process works on the upload; false unless the store is a state.LockChecker
	Err    error
}

// loadedAhead is how many saved uploads are loaded at a time.
const loadedAhead = 8

// List iterates over the saved uploads, sorted by ID. If the store cannot be listed or ctx
// is done, the last one has an error and no ID.
func List(ctx context.Context, store state.Store) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		ids, err := store.List(ctx)
		if err != nil {
			yield(Entry{Err: fmt.Errorf("saved uploads: %w", err)})
			return
		}
		loading, cancel := context.WithCancel(ctx)
		var pending []chan Entry
		defer func() {
			cancel()
			for _, loaded := range pending {
				<-loaded // the store is used until then
			}
		}()
		for len(ids)+len(pending) > 0 {
			if ctx.Err() != nil {
				yield(Entry{Err: fmt.Errorf("saved uploads: %w: %v", ctx.Err(), context.Cause(ctx))})
				return
			}
			for len(ids) > 0 && len(pending) < loadedAhead {
				id, loaded := ids[0], make(chan Entry, 1)
				ids, pending = ids[1:], append(pending, loaded)
				go func() { loaded <- Load(loading, store, id) }()
			}
			next := <-pending[0]
			pending = pending[1:]
			if errors.Is(next.Err, state.ErrNotFound) {
				continue // it was finished after List
			}
			if !yield(next) {
				return
			}
		}
	}
}

// Load loads the saved upload with an ID. If it was moved, the error is
// [state.ErrNotFound], and the upload has another ID.
func Load(ctx context.Context, store state.Store, id string) Entry {
	e := Entry{ID: id}
	e.Upload, e.Err = store.Load(ctx, id)
	if e.Err == nil && e.Upload.MovedTo != "" && Exists(ctx, store, e.Upload.MovedTo) {
		e.Err = state.ErrNotFound
	}
	if c, ok := store.(state.LockChecker); ok && e.Err == nil {
		e.InUse, e.Err = c.Locked(ctx, id)
	}
	return e
}
