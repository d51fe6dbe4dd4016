package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/session/state"
)

// patience bounds one call. A Store that waits for a lock exceeds it.
const patience = 30 * time.Second

// subject is the place under test, and what its processes must see there.
type subject struct {
	testing.TB
	place     Place
	processes map[string]*process
	uploads   map[string]*upload
	skewed    bool   // the clocks of the processes differ
	at        string // the step that runs, for messages

	mu   sync.Mutex
	ends []func()
}

// process is a process of the place.
type process struct {
	Process
	name   string
	absent bool // it is dead or paused
	leases map[string]*held
	resume func()
}

// upload is what the contract requires of one upload after the steps so far.
type upload struct {
	id      string
	saved   *state.Token // nil if there is none
	damage  error        // the error of Load; nil if the upload is not damaged
	holder  *process     // nil if no process has the lock or lease
	unsure  bool         // the lease may have ended with Delete
	request context.Context
	unlock  func()
	past    []func()         // earlier results of Lock
	fence   int64            // of the last lease
	seen    *state.HeldError // of the holder; nil if it was not seen
	last    *state.HeldError // the latest one of the holder
	earlier *state.HeldError // of an earlier holder
}

// newSubject returns the subject of one check, with two processes.
func newSubject(t testing.TB, place Place) *subject {
	s := &subject{TB: t, place: place, processes: make(map[string]*process), uploads: make(map[string]*upload)}
	t.Cleanup(func() {
		// Concurrently: those of a dead process may block.
		var all sync.WaitGroup
		defer all.Wait()
		for _, end := range s.ends {
			all.Go(end)
		}
	})
	s.upload("none")
	s.start("a", place.Open())
	s.start("b", place.Open())
	return s
}

// start adds a process, or replaces one of that name.
func (s *subject) start(name string, p Process) *process {
	s.Helper()
	s.features(p)
	s.processes[name] = &process{Process: p, name: name, leases: make(map[string]*held)}
	return s.processes[name]
}

func (s *subject) upload(id string) *upload {
	if s.uploads[id] == nil {
		s.uploads[id] = &upload{id: id}
	}
	return s.uploads[id]
}

// atEnd calls f when the check has ended, even if its process is dead. f frees what
// is in the memory of this process.
func (s *subject) atEnd(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, f)
}

// Errorf names the step.
func (s *subject) Errorf(format string, args ...any) {
	s.Helper()
	s.TB.Errorf("%s%s", s.at, fmt.Sprintf(format, args...))
}

// Fatalf names the step.
func (s *subject) Fatalf(format string, args ...any) {
	s.Helper()
	s.TB.Fatalf("%s%s", s.at, fmt.Sprintf(format, args...))
}

// brief returns a context for one call, which ends after d.
func (s *subject) brief(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	s.Cleanup(cancel)
	return ctx
}

// meanings are the errors that have a meaning in the contract.
var meanings = []error{state.ErrNoToken, state.ErrCorruptToken, state.ErrTokenVersion, state.ErrInUse}

// errOther is the cause of the contexts of ended: the error of another upload.
var errOther = fmt.Errorf("another upload: %w", errors.Join(meanings...))

// ended returns a context that is done.
func ended() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errOther)
	return ctx
}

// means fails the test unless err wraps want, and no other error that has a meaning. A
// nil want stands for none of them.
func (s *subject) means(err, want error, format string, args ...any) {
	s.Helper()
	for _, kind := range meanings {
		if errors.Is(err, kind) != (kind == want) {
			s.Errorf("%s: %v, want only the meaning %v", fmt.Sprintf(format, args...), err, want)
			break
		}
	}
	if err != nil && strings.Contains(err.Error(), uploadID) {
		s.Errorf("the error has the secret of the session: %v", err)
	}
}

// observe checks what a process sees of an upload.
func (s *subject) observe(p *process, u *upload) {
	s.Helper()
	if p.absent {
		return
	}
	s.loads(u, func(ctx context.Context) (*state.Token, error) { return p.Store.Load(ctx, u.id) })
	if l := p.leases[u.id]; u.holder == p && l != nil {
		s.loads(u, l.Load)
	}
	s.lists(p)
	if checker, ok := p.Store.(state.LockChecker); ok && !u.unsure && (u.holder == nil || !u.holder.absent) {
		if got, err := checker.Locked(s.brief(patience), u.id); err != nil || got != (u.holder != nil) {
			s.Fatalf("Locked of %s in process %s returned %v, %v; want %v", u.id, p.name, got, err, u.holder != nil)
		}
	}
}

// observeAll checks what all processes see of all uploads.
func (s *subject) observeAll() {
	s.Helper()
	for _, p := range s.processes {
		s.observeFrom(p)
	}
}

// observeFrom checks what one process sees of all uploads.
func (s *subject) observeFrom(p *process) {
	s.Helper()
	for _, u := range s.uploads {
		s.observe(p, u)
	}
}

