package storetest

import (
	"context"
	"sync"

	"gcsup/session/state"
)

// worker makes the calls of one process, in that process.
type worker struct {
	store state.Store

	mu      sync.Mutex
	unlocks map[string][]func() // all results of Lock for an upload
	leases  map[string]*held    // the last lease of an upload
	ends    []func()            // release everything
}

// held is a lease.
type held struct {
	state.Lease
	leave    context.CancelFunc // ends the context of Acquire
	request  context.Context    // of the last call of Begin
	released bool
}

// call is a call of a process. Name is that of a step, "load", "lease-load", "list", "locked"
// or "features". answer is its result. Package rpc needs types that are exported or have no
// name.
type (
	call = struct {
		Name, ID string
		Upload   []byte // the result of state.Encode; nil stands for no saved upload
		Done     bool   // the context is done
	}
	answer = struct {
		Upload   []byte
		IDs      []string
		Locked   bool
		Features []Feature
	}
)

func newWorker(store state.Store) *worker {
	return &worker{store: store, unlocks: make(map[string][]func()), leases: make(map[string]*held)}
}

// do makes a call.
func (w *worker) do(ctx context.Context, c call) (a answer, err error) {
	var t *state.Upload
	if c.Upload != nil {
		if t, err = state.Decode(c.Upload); err != nil {
			return a, err
		}
	}
	if c.Done {
		ctx = ended()
	}
	lease, name := w.lease(c.ID), c.Name
	if lease != nil && (name == "save" || name == "delete") {
		name = "lease-" + name
	}
	switch name {
	case "lock":
		var unlock func()
		if unlock, err = w.store.Lock(ctx, c.ID); err == nil {
			w.change(func() {
				w.unlocks[c.ID] = append(w.unlocks[c.ID], unlock)
				w.ends = append(w.ends, unlock)
			})
		}
	case "unlock":
		w.unlock(c.ID)
	case "acquire":
		lease = new(held)
		long, leave := context.WithCancel(context.WithoutCancel(ctx)) // the lease is used after ctx has ended
		lease.leave = leave
		defer context.AfterFunc(ctx, leave)()
		if lease.Lease, err = state.Acquire(long, w.store, c.ID); err != nil {
			leave()
			return a, err
		}
		w.change(func() {
			w.leases[c.ID] = lease
			w.ends = append(w.ends, lease.end)
		})
	case "begin":
		var request context.Context
		var end func()
		if request, end, err = lease.Begin(ctx); err == nil {
			w.change(func() {
				lease.request = request
				w.ends = append(w.ends, end)
			})
		}
	case "release":
		w.change(func() { lease.released = true })
		err = lease.Release(ctx, t)
	case "save", "store-save":
		err = w.store.Save(ctx, t)
	case "lease-save":
		err = lease.Save(ctx, t)
	case "delete", "store-delete":
		err = w.store.Delete(ctx, c.ID)
	case "lease-delete":
		err = lease.Delete(ctx)
	case "set-aside":
		err = state.SetAside(ctx, w.store, c.ID)
	case "load":
		a.Upload, err = encoded(w.store.Load(ctx, c.ID))
	case "lease-load":
		a.Upload, err = encoded(lease.Load(ctx))
	case "list":
		a.IDs, err = w.store.List(ctx)
	case "locked":
		a.Locked, err = w.store.(state.LockChecker).Locked(ctx, c.ID)
	case "features":
		a.Features = features(w.store)
	default:
		panic("storetest: no such call: " + name)
	}
	return a, err
}

// encoded encodes the result of Load. A nil saved upload stays nil.
func encoded(t *state.Upload, err error) ([]byte, error) {
	if t == nil || err != nil {
		return nil, err
	}
	return state.Encode(t)
}

// features returns the optional parts that a Store has.
func features(s state.Store) (all []Feature) {
	if _, ok := s.(state.LockChecker); ok {
		all = append(all, LockChecks)
	}
	if _, ok := s.(state.Quarantine); ok {
		all = append(all, Quarantine)
	}
	if _, ok := s.(state.Leaser); ok {
		all = append(all, Leases)
	}
	return all
}

// lease returns the lease of an upload, also if it was lost; nil if the process has none.
func (w *worker) lease(id string) (l *held) {
	w.change(func() {
		if l = w.leases[id]; l != nil && l.released {
			l = nil
		}
	})
	return l
}

// unlock calls all results of Lock. Those of earlier locks must do nothing. It uses a goroutine
// that did not lock.
func (w *worker) unlock(id string) {
	var other sync.WaitGroup
	defer other.Wait()
	var unlocks []func()
	w.change(func() { unlocks = w.unlocks[id] })
	other.Go(func() {
		for _, unlock := range unlocks {
			unlock()
		}
	})
}

func (w *worker) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// end frees what is in memory, even if the process is dead. The calls of a dead process may
// block.
func (w *worker) end() {
	var all sync.WaitGroup
	defer all.Wait()
	for _, end := range w.ends {
		all.Go(end)
	}
}

// end releases a lease, unless that was done.
func (l *held) end() {
	if !l.released {
		_ = l.Release(ended(), nil)
	}
}
