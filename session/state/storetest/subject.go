package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
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
	workers   []*worker
	uploads   map[string]*upload
	skewed    bool   // the clocks of the processes differ
	at        string // the step that runs, for messages
}

// process is a process of the place.
type process struct {
	Process
	name   string
	do     func(context.Context, call) (answer, error)
	worker *worker // nil if it is another process
	absent bool    // it is dead or paused
	resume func()
}

// upload is what the contract requires of one upload after the steps so far.
type upload struct {
	id      string
	saved   []byte           // the result of state.Encode; nil if there is none
	damage  error            // the error of Load; nil if the upload is not damaged
	holder  *process         // nil if no process has the lock or lease
	leased  bool             // the holder has it from Acquire
	unsure  bool             // the lease may have ended with Delete
	fence   int64            // of the last lease
	seen    *state.HeldError // of the holder; nil if it was not seen
	last    *state.HeldError // the latest one of Acquire, since the holder is present or absent
	late    bool             // a request that the holder sent before its death may renew the lease once more
	earlier *state.HeldError // of an earlier holder
}

// newSubject returns the subject of one check, with two processes.
func newSubject(t testing.TB, place Place) *subject {
	s := &subject{TB: t, place: place, processes: make(map[string]*process), uploads: make(map[string]*upload)}
	t.Cleanup(func() {
		var all sync.WaitGroup
		defer all.Wait()
		for _, w := range s.workers {
			all.Go(w.end)
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
	started := &process{Process: p, name: name, do: p.remote}
	if p.Store != nil {
		started.worker = newWorker(p.Store)
		started.do = started.worker.do
		s.workers = append(s.workers, started.worker)
	}
	s.complete(started)
	s.processes[name] = started
	return started
}

func (s *subject) upload(id string) *upload {
	if s.uploads[id] == nil {
		s.uploads[id] = &upload{id: id}
	}
	return s.uploads[id]
}

// call makes a call, and bounds its time. Begin bounds it itself.
func (s *subject) call(ctx context.Context, p *process, c call) (answer, error) {
	if c.Name != "begin" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	return p.do(ctx, c)
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

// meanings are the errors that have a meaning in the contract.
var meanings = []error{state.ErrNotFound, state.ErrCorrupt, state.ErrVersion, state.ErrInUse}

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

// observeAll checks what the processes see of all uploads.
func (s *subject) observeAll() {
	s.Helper()
	s.observe(slices.Collect(maps.Keys(s.uploads))...)
}

// observe checks what the processes see of some uploads, unless they are dead or paused.
func (s *subject) observe(ids ...string) {
	s.Helper()
	for _, p := range s.processes {
		if p.absent {
			continue
		}
		for _, id := range ids {
			s.observeOne(p, s.upload(id))
		}
		s.lists(p)
	}
}

// observeOne checks what a process sees of an upload.
func (s *subject) observeOne(p *process, u *upload) {
	s.Helper()
	s.loads(p, u, "load")
	if u.holder == p && u.leased {
		s.loads(p, u, "lease-load")
	}
	if !slices.Contains(s.place.Without, LockChecks) && !u.unsure && (u.holder == nil || !u.holder.absent) {
		if got, err := s.call(s.Context(), p, call{Name: "locked", ID: u.id}); err != nil || got.Locked != (u.holder != nil) {
			s.Fatalf("Locked of %s in process %s returned %v, %v; want %v", u.id, p.name, got.Locked, err, u.holder != nil)
		}
	}
}

// loads fails the test unless a call, of a Store or a Lease, returns what is saved.
func (s *subject) loads(p *process, u *upload, name string) {
	s.Helper()
	got, err := s.call(s.Context(), p, call{Name: name, ID: u.id})
	want := u.damage
	if want == nil && u.saved == nil {
		want = state.ErrNotFound
	}
	s.means(err, want, "Load of %s", u.id)
	if want == nil && (err != nil || !bytes.Equal(got.Upload, u.saved)) {
		s.Fatalf("Load of %s returned %s, %v; want %s", u.id, describe(got.Upload), err, describe(u.saved))
	}
}

// loadsOneOf fails the test unless one of the saved uploads is saved, and returns it. A nil saved upload
// stands for ErrNotFound.
func (s *subject) loadsOneOf(p *process, id string, want ...[]byte) []byte {
	s.Helper()
	got, err := s.call(s.Context(), p, call{Name: "load", ID: id})
	if errors.Is(err, state.ErrNotFound) {
		got.Upload, err = nil, nil
	}
	if err != nil || !slices.ContainsFunc(want, func(w []byte) bool { return bytes.Equal(got.Upload, w) }) {
		s.Errorf("Load of %s returned %s, %v; want one of %d others", id, describe(got.Upload), err, len(want))
	}
	return got.Upload
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
	if got, err := s.call(s.Context(), p, call{Name: "list"}); err != nil || !slices.Equal(got.IDs, want) {
		s.Errorf("List in process %s returned %q, %v; want %q", p.name, got.IDs, err, want)
	}
}

// version returns the saved form of a version of a saved upload, or nil for version 0.
func (s *subject) version(id string, n int) []byte {
	s.Helper()
	if n == 0 {
		return nil
	}
	return encode(s, version(id, n))
}

// encode returns the saved form of a saved upload.
func encode(t testing.TB, saved *state.Upload) []byte {
	t.Helper()
	data, err := state.Encode(saved)
	if err != nil {
		t.Fatalf("encode a saved upload: %v", err)
	}
	return data
}

// describe returns a saved upload without its secret.
func describe(data []byte) string {
	if data == nil {
		return "nothing"
	}
	t, err := state.Decode(data)
	return fmt.Sprintf("%.1500s", fmt.Sprintf("%+v %v", t, err))
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
	if u.seen == nil {
		u.seen = e
		if earlier := u.earlier; earlier != nil && !s.skewed && (e.Since.Before(earlier.Since) || e.Since.IsZero() != earlier.Since.IsZero()) {
			s.Errorf("HeldError.Since is %v, and that of an earlier holder %v", e.Since, earlier.Since)
		}
	}
	if seen := u.seen; e.Host != seen.Host || e.PID != seen.PID || e.Message != seen.Message || !e.Since.Equal(seen.Since) {
		s.Errorf("the HeldError of one holder changed from %+v to %+v", *seen, *e)
	}
	if last := u.last; last != nil && u.holder != nil && u.holder.absent && (e.Renewal != last.Renewal || e.Left > last.Left) && !u.late {
		s.Errorf("the HeldError of a holder that is dead or paused changed from %+v to %+v", *last, *e)
	}
	if acquire {
		if u.last != nil && e.Renewal != u.last.Renewal {
			u.late = false
		}
		u.last = e
	}
}

// limit bounds the time after the death of a holder in which its lease must become
// free.
func (s *subject) limit() time.Duration { return 2*s.place.TTL + 2*time.Second }

// yield lets time pass in a bubble. There, time stands still in a loop that does not
// wait.
func (s *subject) yield() { time.Sleep(500 * time.Microsecond) }

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
