package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/storetest"
)

// memory is a place in memory. A flaw makes its stores violate the contract.
type memory struct {
	flaw string
	ttl  time.Duration // of leases; 0 means locks

	mu    sync.Mutex
	rows  map[string]*row
	fence int64
	pids  int

	deletions int
}

// row is the entry of a memory for one upload. The zero row is the entry of an upload
// that is not saved and not locked.
type row struct {
	data    []byte
	kept    *state.Upload // a flaw
	holder  any           // the lock, or the lease
	pid     int           // the process of the holder
	since   time.Time     // when it got the lock or lease
	expires time.Time     // of the lease, by the clock of the place
	renewal int64
}

func newMemory(flaw string, ttl time.Duration) *memory {
	return &memory{flaw: flaw, ttl: ttl, rows: make(map[string]*row)}
}

// row returns the entry of an upload. The caller holds m.mu.
func (m *memory) row(id string) *row {
	if m.rows[id] == nil {
		m.rows[id] = new(row)
	}
	return m.rows[id]
}

// place returns m as a Place for the suite.
func (m *memory) place() storetest.Place {
	p := storetest.Place{
		Open:    func() storetest.Process { return m.open(0) },
		Put:     m.put,
		TTL:     m.ttl,
		Without: []storetest.Feature{storetest.Quarantine},
	}
	if m.ttl > 0 {
		p.OpenAhead = m.open
	} else {
		p.Without = append(p.Without, storetest.Leases)
	}
	return p
}

func (m *memory) put(id string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	*m.row(id) = row{data: data}
	return nil
}

func (m *memory) open(ahead time.Duration) storetest.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pids++
	s := &store{memory: m, pid: m.pids, ahead: ahead, dead: make(chan struct{})}
	p := storetest.Process{Store: s, Kill: s.kill, Pause: s.pause}
	if m.ttl > 0 {
		p.Store = &leaser{s}
	}
	return p
}

// store is a Store with locks.
type store struct {
	*memory
	pid   int
	ahead time.Duration // of the clock of the place
	dead  chan struct{}

	gate   sync.Mutex
	paused chan struct{} // nil if the process runs, else closed when it continues

	saving sync.Mutex
	loaded map[string]*state.Upload // a flaw
}

// kill ends the process.
func (s *store) kill() {
	close(s.dead)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.rows {
		switch {
		case r.pid != s.pid:
		case s.flaw == "a save is lost in a crash":
			delete(s.rows, id)
		case s.ttl == 0 && s.flaw != "a lock survives its process":
			r.holder, r.pid = nil, 0
		}
	}
}

func (s *store) pause() (resume func()) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.paused = make(chan struct{})
	return func() {
		s.gate.Lock()
		defer s.gate.Unlock()
		close(s.paused)
		s.paused = nil
	}
}

// reach waits until the process reaches the place, and locks it.
func (s *store) reach(ctx context.Context) error {
	s.gate.Lock()
	paused := s.paused
	s.gate.Unlock()
	if paused != nil {
		select {
		case <-paused:
		case <-ctx.Done():
		}
	}
	select {
	case <-s.dead:
		<-ctx.Done()
	default:
	}
	switch {
	case ctx.Err() == nil:
		s.mu.Lock()
		return nil
	case s.flaw == "the cause of a context is returned":
		return context.Cause(ctx)
	}
	return ctx.Err()
}

// yield lets other goroutines use the place.
func (s *store) yield() {
	s.mu.Unlock()
	time.Sleep(time.Millisecond) // in virtual time
	s.mu.Lock()
}

