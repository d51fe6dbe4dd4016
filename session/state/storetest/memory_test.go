package storetest_test

import (
	"context"
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
	flaw flaw
	ttl  time.Duration // of leases; 0 means locks

	mu      sync.Mutex // of everything
	rows    map[string]*row
	numbers int64 // the last renewal or fencing number
	pids    int
	busy    bool // a flaw
}

// row is the entry of a memory for one upload. The zero row is the entry of an upload
// that is not saved and not locked.
type row struct {
	data    []byte
	holder  *lease    // nil if the upload is not locked
	expires time.Time // of the lease, by the clock of the place
	renewal int64
	kept    *state.Upload // a flaw
}

func newMemory(f flaw, ttl time.Duration) *memory {
	return &memory{flaw: f, ttl: ttl, rows: make(map[string]*row)}
}

// row returns the entry of an upload.
func (m *memory) row(id string) *row {
	if m.rows[id] == nil {
		m.rows[id] = new(row)
	}
	return m.rows[id]
}

// place returns m as a Place for the suite.
func (m *memory) place() storetest.Place {
	without := []storetest.Feature{storetest.Quarantine}
	if m.ttl == 0 {
		without = append(without, storetest.Leases)
	}
	open := func() storetest.Process { return m.open(0) }
	return storetest.Place{Open: open, OpenAhead: m.open, Put: m.put, TTL: m.ttl, Without: without}
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
	s := &store{memory: m, pid: m.pids, ahead: ahead, running: make(chan struct{})}
	close(s.running)
	p := storetest.Process{Store: s, Kill: s.kill, Pause: s.pause}
	if m.ttl > 0 {
		p.Store = &leaser{s}
	}
	return p
}

// store is a Store with locks. A lock is a lease that does not expire.
type store struct {
	*memory
	pid     int
	ahead   time.Duration // of the clock of the place
	running chan struct{} // closed if the process runs, nil if it is dead
}

// op is one operation of a store. A flaw changes it, or its result.
type op struct {
	name   string
	s      *store
	ctx    context.Context
	id     string
	lease  *lease
	upload *state.Upload // to save, or the result of Load
	err    error         // if it is set, the operation has no effect

	sent  time.Time       // when the process sent the operation
	now   time.Time       // when the place received it, by the clock that decides
	force bool            // the lease need not be held
	held  context.Context // of Acquire

	inUse   *state.HeldError // the error of acquire
	ids     []string
	locked  bool
	request context.Context
	end     context.CancelFunc
}

func (o *op) row() *row { return o.s.row(o.id) }

// do makes an operation when the process reaches the place.
func (s *store) do(ctx context.Context, o *op, effect func(*op)) error {
	o.ctx, o.sent = ctx, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	running := s.running
	s.unlocked(func() {
		select {
		case <-running:
		case <-ctx.Done():
		}
	})
	if ctx.Err() != nil {
		o.err = ctx.Err()
	}
	s.run(o, effect)
	return o.err
}

// run makes an operation with the flaw of the place.
func (s *store) run(o *op, effect func(*op)) {
	o.s, o.now = s, time.Now()
	next := func() {
		if o.err == nil {
			effect(o)
		}
	}
	if f := s.flaw; f.on == "every" || slices.Contains(strings.Split(f.on, " "), o.name) {
		f.change(o, next)
	} else {
		next()
	}
}

// unlocked calls f while other goroutines can use the place.
func (s *store) unlocked(f func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	f()
}

func (s *store) sleep() {
	s.unlocked(func() { time.Sleep(time.Millisecond) }) // in virtual time
}

// kill ends the process, and its locks.
func (s *store) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	s.run(&op{name: "kill"}, func(*op) {
		for _, r := range s.rows {
			if s.ttl == 0 && r.heldBy(s) {
				r.holder = nil
			}
		}
	})
}

func (r *row) heldBy(s *store) bool { return r.holder != nil && r.holder.s == s }

func (s *store) pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paused := make(chan struct{})
	s.running = paused
	return func() { close(paused) }
}