// loads fails the test unless load, of a Store or a Lease, returns what is saved. It
// returns the Token.
func (s *subject) loads(u *upload, load func(context.Context) (*state.Token, error)) *state.Token {
	s.Helper()
	got, err := load(s.brief(patience))
	want := u.damage
	if want == nil && u.saved == nil {
		want = state.ErrNoToken
	}
	s.means(err, want, "Load of %s", u.id)
	if want == nil && (err != nil || !s.same(got, u.saved)) {
		s.Fatalf("Load of %s returned %s, %v; want %s", u.id, describe(got), err, describe(u.saved))
	}
	return got
}

// loadsOneOf fails the test unless one of the Tokens is saved, and returns it. A nil Token
// stands for ErrNoToken.
func (s *subject) loadsOneOf(p *process, id string, want ...*state.Token) *state.Token {
	s.Helper()
	got, err := p.Store.Load(s.brief(patience), id)
	if errors.Is(err, state.ErrNoToken) {
		got, err = nil, nil
	}
	if err != nil || !slices.ContainsFunc(want, func(w *state.Token) bool { return s.same(got, w) }) {
		s.Errorf("Load of %s returned %s, %v; want one of %d others", id, describe(got), err, len(want))
	}
	return got
}

// lists fails the test unless List returns the saved uploads.
func (s *subject) lists(p *process) {
	s.Helper()
	var want []string
	for id, u := range s.uploads {
		if u.saved != nil || u.damage != nil {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	if got, err := p.Store.List(s.brief(patience)); err != nil || !slices.Equal(got, want) {
		s.Errorf("List in process %s returned %q, %v; want %q", p.name, got, err, want)
	}
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

// describe returns a Token without its secret.
func describe(t *state.Token) string {
	if t == nil {
		return "nothing"
	}
	return fmt.Sprintf("%.1500s", fmt.Sprintf("%+v", *t))
}

// heldError checks that err describes the holder of u: it does not change while the lock
// is held, and a later holder has a later Since. A Store that does not know the holder
// has zero fields.
func (s *subject) heldError(u *upload, err error, acquire bool) {
	s.Helper()
	s.means(err, state.ErrInUse, "the error of an upload that is in use")
	e, ok := errors.AsType[*state.HeldError](err)
	if !ok {
		s.Fatalf("the error of an upload that is in use is a %T, want a *state.HeldError", err)
	}
	if ttl := s.place.TTL; acquire && ttl > 0 && (e.Left <= 0 || e.Left > 2*ttl || e.TTL != ttl) {
		s.Errorf("HeldError has Left %v and TTL %v, with a TTL of %v", e.Left, e.TTL, s.place.TTL)
	}
	if e.PID < 0 || e.Holder() == "" {
		s.Errorf("HeldError has the PID %d and the holder %q", e.PID, e.Holder())
	}
	if seen := u.seen; seen != nil {
		if e.Host != seen.Host || e.PID != seen.PID || e.Message != seen.Message || !e.Since.Equal(seen.Since) {
			s.Errorf("the HeldError of one holder changed from %+v to %+v", *seen, *e)
		}
		u.last = e
		return
	}
	u.seen, u.last = e, e
	if earlier := u.earlier; earlier != nil && !s.skewed && (e.Since.Before(earlier.Since) || e.Since.IsZero() != earlier.Since.IsZero()) {
		s.Errorf("HeldError.Since is %v, and that of an earlier holder %v", e.Since, earlier.Since)
	}
}

// held is a lease.
type held struct {
	state.Lease
	released bool
}

// hold releases a lease at the end of the check, unless that was done.
func (s *subject) hold(l state.Lease) *held {
	h := &held{Lease: l}
	s.atEnd(func() {
		if !h.released {
			_ = h.Lease.Release(ended(), nil)
		}
	})
	return h
}

// tryBegin returns the error of Begin under a lease.
func (s *subject) tryBegin(l *held, d time.Duration) error {
	_, end, err := l.Begin(s.brief(d))
	if err == nil {
		end()
	}
	return err
}

// limit bounds the time after the death of a holder in which its lease must become
// free.
func (s *subject) limit() time.Duration { return 2*s.place.TTL + 2*time.Second }

// yield lets time pass in a bubble. There, time stands still in a loop that does not
// wait.
func (s *subject) yield() { time.Sleep(500 * time.Microsecond) }

// pause waits for a part of a TTL.
func (s *subject) pause(parts time.Duration) { time.Sleep(s.place.TTL * parts / 16) }

// together calls each writer some times, in a goroutine of its own, and each reader until
// the writers have ended.
func (s *subject) together(writers []func(), readers ...func()) {
	var writing, reading sync.WaitGroup
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	for _, write := range writers {
		writing.Go(func() {
			for range 8 {
				write()
			}
		})
	}
	for _, read := range readers {
		reading.Go(func() {
			for ; ctx.Err() == nil; s.yield() {
				read()
			}
		})
	}
	writing.Wait()
	stop()
	reading.Wait()
}

// isDone waits until ctx is done, for at most d.
func isDone(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() != nil
}