func (s *store) Load(ctx context.Context, id string) (*state.Upload, error) {
	if err := s.reach(ctx); err != nil {
		if s.flaw == "no upload if canceled" {
			err = fmt.Errorf("%w: %w", state.ErrNotFound, err)
		}
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.row(id)
	switch {
	case r.holder != nil && s.flaw == "load needs the lock" && r.pid != s.pid:
		return nil, state.ErrInUse
	case r.holder == nil && s.flaw == "load locks" && r.data != nil:
		r.holder, r.pid = s, s.pid
	case r.kept != nil:
		return r.kept, nil
	case r.data == nil && s.flaw == "nil of nothing":
		return nil, nil
	case r.data == nil && s.flaw == "another error of nothing":
		return nil, errors.New("no row")
	case !state.ValidID(id) && s.flaw == "another error of an invalid ID":
		return nil, errors.New("invalid")
	case s.loaded[id] != nil:
		return s.loaded[id], nil
	}
	return s.decode(id, r)
}

// decode returns the saved upload of a row.
func (s *store) decode(id string, r *row) (*state.Upload, error) {
	if r.data == nil {
		return nil, fmt.Errorf("%w: %s", state.ErrNotFound, id)
	}
	t, err := state.Decode(r.data)
	if err == nil && t.ID != id && s.flaw != "the ID is not compared" {
		err = state.ErrCorrupt
	}
	switch {
	case err != nil && s.flaw == "the error has the data":
		return nil, fmt.Errorf("%w: %s", err, r.data)
	case errors.Is(err, state.ErrCorrupt) && s.flaw == "damaged is no upload":
		return nil, state.ErrNotFound
	case errors.Is(err, state.ErrCorrupt) && s.flaw == "load deletes a damaged upload":
		delete(s.rows, id)
	case errors.Is(err, state.ErrVersion) && s.flaw == "newer is damaged":
		return nil, state.ErrCorrupt
	case errors.Is(err, state.ErrVersion) && s.flaw == "load deletes a newer upload":
		delete(s.rows, id)
	case err == nil && s.flaw == "a saved upload is loaded once":
		if s.loaded == nil {
			s.loaded = make(map[string]*state.Upload)
		}
		s.loaded[id] = t
	}
	return t, err
}

// encode returns the bytes of a saved upload.
func (s *store) encode(t *state.Upload) ([]byte, error) {
	c := *t
	switch s.flaw {
	case "the path is text":
		c.SourcePath = strings.ToValidUTF8(c.SourcePath, "?")
	case "the move is lost":
		c.MovedTo, c.MovedFrom = "", ""
	case "the compression is lost":
		if c.Gzip != nil {
			c.Gzip = &state.GzipState{}
		}
	case "times have seconds":
		c.Created = c.Created.Truncate(time.Second)
	}
	return state.Encode(&c)
}

func (s *store) Save(ctx context.Context, t *state.Upload) error {
	if s.flaw == "only one save at a time" {
		if !s.saving.TryLock() {
			return errors.New("busy")
		}
		defer s.saving.Unlock()
		time.Sleep(time.Millisecond)
	}
	data, err := s.encode(t)
	if err == nil {
		if err = s.reach(ctx); err != nil && s.flaw == "a canceled save is cut" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.set(t.ID, data[:len(data)/2])
			return err
		}
	}
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	old := s.row(t.ID).data
	switch {
	case s.flaw == "save does not replace" && old != nil:
		return nil
	case s.flaw == "save replaces all":
		clear(s.rows)
	case s.flaw == "a longer saved upload stays" && len(old) > len(data):
		data = slices.Concat(data, old[len(data):])
	case s.flaw == "save is not atomic":
		s.set(t.ID, data[:len(data)/2])
		s.yield()
	case s.flaw == "save deletes first":
		s.set(t.ID, nil)
		s.yield()
	case s.flaw == "save changes the saved upload":
		t.Restarts++
	case s.flaw == "save keeps the pointer":
		s.set(t.ID, data)
		s.row(t.ID).kept = t
		return nil
	case s.flaw == "save unlocks":
		*s.row(t.ID) = row{data: data}
		return nil
	case s.flaw == "save returns before it is durable":
		go s.later(t.ID, data)
		return nil
	case s.flaw == "a deletion breaks a save":
		before := s.deletions
		s.yield()
		if s.deletions > before {
			return errors.New("no such file")
		}
	}
	s.set(t.ID, data)
	return nil
}