func (s *store) Load(ctx context.Context, id string) (*state.Upload, error) {
	o := &op{name: "load", id: id}
	err := s.do(ctx, o, (*op).load)
	return o.upload, err
}

func (o *op) load() {
	data := o.row().data
	if data == nil {
		o.err = fmt.Errorf("%w: %s", state.ErrNotFound, o.id)
	} else if o.upload, o.err = state.Decode(data); o.err == nil && o.upload.ID != o.id {
		o.err = state.ErrCorrupt
	}
}

func (s *store) Save(ctx context.Context, t *state.Upload) error {
	return s.do(ctx, &op{name: "save", id: t.ID, upload: t}, (*op).save)
}

func (o *op) save() {
	var data []byte
	if data, o.err = state.Encode(o.upload); o.err == nil {
		o.row().data = data
	}
}

// saveHalf saves the first half of what save saves.
func (o *op) saveHalf() {
	data, _ := state.Encode(o.upload)
	o.row().data = data[:len(data)/2]
}

func (s *store) List(ctx context.Context) ([]string, error) {
	o := &op{name: "list"}
	err := s.do(ctx, o, func(*op) {
		for _, id := range slices.Sorted(maps.Keys(s.rows)) {
			if s.row(id).data != nil {
				o.ids = append(o.ids, id)
			}
		}
	})
	return o.ids, err
}

func (s *store) Delete(ctx context.Context, id string) error {
	return s.do(ctx, &op{name: "delete", id: id}, (*op).delete)
}

func (o *op) delete() { o.row().data = nil }

func (s *store) Lock(ctx context.Context, id string) (unlock func(), err error) {
	l, err := s.acquire(ctx, id, context.Background())
	if err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Release(ctx, nil)
	}, nil
}

func (s *store) Locked(ctx context.Context, id string) (bool, error) {
	o := &op{name: "locked", id: id}
	err := s.do(ctx, o, func(*op) { o.locked = o.row().left(o) > 0 })
	return o.locked, err
}

// left returns how long an upload stays locked, or 0.
func (r *row) left(o *op) time.Duration {
	switch {
	case r.holder == nil:
		return 0
	case o.s.ttl == 0:
		return 1
	}
	return max(0, r.expires.Sub(o.now))
}

// acquire returns a lease that is renewed until held is done.
func (s *store) acquire(ctx context.Context, id string, held context.Context) (*lease, error) {
	o := &op{name: "acquire", id: id, held: held}
	err := s.do(ctx, o, (*op).acquire)
	return o.lease, err
}

func (o *op) acquire() {
	r := o.row()
	left := r.left(o)
	switch {
	case !state.ValidID(o.id):
		o.err = state.ErrNotFound
	case left > 0:
		h := r.holder
		o.inUse = &state.HeldError{Host: "memory", PID: h.s.pid, Since: h.since, Renewal: r.renewal, Left: left, TTL: o.s.ttl}
		o.err = o.inUse
	default:
		o.lease = o.newLease()
		r.holder = o.lease
		o.renewed()
		go o.lease.keep(o.held)
	}
}

// leaser is a Store with leases.
type leaser struct{ *store }

func (s *leaser) Acquire(ctx context.Context, id string) (state.Lease, error) {
	l, err := s.acquire(ctx, id, ctx)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// own returns the lease that this process believes to hold, or nil.
func (s *leaser) own(id string) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.row(id); r.heldBy(s.store) {
		return r.holder
	}
	return nil
}

func (s *leaser) Save(ctx context.Context, t *state.Upload) error {
	if l := s.own(t.ID); l != nil {
		return l.Save(ctx, t)
	}
	return s.do(ctx, &op{name: "save-unleased", id: t.ID, upload: t, err: state.ErrInUse}, (*op).save)
}

func (s *leaser) Delete(ctx context.Context, id string) error {
	if l := s.own(id); l != nil {
		return l.Delete(ctx)
	}
	return s.do(ctx, &op{name: "delete-unleased", id: id, err: state.ErrInUse}, (*op).delete)
}

