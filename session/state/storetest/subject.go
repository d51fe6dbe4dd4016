package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/session/state"
)

// patience bounds one call. A Store that waits for a lock exceeds it.
const patience = 30 * time.Second

// subject is the place under test.
type subject struct {
	testing.TB
	place Place

	mu   sync.Mutex
	ends []func()
}

// newSubject returns the subject of one check.
func newSubject(t testing.TB, place Place) *subject {
	s := &subject{TB: t, place: place}
	t.Cleanup(func() {
		// Concurrently: those of a dead process may block.
		var all sync.WaitGroup
		defer all.Wait()
		for _, end := range s.ends {
			all.Go(end)
		}
	})
	return s
}

// atEnd calls f when the check has ended, even if its process is dead. f frees what
// is in the memory of this process.
func (s *subject) atEnd(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, f)
}

// start opens the place as a new process.
func (s *subject) start() Process {
	s.Helper()
	return s.started(s.place.Open())
}

// startAhead opens the place as a process whose clock is ahead.
func (s *subject) startAhead(ahead time.Duration) Process {
	s.Helper()
	return s.started(s.place.OpenAhead(ahead))
}

func (s *subject) started(p Process) Process {
	s.Helper()
	s.features(p)
	return p
}

// brief returns a context for one call, which ends after d.
func (s *subject) brief(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	s.Cleanup(cancel)
	return ctx
}

// ended returns a context that is done.
func ended() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errOther)
	return ctx
}

// errOther is the cause of the contexts of ended: the error of another upload.
var errOther = fmt.Errorf("another upload: %w", errors.Join(state.ErrNoToken, state.ErrCorruptToken, state.ErrTokenVersion, state.ErrInUse))

// interrupted fails the test if err, of a call whose context is that of ended, wraps an
// error that has a meaning in the contract.
func (s *subject) interrupted(err error, call string) {
	s.Helper()
	for _, kind := range []error{state.ErrNoToken, state.ErrCorruptToken, state.ErrTokenVersion, state.ErrInUse} {
		if errors.Is(err, kind) {
			s.Errorf("%s with a context that is done: %v, which wraps %q", call, err, kind)
		}
	}
	s.secret(err)
}

// inUse fails the test unless err wraps ErrInUse.
func (s *subject) inUse(err error, format string, args ...any) {
	s.Helper()
	if !errors.Is(err, state.ErrInUse) {
		s.Errorf("%s: %v, want state.ErrInUse", fmt.Sprintf(format, args...), err)
	}
	s.secret(err)
}

// secret fails the test if err has the secret of a session.
func (s *subject) secret(err error) {
	s.Helper()
	if err != nil && strings.Contains(err.Error(), uploadID) {
		s.Errorf("the error has the secret of the session: %v", err)
	}
}

// lock locks an upload. The test need not call unlock.
func (s *subject) lock(p Process, id string) (unlock func()) {
	s.Helper()
	unlock, err := p.Store.Lock(s.brief(patience), id)
	if err != nil {
		s.Fatalf("Lock of %s: %v", id, err)
	}
	s.atEnd(unlock)
	return unlock
}

// locked fails the test unless Lock reports at once that the upload is in use, with a
// HeldError, which it returns.
func (s *subject) locked(p Process, id string) *state.HeldError {
	s.Helper()
	unlock, err := p.Store.Lock(s.brief(patience), id)
	if err == nil {
		unlock()
	}
	s.inUse(err, "Lock of %s, which is locked", id)
	e, ok := errors.AsType[*state.HeldError](err)
	if !ok {
		s.Fatalf("Lock of %s, which is locked: %T, want a *state.HeldError", id, err)
	}
	return e
}

// sameHolder fails the test unless both errors name the same holder, which has held the
// lock or lease without a break.
func (s *subject) sameHolder(a, b *state.HeldError) {
	s.Helper()
	if a.Host != b.Host || a.PID != b.PID || a.Message != b.Message || !a.Since.Equal(b.Since) {
		s.Errorf("the HeldError of one holder changed from %+v to %+v", *a, *b)
	}
}

// save saves a Token.
func (s *subject) save(p Process, t *state.Token) {
	s.Helper()
	if err := p.Store.Save(s.brief(patience), t); err != nil {
		s.Fatalf("Save of %s: %v", t.ID, err)
	}
}

// remove deletes a saved upload.
func (s *subject) remove(p Process, id string) {
	s.Helper()
	if err := p.Store.Delete(s.brief(patience), id); err != nil {
		s.Fatalf("Delete of %s: %v", id, err)
	}
}

// loader is a Store, or a Lease, whose Load needs no ID.
type loader func(ctx context.Context) (*state.Token, error)

func from(p Process, id string) loader {
	return func(ctx context.Context) (*state.Token, error) { return p.Store.Load(ctx, id) }
}

// saved fails the test unless Load returns one of want. A nil Token stands for
// ErrNoToken. It returns what was loaded.
func (s *subject) saved(load loader, want ...*state.Token) *state.Token {
	s.Helper()
	got, err := load(s.brief(patience))
	if errors.Is(err, state.ErrNoToken) {
		got, err = nil, nil
	}
	if err != nil {
		s.Fatalf("Load: %v", err)
	}
	for _, w := range want {
		if s.same(got, w) {
			return got
		}
	}
	var names []string
	for _, w := range want {
		names = append(names, describe(w))
	}
	s.Fatalf("Load returned %s, want %s", describe(got), strings.Join(names, " or "))
	return nil
}