// later makes a delayed save.
func (s *store) later(id string, data []byte) {
	time.Sleep(time.Millisecond)
	select {
	case <-s.dead:
		return
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(id, data)
}

// set sets the data of an upload. The caller holds s.mu.
func (s *store) set(id string, data []byte) {
	r := s.row(id)
	r.data, r.kept = data, nil
}

func (s *store) List(ctx context.Context) ([]string, error) {
	if err := s.reach(ctx); err != nil {
		if s.flaw == "nothing is listed if canceled" {
			err = nil
		}
		return nil, err
	}
	defer s.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(s.rows)) {
		if s.row(id).data != nil || s.flaw == "locks are listed" && s.row(id).holder != nil {
			ids = append(ids, id)
		}
	}
	switch {
	case s.flaw == "the list has the order of a locale":
		slices.SortStableFunc(ids, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	case s.flaw == "the list is one page" && len(ids) > 5:
		ids = ids[:5]
	}
	return ids, nil
}

func (s *store) Delete(ctx context.Context, id string) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	switch {
	case s.flaw == "delete of nothing fails" && s.row(id).data == nil:
		return state.ErrNotFound
	case s.flaw == "delete does nothing":
		return nil
	case s.flaw == "delete deletes all":
		clear(s.rows)
	case s.flaw == "delete unlocks":
		delete(s.rows, id)
	case s.flaw == "a deletion breaks a save":
		defer s.yield()
	case s.flaw == "a save breaks a deletion" && s.row(id).data == nil:
		s.yield()
		if s.row(id).data != nil {
			return errors.New("directory not empty")
		}
	}
	s.set(id, nil)
	s.deletions++
	return nil
}

func (s *store) Lock(ctx context.Context, id string) (unlock func(), err error) {
	if !state.ValidID(id) && s.flaw != "any ID can be locked" {
		return nil, state.ErrNotFound
	}
	if s.flaw == "a canceled lock stays" && ctx.Err() != nil {
		s.grip(id, &id)
	}
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for s.row(id).holder != nil {
		switch {
		case s.flaw == "locks do nothing":
			return func() {}, nil
		case s.flaw == "a process can lock twice" && s.row(id).pid == s.pid:
			return func() {}, nil
		case s.flaw == "another error of a lock":
			return nil, errors.New("locked")
		case s.flaw == "lock waits":
			s.mu.Unlock()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			s.mu.Lock()
			if ctx.Err() == nil {
				continue
			}
			return nil, ctx.Err()
		}
		held := s.heldBy(s.row(id))
		switch s.flaw {
		case "no HeldError of a lock":
			return nil, state.ErrInUse
		case "the HeldError is of the caller":
			held.PID = s.pid
		case "a later holder has an earlier Since":
			held.Since = time.Unix(0, -held.Since.UnixNano())
		}
		return nil, held
	}
	if s.flaw == "two can lock" {
		s.yield()
	}
	lock := new(int)
	s.grip(id, lock)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r := s.row(id)
		if r.holder == lock || s.flaw == "unlock unlocks any lock" {
			r.holder, r.pid = nil, 0
		}
		if s.flaw == "unlock deletes" {
			delete(s.rows, id)
		}
	}, nil
}

// grip records the holder of an upload.
func (s *store) grip(id string, holder any) {
	r := s.row(id)
	if r.holder != holder {
		r.since = time.Now()
	}
	r.holder, r.pid = holder, s.pid
}

// heldBy returns the error for a row with a holder.
func (s *store) heldBy(r *row) *state.HeldError {
	return &state.HeldError{Host: "memory", PID: r.pid, Since: r.since}
}

