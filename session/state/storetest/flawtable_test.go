package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gcsup/session"
	"gcsup/session/state"
)

// flaw is a violation of the contract.
type flaw struct {
	checks string // that must report it, separated by commas
	name   string
	on     string // the operations that it changes, separated by spaces
	change change
}

// change changes an operation. next makes it as a store without a flaw does, with the lock of
// the place.
type change func(o *op, next func())

// flaws are the flaws of stores in memory. A store with locks has a flaw, unless its check is
// for leases only.
var flaws = []flaw{
	{"round trip", "the path is text", "save", saves(func(t *state.Upload) {
		t.SourcePath = strings.ToValidUTF8(t.SourcePath, "?")
	})},
	{"round trip", "the move is lost", "save", saves(func(t *state.Upload) { t.MovedTo, t.MovedFrom = "", "" })},
	{"round trip", "the compression is lost", "save", saves(func(t *state.Upload) {
		if t.Gzip != nil {
			t.Gzip = &state.GzipState{}
		}
	})},
	{"round trip", "times have seconds", "save", saves(func(t *state.Upload) {
		t.Created = t.Created.Truncate(time.Second)
	})},

	{"replace", "save does not replace", "save", func(o *op, next func()) {
		if o.row().data == nil {
			next()
		}
	}},
	{"replace", "save replaces all", "save", before(func(o *op) { clear(o.s.rows) })},
	{"replace", "a longer saved upload stays", "save", func(o *op, next func()) {
		old := o.row().data
		if next(); len(old) > len(o.row().data) {
			o.row().data = slices.Concat(o.row().data, old[len(o.row().data):])
		}
	}},

	{"pointers", "save keeps the pointer", "save load", after(func(o *op) {
		if o.name == "save" {
			o.row().kept = o.upload
		}
		o.upload = o.row().kept
	})},
	{"pointers", "a saved upload is loaded once", "load", after(func(o *op) {
		if o.row().kept == nil {
			o.row().kept = o.upload
		}
		o.upload = o.row().kept
	})},
	{"pointers", "save changes the saved upload", "save", after(func(o *op) { o.upload.Restarts++ })},

	{"list", "the list has the order of a locale", "list", after(func(o *op) {
		slices.SortFunc(o.ids, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	})},
	{"list", "the list is one page", "list", after(func(o *op) { o.ids = o.ids[:min(len(o.ids), 5)] })},
	{"list", "locks are listed", "list", after(func(o *op) {
		for id, r := range o.s.rows {
			if r.data == nil && r.holder != nil {
				o.ids = append(o.ids, id)
			}
		}
		slices.Sort(o.ids)
	})},

	{"delete", "delete of nothing fails", "delete", before(func(o *op) {
		if o.row().data == nil {
			o.err = state.ErrNotFound
		}
	})},
	{"delete", "delete does nothing", "delete", nothing},
	{"delete", "delete deletes all", "delete", before(func(o *op) { clear(o.s.rows) })},

	{"no upload", "another error of nothing", "load", instead(state.ErrNotFound, errors.New("no row"))},
	{"no upload", "nil of nothing", "load", instead(state.ErrNotFound, nil)},

	{"invalid IDs", "any ID can be locked", "acquire", unlocked(func(o *op) bool { return !state.ValidID(o.id) })},
	{"invalid IDs", "another error of an invalid ID", "load", before(func(o *op) {
		if !state.ValidID(o.id) {
			o.err = errors.New("invalid")
		}
	})},

	{"damaged", "the ID is not compared", "load", onError(state.ErrCorrupt, func(o *op) {
		o.upload, o.err = state.Decode(o.row().data)
	})},
	{"damaged, newer version", "the error has the data", "load", func(o *op, next func()) {
		if next(); o.err != nil {
			o.err = fmt.Errorf("%w: %s", o.err, o.row().data)
		}
	}},
	{"damaged", "damaged is no upload", "load", instead(state.ErrCorrupt, state.ErrNotFound)},
	{"damaged", "load deletes a damaged upload", "load", onError(state.ErrCorrupt, (*op).delete)},
	{"newer version", "newer is damaged", "load", instead(state.ErrVersion, state.ErrCorrupt)},
	{"newer version", "load deletes a newer upload", "load", onError(state.ErrVersion, (*op).delete)},

	{"concurrent saves", "save is not atomic", "save", before(func(o *op) {
		o.saveHalf()
		o.s.sleep()
	})},
	{"concurrent saves", "save deletes first", "save", before(func(o *op) {
		o.delete()
		o.s.sleep()
	})},
	{"concurrent saves", "only one save at a time", "save", alone},
	{"concurrent saves and deletes", "a deletion breaks a save", "save delete", before(func(o *op) {
		old := o.row().data
		if o.s.sleep(); o.name == "save" && old != nil && o.row().data == nil {
			o.err = errors.New("no such file")
		}
	})},
	{"concurrent saves and deletes", "a save breaks a deletion", "delete", before(func(o *op) {
		old := o.row().data
		if o.s.sleep(); old == nil && o.row().data != nil {
			o.err = errors.New("directory not empty")
		}
	})},

	{"canceled", "no upload if canceled", "load", instead(context.Canceled, state.ErrNotFound)},
	{"canceled", "a canceled save is cut", "save", onError(context.Canceled, (*op).saveHalf)},
	{"canceled", "nothing is listed if canceled", "list", instead(context.Canceled, nil)},
	{"canceled", "a canceled lock stays", "acquire", onError(context.Canceled, func(o *op) {
		o.row().holder = o.newLease()
	})},
	{"canceled, lease", "the cause of a context is returned", "every", onError(context.Canceled, func(o *op) {
		o.err = context.Cause(o.ctx)
	})},

	{"lock", "locks do nothing", "acquire", unlocked(func(*op) bool { return true })},
	{"lock", "a process can lock twice", "acquire", unlocked(func(o *op) bool { return o.row().heldBy(o.s) })},
	{"lock", "another error of a lock", "acquire", instead(state.ErrInUse, errors.New("locked"))},
	{"lock", "lock waits", "acquire", func(o *op, next func()) {
		for next(); errors.Is(o.err, state.ErrInUse); next() {
			o.s.sleep()
			o.err = o.ctx.Err()
		}
	}},
	{"lock", "save unlocks", "save", after(func(o *op) { o.row().holder = nil })},
	{"lock", "delete unlocks", "delete", after(func(o *op) { o.row().holder = nil })},
	{"lock", "unlock deletes", "release", after((*op).delete)},
	{"lock", "no HeldError of a lock", "acquire", instead(state.ErrInUse, state.ErrInUse)},

	{"holder of a lock", "the HeldError is of the caller", "acquire", held(func(o *op) { o.inUse.PID = o.s.pid })},
	{"holder of a lock", "a later holder has an earlier Since", "acquire", held(func(o *op) {
		o.inUse.Since = time.Unix(0, -o.inUse.Since.UnixNano())
	})},
	{"unlock twice", "unlock unlocks any lock", "release", force},
	{"reads without the lock", "load needs the lock", "load", before(func(o *op) {
		if r := o.row(); r.holder != nil && !r.heldBy(o.s) {
			o.err = state.ErrInUse
		}
	})},
	{"reads without the lock", "load locks", "load", after(func(o *op) {
		if o.row().holder == nil {
			o.row().holder = o.newLease()
		}
	})},
	{"lock race", "two can lock", "acquire", late},
	{"lock check", "never locked", "locked", nothing},
	{"lock check", "only others lock", "locked", after(func(o *op) { o.locked = o.locked && !o.row().heldBy(o.s) })},
	{"lock check", "the check locks", "locked", after(func(o *op) {
		if r := o.row(); r.holder == nil {
			r.holder = o.newLease()
			o.s.sleep()
			r.holder = nil
		}
	})},
	{"crash between calls, crash between calls of a lease", "a lock survives its process", "kill", nothing},
	{"crash between calls, crash between calls of a lease, crash during calls",
		"a save is lost in a crash", "kill", before(func(o *op) {
			for _, r := range o.s.rows {
				if r.heldBy(o.s) {
					r.data = nil
				}
			}
		})},
	{"crash during calls", "save returns before it is durable", "save", func(o *op, next func()) {
		go func() {
			o.s.mu.Lock()
			defer o.s.mu.Unlock()
			if o.s.sleep(); o.s.running != nil {
				next()
			}
		}()
	}},

	{"lease", "no HeldError", "acquire", instead(state.ErrInUse, state.ErrInUse)},
	{"lease", "nothing is left", "acquire", held(func(o *op) { o.inUse.Left = 0 })},
	{"lease", "a lease saves any upload", "lease-save", onError(session.ErrInvalid, func(o *op) {
		o.id = o.upload.ID
		o.save()
	})},
	{"lease, fencing numbers", "no fencing numbers", "acquire", after(func(o *op) { o.lease.fence = 0 })},
	{"lease", "a request has another context", "begin", before(func(o *op) { o.ctx = context.Background() })},
	{"lease", "Context ends with Release", "release", after(loses)},
	{"lease race", "two can acquire", "acquire", late},
	{"lease is renewed", "leases are not renewed", "renew", before(func(o *op) { o.err = errors.New("not renewed") })},
	{"lease is renewed", "the renewal does not show", "acquire", held(func(o *op) { o.inUse.Renewal = 1 })},
	{"lease is renewed", "the holder is that of the renewal", "acquire", held(func(o *op) {
		o.inUse.Since = o.inUse.Since.Add(time.Duration(o.inUse.Renewal))
	})},
	{"lease is renewed", "the TTL is what is left", "acquire", held(func(o *op) { o.inUse.TTL = o.inUse.Left })},

	{"lease runs out and is renewed", "requests do not end", "begin", after(func(o *op) {
		o.request, o.end = context.WithCancel(o.ctx)
	})},
	{"lease runs out and is renewed, lease runs out and is acquired",
		"Begin does nothing", "begin", func(o *op, _ func()) {
			o.request, o.end = o.ctx, func() {}
		}},
	{"lease runs out and is renewed", "Context ends with the lease", "renew", func(o *op, next func()) {
		if next(); time.Until(o.lease.until) <= 0 {
			loses(o)
		}
	}},
	{"lease runs out and is renewed", "a lease that ran out is lost", "begin", before(func(o *op) {
		if time.Until(o.lease.until) <= 0 {
			o.err = state.ErrInUse
		}
	})},

	{"lease runs out and is acquired", "a lost lease is renewed", "renew", force},
	{"lease runs out and is acquired", "Context never ends", "lose", nothing},
	{"lease runs out and is acquired", "the loss has another cause", "lose", before(func(o *op) {
		o.lease.lose(errors.New("lost"))
	})},
	{"lease runs out and is acquired", "save under a lost lease", "lease-save", force},
	{"lease runs out and is acquired", "delete under a lost lease", "lease-delete", force},
	{"lease runs out and is acquired", "release of a lost lease saves", "release", force},
	{"lease runs out and is acquired, lease of a dead process",
		"requests may last too long", "renewed", after(func(o *op) {
			o.lease.until = o.lease.until.Add(o.s.ttl)
		})},
	{"lease runs out and is acquired", "a lease runs out early", "acquire", before(func(o *op) {
		o.now = o.now.Add(o.s.ttl / 2)
	})},

	{"lease of a call that was given up", "a lease outlives its call", "acquire", before(func(o *op) {
		o.held = context.Background()
	})},
	{"lease of a call that was given up", "a lease ends with its call", "acquire", after(func(o *op) {
		context.AfterFunc(o.held, func() { loses(o) })
	})},
	{"lease of a dead process", "a lease never runs out", "acquire", before(func(o *op) { o.now = time.Time{} })},
	{"lease of a dead process", "every look is a renewal", "acquire", held(func(o *op) {
		o.s.numbers++
		o.inUse.Renewal = o.s.numbers
	})},
	{"fencing numbers", "fencing numbers of a process", "acquire", after(func(o *op) { o.lease.fence = int64(o.s.pid) })},
	{"fencing numbers", "fencing numbers are deleted", "acquire", after(func(o *op) {
		if o.row().data == nil {
			o.lease.fence = 1
		}
	})},
	{"delete under a lease",
		"delete ends the lease, and save does not see it", "lease-delete lease-save", func(o *op, next func()) {
			if o.name == "lease-delete" {
				endingWithDelete.change(o, next)
			} else {
				force(o, next)
			}
		}},
	{"save without a lease", "save needs no lease", "save-unleased", before(func(o *op) { o.err = nil })},
	{"save without a lease", "delete needs no lease", "delete-unleased", before(func(o *op) { o.err = nil })},
	{"release", "release keeps the lease", "release", nothing},
	{"release", "release does not save", "release", before(func(o *op) { o.upload = nil })},
	{"release fails", "release hides its failure", "release", func(o *op, next func()) {
		next()
		o.err = nil
	}},
	{"concurrent calls of a lease", "calls exclude each other", "begin", alone},
	{"lease of a clock ahead, lease of a clock behind", "the holder's clock decides", "renewed", before(func(o *op) {
		o.now = o.now.Add(o.s.ahead)
	})},
	{"lease of a clock ahead, lease of a clock behind", "the challenger's clock decides", "acquire", before(func(o *op) {
		o.now = o.now.Add(o.s.ahead)
	})},
}

// endingWithDelete is allowed: the lease is part of the saved upload.
var endingWithDelete = flaw{on: "lease-delete", change: after(func(o *op) {
	o.row().expires, o.lease.until = time.Time{}, time.Time{}
})}

func nothing(*op, func()) {}

// before returns a change that calls f first.
func before(f func(*op)) change {
	return func(o *op, next func()) {
		f(o)
		next()
	}
}

// after returns a change that calls f if the operation succeeded.
func after(f func(*op)) change {
	return func(o *op, next func()) {
		if next(); o.err == nil {
			f(o)
		}
	}
}

// onError returns a change that calls f if the operation failed with an error of that kind.
func onError(kind error, f func(*op)) change {
	return func(o *op, next func()) {
		if next(); errors.Is(o.err, kind) {
			f(o)
		}
	}
}

// instead returns a change that returns another error.
func instead(kind, other error) change {
	return onError(kind, func(o *op) { o.upload, o.err = nil, other })
}

// saves returns a change that saves an edited upload.
func saves(edit func(*state.Upload)) change {
	return before(func(o *op) {
		edited := *o.upload
		edit(&edited)
		o.upload = &edited
	})
}

// held returns a change that calls f if the upload is in use.
func held(f func(*op)) change { return onError(state.ErrInUse, f) }

// unlocked returns a change of acquire. If it fails and the condition holds, it seems to succeed.
func unlocked(condition func(*op) bool) change {
	return func(o *op, next func()) {
		if next(); o.err != nil && condition(o) {
			o.lease, o.err = o.newLease(), nil
		}
	}
}

// force does not check that the lease is held.
func force(o *op, next func()) {
	o.force = true
	next()
}

// late makes the lock visible late.
func late(o *op, next func()) {
	if next(); o.err == nil {
		o.row().holder = nil
		o.s.sleep()
		o.row().holder = o.lease
	}
}

// alone fails if another operation is under way.
func alone(o *op, next func()) {
	if o.s.busy {
		o.err = errors.New("busy")
		return
	}
	o.s.busy = true
	o.s.sleep()
	o.s.busy = false
	next()
}

// loses ends the context of a lease.
func loses(o *op) { o.lease.lose(state.ErrInUse) }