// same reports whether two Tokens are equal, including the secret.
func (s *subject) same(a, b *state.Token) bool {
	s.Helper()
	return a == nil && b == nil || a != nil && b != nil && bytes.Equal(s.encode(a), s.encode(b))
}

func (s *subject) encode(t *state.Token) []byte {
	s.Helper()
	data, err := state.Encode(t)
	if err != nil {
		s.Fatalf("encode a Token: %v", err)
	}
	return data
}

const describeLimit = 1500

// describe returns a Token without its secret.
func describe(t *state.Token) string {
	if t == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%+v", *t)
	if len(text) > describeLimit {
		text = text[:describeLimit] + "…"
	}
	return text
}

// list fails the test unless List returns the IDs.
func (s *subject) list(p Process, want ...string) {
	s.Helper()
	got, err := p.Store.List(s.brief(patience))
	if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		s.Errorf("List returned %q, %v; want %q", got, err, want)
	}
}

// put stores bytes instead of a saved upload.
func (s *subject) put(id string, data []byte) {
	s.Helper()
	if err := s.place.Put(id, data); err != nil {
		s.Fatalf("Put of %s: %v", id, err)
	}
}

// held is a lease.
type held struct {
	state.Lease
	s        *subject
	released bool
}

func (s *subject) hold(l state.Lease) *held {
	h := &held{Lease: l, s: s}
	s.atEnd(func() {
		if !h.released {
			_ = h.Lease.Release(ended(), nil)
		}
	})
	return h
}

// acquire acquires a lease.
func (s *subject) acquire(p Process, id string) *held {
	s.Helper()
	l, err := state.Acquire(s.brief(patience), p.Store, id)
	if err != nil {
		s.Fatalf("Acquire of %s: %v", id, err)
	}
	return s.hold(l)
}

// refused fails the test unless Acquire returns a HeldError, which it returns.
func (s *subject) refused(p Process, id string) *state.HeldError {
	s.Helper()
	l, err := state.Acquire(s.brief(patience), p.Store, id)
	if err == nil {
		s.hold(l)
		s.Fatalf("Acquire of %s succeeded, but another process holds the lease", id)
	}
	return s.heldError(err)
}

func (s *subject) heldError(err error) *state.HeldError {
	s.Helper()
	s.inUse(err, "Acquire of a lease that is held")
	e, ok := errors.AsType[*state.HeldError](err)
	if !ok {
		s.Fatalf("Acquire of a lease that is held: %T, want a *state.HeldError", err)
	}
	if e.Left <= 0 || e.Left > 2*s.place.TTL || e.TTL != s.place.TTL {
		s.Errorf("HeldError has Left %v and TTL %v, with a TTL of %v", e.Left, e.TTL, s.place.TTL)
	}
	return e
}

// release releases a lease.
func (h *held) release(last *state.Token) {
	h.s.Helper()
	h.released = true
	if err := h.Release(h.s.brief(patience), last); err != nil {
		h.s.Fatalf("Release: %v", err)
	}
}

// save saves a Token under the lease.
func (h *held) save(t *state.Token) {
	h.s.Helper()
	if err := h.Save(h.s.brief(patience), t); err != nil {
		h.s.Fatalf("Save under a lease: %v", err)
	}
}

// begin fails the test unless a request may begin. It returns its context.
func (h *held) begin() context.Context {
	h.s.Helper()
	request, end, err := h.Begin(h.s.Context())
	if err != nil {
		h.s.Fatalf("Begin: %v", err)
	}
	h.s.Cleanup(end)
	return request
}

// mayBegin reports whether a request may begin.
func (h *held) mayBegin(d time.Duration) bool {
	_, end, err := h.Begin(h.s.brief(d))
	if err == nil {
		end()
	}
	return err == nil
}

// limit bounds the time after the death of a holder in which its lease must become
// free.
func (s *subject) limit() time.Duration { return 2*s.place.TTL + 2*time.Second }

// yield lets time pass in a bubble. There, time stands still in a loop that does not
// wait.
func (s *subject) yield() { time.Sleep(500 * time.Microsecond) }

// pause waits for a part of a TTL.
func (s *subject) pause(parts time.Duration) { time.Sleep(s.place.TTL * parts / 16) }

// takeOver acquires the lock or lease of a process that is dead or paused. A lock
// must be free at once, and a lease when it has expired.
func (s *subject) takeOver(p Process, id string) *held {
	s.Helper()
	for began := time.Now(); ; s.pause(1) {
		l, err := state.Acquire(s.brief(patience), p.Store, id)
		if err == nil {
			return s.hold(l)
		}
		if s.place.TTL == 0 {
			s.Fatalf("Acquire of %s, whose holder is dead: %v", id, err)
		}
		s.heldError(err)
		if d := time.Since(began); d > s.limit() {
			s.Fatalf("the lease of %s has not expired after %v, with a TTL of %v", id, d, s.place.TTL)
		}
	}
}