func (s *store) Locked(ctx context.Context, id string) (bool, error) {
	if err := s.reach(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	r := s.row(id)
	switch s.flaw {
	case "never locked":
		return false, nil
	case "only others lock":
		return r.holder != nil && r.pid != s.pid, nil
	case "the check locks":
		s.grip(id, s)
		s.yield()
		if r = s.row(id); r.holder == s {
			s.grip(id, nil)
		}
		return r.holder != s, nil
	}
	return r.holder != nil && (s.ttl == 0 || time.Now().Before(r.expires)), nil
}

// leaser is a Store with leases.
type leaser struct{ *store }

func (s *leaser) Acquire(ctx context.Context, id string) (state.Lease, error) {
	return s.acquire(ctx, id, ctx)
}

// acquire returns a lease that is renewed until held is done.
func (s *leaser) acquire(ctx context.Context, id string, held context.Context) (state.Lease, error) {
	if !state.ValidID(id) {
		return nil, state.ErrNotFound
	}
	now := time.Now()
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.row(id)
	clock := time.Now() // of the place
	if s.flaw == "the challenger's clock decides" {
		clock = clock.Add(s.ahead)
	}
	left := r.expires.Sub(clock)
	switch s.flaw {
	case "a lease never runs out":
		left = max(left, 1)
	case "a lease runs out early":
		left -= s.ttl / 2
	}
	if r.holder != nil && left > 0 {
		renewal := r.renewal
		switch s.flaw {
		case "no HeldError":
			return nil, state.ErrInUse
		case "nothing is left":
			left = 0
		case "the renewal does not show":
			renewal = 1
		case "every look is a renewal":
			s.fence++
			renewal = s.fence
		}
		err := s.heldBy(r)
		err.Renewal, err.Left, err.TTL = renewal, left, s.ttl
		switch s.flaw {
		case "the holder is that of the renewal":
			err.Since = err.Since.Add(time.Duration(renewal))
		case "the TTL is what is left":
			err.TTL = left
		}
		return nil, err
	}
	if s.flaw == "two can acquire" {
		s.yield()
	}
	s.fence++
	l := &lease{s: s, id: id, fence: s.fence, stopped: make(chan struct{})}
	switch s.flaw {
	case "no fencing numbers":
		l.fence = 0
	case "fencing numbers of a process":
		l.fence = int64(s.pid)
	case "fencing numbers are deleted":
		if l.fence = r.renewal + 1; r.data == nil {
			l.fence = 1
		}
	}
	l.lost, l.lose = context.WithCancelCause(context.Background())
	s.grip(id, l)
	l.renewed(now)
	go l.keep(held)
	return l, nil
}

func (s *leaser) Lock(ctx context.Context, id string) (unlock func(), err error) {
	l, err := s.acquire(ctx, id, context.Background())
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Release(ctx, nil)
	}), nil
}

// own returns the lease that this process believes to hold, or nil.
func (s *leaser) own(id string) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.row(id).holder.(*lease); ok && l.s.store == s.store {
		return l
	}
	return nil
}

func (s *leaser) Save(ctx context.Context, t *state.Upload) error {
	if s.flaw == "save needs no lease" {
		return s.store.Save(ctx, t)
	}
	if l := s.own(t.ID); l != nil {
		return l.Save(ctx, t)
	}
	return state.ErrInUse
}

func (s *leaser) Delete(ctx context.Context, id string) error {
	if s.flaw == "delete needs no lease" {
		return s.store.Delete(ctx, id)
	}
	if l := s.own(id); l != nil {
		return l.Delete(ctx)
	}
	return state.ErrInUse
}

// allowed is a behavior that is not a flaw: the lease is part of the saved upload.
const allowed = "delete ends the lease"

type lease struct {
	s       *leaser
	id      string
	fence   int64
	lost    context.Context
	lose    context.CancelCauseFunc
	stopped chan struct{}
	stop    sync.Once
	busy    sync.Mutex // a flaw

	mu    sync.Mutex
	until time.Time // no request begins after it
}

// renewed records a renewal that was sent at a time. The caller holds s.mu.
func (l *lease) renewed(sent time.Time) {
	r := l.s.row(l.id)
	l.s.fence++
	r.renewal, r.expires = l.s.fence, time.Now().Add(l.s.ttl)
	if l.s.flaw == "the holder's clock decides" {
		r.expires = r.expires.Add(l.s.ahead)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = sent.Add(l.s.ttl * 7 / 8)
	if l.s.flaw == "requests may last too long" {
		l.until = sent.Add(l.s.ttl * 2)
	}
}

// own locks the place, if the lease is held there.
func (l *lease) own(ctx context.Context, check bool) error {
	if err := context.Cause(l.lost); err != nil && check {
		return err
	}
	if err := l.s.reach(ctx); err != nil {
		return err
	}
	if l.s.row(l.id).holder != l && check {
		l.s.mu.Unlock()
		err := fmt.Errorf("%w: the lease was acquired", state.ErrInUse)
		if l.s.flaw == "the loss has another cause" {
			err = errors.New("lost")
		}
		if l.s.flaw != "Context never ends" {
			l.lose(err)
		}
		return err
	}
	return nil
}

// renew renews the lease.
func (l *lease) renew(ctx context.Context) error {
	sent := time.Now()
	if err := l.own(ctx, l.s.flaw != "a lost lease is renewed"); err != nil {
		return err
	}
	defer l.s.mu.Unlock()
	l.s.grip(l.id, l)
	l.renewed(sent)
	return nil
}

func (l *lease) keep(ctx context.Context) {
	switch l.s.flaw {
	case "leases are not renewed":
		return
	case "a lease outlives its call":
		ctx = context.Background()
	case "a lease ends with its call":
		context.AfterFunc(ctx, func() { l.lose(state.ErrInUse) })
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.stopped:
		case <-l.s.dead:
		}
		cancel()
	}()
	ticker := time.NewTicker(l.s.ttl / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			limited, cancel := context.WithTimeout(ctx, l.s.ttl/4)
			_ = l.renew(limited)
			cancel()
		case <-ctx.Done():
			return
		}
		if l.s.flaw == "Context ends with the lease" && l.left() <= 0 {
			l.lose(state.ErrInUse)
		}
		if l.lost.Err() != nil {
			return
		}
	}
}