type lease struct {
	s     *store
	id    string
	fence int64
	since time.Time
	until time.Time // no request begins after it

	lost    context.Context // the result of Context
	lose    context.CancelCauseFunc
	running context.Context // done if it is not renewed any longer
	stop    context.CancelFunc
}

// newLease returns a lease that the place does not know.
func (o *op) newLease() *lease {
	o.s.numbers++
	l := &lease{s: o.s, id: o.id, fence: o.s.numbers, since: time.Now()}
	l.lost, l.lose = context.WithCancelCause(context.Background())
	l.running, l.stop = context.WithCancel(context.Background())
	return l
}

// renewed records that an operation has renewed the lease.
func (o *op) renewed() {
	l, sent := o.lease, o.sent
	o.s.run(&op{name: "renewed", id: o.id, lease: l}, func(o *op) {
		o.s.numbers++
		o.row().renewal, o.row().expires = o.s.numbers, o.now.Add(o.s.ttl)
		l.until = sent.Add(o.s.ttl * 7 / 8)
	})
}

// do makes an operation if the lease is held.
func (l *lease) do(ctx context.Context, o *op, effect func(*op)) error {
	o.id, o.lease = l.id, l
	return l.s.do(ctx, o, func(o *op) {
		switch {
		case o.force:
		case l.lost.Err() != nil:
			o.err = context.Cause(l.lost)
		case o.row().holder != l:
			o.err = fmt.Errorf("%w: the lease was acquired", state.ErrInUse)
			o.s.run(&op{name: "lose", lease: l}, func(*op) { l.lose(o.err) })
		}
		if o.err == nil {
			effect(o)
		}
	})
}

func (l *lease) renew(ctx context.Context) error {
	return l.do(ctx, &op{name: "renew"}, func(o *op) {
		o.row().holder = l
		o.renewed()
	})
}

// keep renews the lease until it is lost or released, or ctx is done.
func (l *lease) keep(ctx context.Context) {
	if l.s.ttl == 0 {
		return
	}
	defer context.AfterFunc(ctx, l.stop)()
	for l.lost.Err() == nil {
		select {
		case <-time.After(l.s.ttl / 4):
		case <-l.running.Done():
			return
		}
		limited, cancel := context.WithTimeout(l.running, l.s.ttl/4)
		_ = l.renew(limited)
		cancel()
	}
}

func (l *lease) Context() context.Context    { return l.lost }
func (l *lease) Fence() int64                { return l.fence }
func (l *lease) SaveInterval() time.Duration { return l.s.ttl / 2 }

func (l *lease) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	o := &op{name: "begin", ctx: ctx, id: l.id, lease: l}
	l.s.run(o, (*op).begin)
	return o.request, o.end, o.err
}

func (o *op) begin() {
	l := o.lease
	for o.err = context.Cause(l.lost); o.err == nil && time.Until(l.until) <= 0; {
		o.s.unlocked(func() { o.err = l.renew(o.ctx) })
	}
	if o.err != nil {
		return
	}
	o.request, o.end = context.WithCancel(o.ctx)
	l.expires(o.end)
}

// expires calls end when the lease expires.
func (l *lease) expires(end func()) {
	left := time.Until(l.until)
	if left <= 0 {
		end()
		return
	}
	time.AfterFunc(left, func() {
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		l.expires(end)
	})
}

func (l *lease) Load(ctx context.Context) (*state.Upload, error) { return l.s.Load(ctx, l.id) }

func (l *lease) Save(ctx context.Context, t *state.Upload) error {
	return l.do(ctx, &op{name: "lease-save", upload: t}, func(o *op) {
		if t.ID != l.id {
			o.err = session.ErrInvalid
			return
		}
		o.renewed()
		o.save()
	})
}

func (l *lease) Delete(ctx context.Context) error {
	return l.do(ctx, &op{name: "lease-delete"}, (*op).delete)
}

func (l *lease) Release(ctx context.Context, last *state.Upload) error {
	l.stop()
	return l.do(ctx, &op{name: "release", upload: last}, func(o *op) {
		if o.upload != nil {
			o.save()
		}
		o.row().holder = nil
	})
}