func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until)
}

func (l *lease) Context() context.Context    { return l.lost }
func (l *lease) Fence() int64                { return l.fence }
func (l *lease) SaveInterval() time.Duration { return l.s.ttl / 2 }

func (l *lease) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if l.s.flaw == "calls exclude each other" {
		if !l.busy.TryLock() {
			return nil, nil, errors.New("busy")
		}
		defer l.busy.Unlock()
		time.Sleep(time.Millisecond)
	}
	if l.s.flaw == "Begin does nothing" {
		return ctx, func() {}, nil
	}
	for l.left() <= 0 || l.lost.Err() != nil {
		if l.s.flaw == "a lease that ran out is lost" {
			return nil, nil, state.ErrInUse
		}
		if err := l.renew(ctx); err != nil {
			return nil, nil, err
		}
		if l.s.flaw == "a lost lease is renewed" {
			break
		}
	}
	parent := ctx
	if l.s.flaw == "a request has another context" {
		parent = context.Background()
	}
	request, cancel := context.WithCancelCause(parent)
	var timer *time.Timer
	ready := make(chan struct{})
	timer = time.AfterFunc(l.left(), func() {
		<-ready
		if left := l.left(); left > 0 {
			timer.Reset(left)
			return
		}
		cancel(errors.New("the lease expired"))
	})
	close(ready)
	if l.s.flaw == "requests do not end" {
		timer.Stop()
	}
	return request, func() {
		timer.Stop()
		cancel(nil)
	}, nil
}

func (l *lease) Load(ctx context.Context) (*state.Upload, error) { return l.s.Load(ctx, l.id) }

func (l *lease) Save(ctx context.Context, t *state.Upload) error {
	if t.ID != l.id && l.s.flaw != "a lease saves any upload" {
		return session.ErrInvalid
	}
	sent := time.Now()
	check := l.s.flaw != "save under a lost lease" && l.s.flaw != "delete ends the lease, and save does not see it"
	if err := l.own(ctx, check); err != nil {
		return err
	}
	l.renewed(sent)
	l.s.mu.Unlock()
	return l.s.store.Save(ctx, t)
}

func (l *lease) Delete(ctx context.Context) error {
	if err := l.own(ctx, l.s.flaw != "delete under a lost lease"); err != nil {
		return err
	}
	defer l.s.mu.Unlock()
	l.s.set(l.id, nil)
	if strings.HasPrefix(l.s.flaw, allowed) {
		l.s.row(l.id).expires = time.Time{}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.until = time.Time{}
	}
	return nil
}

func (l *lease) Release(ctx context.Context, last *state.Upload) error {
	l.stop.Do(func() { close(l.stopped) })
	if l.s.flaw == "Context ends with Release" {
		l.lose(state.ErrInUse)
	}
	if err := l.own(ctx, l.s.flaw != "release of a lost lease saves"); err != nil {
		if l.s.flaw == "release hides its failure" {
			return nil
		}
		return err
	}
	defer l.s.mu.Unlock()
	if l.s.flaw == "release keeps the lease" {
		return nil
	}
	r := l.s.row(l.id)
	if last != nil && l.s.flaw != "release does not save" {
		data, err := l.s.encode(last)
		if err != nil {
			return err
		}
		r.data = data
	}
	r.holder, r.pid = nil, 0
	return nil
}
