package bucketstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// This file is a model check of two clients that compete for one lease. At each step
// one of these events happens: a client takes its next step, the service executes a
// request, a client gets a reply, a reply is lost, a request that its client canceled
// still arrives, or time passes until something may expire. A client whose request
// waits while time passes is suspended. In some scenarios A may die, which B can see.
//
// A schedule is a list of these events. Each run executes the real code in virtual time. The
// runs cover all schedules up to a length. A run ends early, without the checks of its end, if the clients and the
// service have seen the same events at the same times as in an earlier run, so that schedules that differ only in the order
// of independent events are explored once.

// modelTTL is so short that every wait is one second, and a schedule has the same effect each
// time.
const modelTTL = 8 * time.Second

// scenario is the initial state and the scripts of the clients.
type scenario struct {
	name    string
	prelude []string      // steps that A takes first, without faults
	scripts [2][]string   // the steps of A and B
	setup   string        // events that happen first in each run
	clock   string        // of the clients, see modelClocks
	mortal  bool          // A may die at any time
	date    time.Duration // how far the Date of the replies is ahead of the service's clock
	depth   [2]int        // how many events follow setup: in CI, and with the race detector; otherwise one less
}

// The clocks of the clients are 30 s apart.
var modelClocks = map[string]func(client int, elapsed time.Duration) (wall, monotonic time.Duration){
	"apart": func(client int, elapsed time.Duration) (time.Duration, time.Duration) {
		return elapsed + time.Duration(client)*30*time.Second, elapsed
	},
	// The monotonic clock of a suspended machine stops.
	"suspended": func(client int, elapsed time.Duration) (time.Duration, time.Duration) {
		return elapsed - time.Duration(client)*30*time.Second, 0
	},
	// The wall clock is set back repeatedly.
	"set back": func(client int, elapsed time.Duration) (time.Duration, time.Duration) {
		return time.Duration(client)*30*time.Second - elapsed, elapsed
	},
	// Both clocks are slow.
	"slow": func(client int, elapsed time.Duration) (time.Duration, time.Duration) {
		return elapsed*9/10 + time.Duration(client)*30*time.Second, elapsed * 9 / 10
	},
}

var (
	saves    = []string{"begin", "save", "begin", "release"}
	deletes  = []string{"delete", "begin", "save", "release"}
	takes    = []string{"acquire", "begin", "save", "release"}
	takesAll = []string{"acquire", "begin", "delete", "release"}
	holds    = []string{"acquire", "save", "begin"}

	// A is suspended when it must renew its lease. B acquires the lease just after it has
	// expired.
	expired = "+7.05s +3.05s +50ms B:acquire B1> B1< B2= B3= B4= B5="

	// B sees the lease, and A is suspended when it must renew it. B tries again just after it has
	// expired.
	seen = "B:acquire B1> B1< B2= +7.05s +3.05s +50ms B:acquire B3> B3< B4= B5= B6= B7="

	// The first request of A arrives after B had the lease. A was suspended.
	duplicated = "A:acquire +20s A2> A2< A:begin +20s +20s +50ms B:acquire B1> B1< B2= B3= B4= B5= B6> B6< B:leave B7>"
)

var modelScenarios = []scenario{
	{"both acquire", nil, [2][]string{takes, takes}, "", "apart", false, 0, [2]int{8, 6}},
	{"B acquires while A works", holds, [2][]string{saves, takes}, "", "apart", false, 0, [2]int{7, 5}},
	{"B acquires while A deletes", holds, [2][]string{deletes, takesAll}, "A:delete B:acquire", "apart", false, 0, [2]int{6, 4}},
	{"B acquires while A releases", holds, [2][]string{{"release"}, takes}, "A:release B:acquire", "apart", false, 0, [2]int{6, 4}},
	{"reply late", nil, [2][]string{takes, takes}, "A:acquire A1> +7.05s B:acquire B1> B1< B2=", "apart", false, 0, [2]int{7, 5}},
	{"A suspended", holds, [2][]string{saves, takes}, expired, "apart", false, 0, [2]int{6, 4}},
	{"the machine of A suspended", holds, [2][]string{saves, takes}, expired, "suspended", false, 0, [2]int{6, 4}},
	{"wall clocks set back", holds, [2][]string{saves, takes}, expired, "set back", false, 0, [2]int{6, 4}},
	{"slow clocks", holds, [2][]string{saves, takes}, expired, "slow", false, 0, [2]int{6, 4}},
	{"late duplicate", nil, [2][]string{takes, {"acquire", "leave"}}, duplicated, "apart", false, 0, [2]int{8, 5}},
	{"Date ahead", holds, [2][]string{saves, takes}, "B:acquire B1> B1< B2=", "apart", false, 10 * time.Minute, [2]int{6, 4}},
	{"Date behind", holds, [2][]string{saves, takes}, seen, "apart", false, -10 * time.Minute, [2]int{5, 4}},
	{"A dies", holds, [2][]string{saves, takes}, "", "apart", true, 0, [2]int{6, 5}},
	{"A dies while B acquires", holds, [2][]string{saves, takes}, "A:begin A:save B:acquire B1>", "apart", true, 0, [2]int{5, 4}},
}

// TestInterleavings checks that no request begins, and nothing is saved, under a lease after
// another client has acquired it.
func TestInterleavings(t *testing.T) {
	percent := debug.SetGCPercent(400) // a run leaves almost nothing, and the collector would take a third of the time
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for _, s := range modelScenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			e := &exploration{
				scenario: s,
				clocks:   modelClocks[s.clock],
				begin:    strings.Fields(s.setup),
				seen:     make(map[uint64]int),
			}
			e.limit = len(e.begin) + testsize.Full(s.depth[0], s.depth[1]) - testsize.Full(testsize.Full(0, 1), 2)
			if testing.Short() {
				e.limit--
			}
			began := time.Now()
			synctest.Test(t, e.explore)
			t.Logf("%d runs with %d events of up to %d each, %d states, %d diverged, in %v", e.runs, e.events, e.limit, len(e.seen), e.diverged, time.Since(began).Round(time.Millisecond))
		})
	}
}

// exploration is the search through the schedules of a scenario.
type exploration struct {
	scenario
	server   *fakegcs.Server
	stores   [2]*bucketstore.Store
	links    [2]link
	saved    *state.Upload
	start    time.Time // of the run
	clocks   func(client int, elapsed time.Duration) (wall, monotonic time.Duration)
	begin    []string       // of each schedule
	limit    int            // length of a schedule
	seen     map[uint64]int // states, with how many events may follow
	todo     [][]string     // beginnings of schedules
	runs     int
	events   int
	diverged int // runs in which an event of the prefix was not possible, because timers with the same deadline may fire in any order
}

func (e *exploration) explore(t *testing.T) {
	var err error
	e.server, err = fakegcs.New(&fakegcs.Options{CreateBuckets: true, KeepRequests: -1, NoMD5: true})
	require.NoError(t, err)
	for i := range e.stores {
		transport := &e.links[i]
		transport.c = &modelClient{m: &model{t: t, server: e.server, mode: connected}}
		client := newClient(t, transport)
		opts := &bucketstore.Options{Unsealed: true, Holder: modelNames[i], TTL: modelTTL}
		e.stores[i], err = bucketstore.Open(t.Context(), client, "state", "", opts)
		require.NoError(t, err)
		bucketstore.SetClock(e.stores[i], func() (time.Time, time.Duration) {
			elapsed := time.Since(e.start)
			wall, monotonic := e.clocks(i, elapsed)
			return e.start.Add(wall), monotonic
		})
		bucketstore.SetProcess(e.stores[i], "model", i+1, "1", func(pid int) bool { return e.links[pid-1].c.died() })
		e.saved = newUpload(t, client, "a")
	}
	e.todo = [][]string{e.begin}
	for len(e.todo) > 0 && !t.Failed() {
		prefix := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		e.runs++
		e.run(t, prefix)
	}
}

var modelNames = [2]string{"A", "B"}

// link is the network of a client, for all runs.
type link struct{ c *modelClient }

func (l *link) RoundTrip(req *http.Request) (*http.Response, error) { return l.c.RoundTrip(req) }

// run executes the events of prefix, and then the first possible event each time. It adds the
// other possible events to todo.
func (e *exploration) run(t *testing.T, prefix []string) {
	m := e.newModel(t)
	defer func() {
		if t.Failed() {
			t.Logf("schedule: %s", strings.Join(m.schedule, " "))
		}
	}()
	for {
		possible := m.possible()
		m.check()
		n := len(m.schedule)
		if t.Failed() || len(possible) == 0 {
			break
		}
		if n == e.limit {
			if _, known := e.seen[m.state()]; known {
				m.kill()
				return
			}
			e.seen[m.state()] = 0
			break
		}
		next := possible[0]
		if n < len(prefix) {
			if next = prefix[n]; n >= len(e.begin) && !slices.Contains(possible, next) {
				e.diverged++
				m.kill()
				return
			}
		} else {
			left := e.limit - n
			if e.seen[m.state()] >= left {
				m.kill()
				return
			}
			e.seen[m.state()] = left
			for _, other := range possible[1:] {
				e.todo = append(e.todo, append(append([]string(nil), m.schedule...), other))
			}
		}
		e.events++
		m.do(next)
	}
	m.finish()
}

// model is one run.
type model struct {
	t        *testing.T
	server   *fakegcs.Server
	id       string
	saved    *state.Upload
	clients  [2]*modelClient
	start    time.Time
	ctx      context.Context
	cancel   context.CancelFunc
	schedule []string
	arrived  chan struct{} // a request arrived
	losses   int
	waits    int
	mortal   bool          // see scenario
	date     time.Duration // see scenario
	seen     uint64        // hash of what the service executed

	mu   sync.Mutex
	mode modelMode

	// The state of the service.
	object   modelObject
	acquired int64           // generation with which the lease was acquired last
	expires  time.Time       // of the lease
	last     string          // the name of that lease
	dead     map[string]bool // names of leases after which another was acquired
}

type modelMode int

const (
	scheduled modelMode = iota // requests wait for the schedule
	connected                  // requests are executed at once
	broken                     // requests fail
)

// modelObject is the object of the upload.
type modelObject struct {
	generation int64
	lease      string
	holder     string
	content    string
}

// modelClient is a client, with its script.
type modelClient struct {
	m      *model
	index  int
	name   string
	store  *bucketstore.Store
	script []string

	mu       sync.Mutex
	dead     time.Time // when it died; zero while it is alive
	calls    []*call
	made     int // calls
	busy     bool
	tries    int
	saves    int
	deleted  bool // Delete was called
	lease    state.Lease
	request  context.Context // of the last Begin
	end      func()
	contents map[string]bool // that it may write
	looked   int64           // the generation that it saw last
	sawAt    time.Time       // when it first saw that
	saw      uint64          // hash of what it saw
}

// call is a request of a client.
type call struct {
	number    int
	method    string
	reads     bool // it does not concern the lease's object, or only reads it
	request   *http.Request
	body      []byte
	abandoned bool
	reply     *http.Response // nil until it is executed
	done      chan *http.Response
}

func (e *exploration) newModel(t *testing.T) *model {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // the Date of replies has whole seconds
	e.start = time.Now()
	m := &model{t: t, server: e.server, start: e.start, mortal: e.mortal, date: e.date, arrived: make(chan struct{}, 1), mode: connected, dead: make(map[string]bool)}
	m.id = fmt.Sprint("run", e.runs)
	saved := *e.saved
	saved.ID = m.id
	m.saved = &saved
	m.ctx, m.cancel = context.WithCancel(context.Background())
	for i := range m.clients {
		c := &modelClient{m: m, index: i, name: modelNames[i], script: e.scripts[i], store: e.stores[i]}
		e.links[i].c, m.clients[i] = c, c
	}
	first := m.clients[0]
	first.script = append(slices.Clone(e.prelude), first.script...)
	for range e.prelude {
		first.step()
		synctest.Wait()
	}
	m.mode = scheduled
	return m
}

// possible returns the events that can happen next.
func (m *model) possible() []string {
	synctest.Wait()
	var events, faults []string
	waiting := false // a client waits for time to pass
	if a := m.clients[0]; m.mortal && !a.died() {
		faults = append(faults, a.name+"~")
	}
	for _, c := range m.clients {
		c.mu.Lock()
		active := false
		for _, x := range c.calls {
			switch {
			case x.abandoned && !x.reads && x.reply == nil:
				faults = append(faults, fmt.Sprintf("%s%d!", c.name, x.number))
			case x.abandoned:
			case x.reads:
				active = true
				events = append(events, fmt.Sprintf("%s%d=", c.name, x.number))
				if m.losses < 2 {
					faults = append(faults, fmt.Sprintf("%s%dx", c.name, x.number))
				}
			case x.reply == nil:
				active = true
				events = append(events, fmt.Sprintf("%s%d>", c.name, x.number))
			default:
				active = true
				events = append(events, fmt.Sprintf("%s%d<", c.name, x.number))
				if m.losses < 2 {
					faults = append(faults, fmt.Sprintf("%s%dx", c.name, x.number))
				}
			}
		}
		if !c.busy && len(c.script) > 0 && c.dead.IsZero() {
			events = append(events, c.name+":"+c.script[0])
		}
		waiting = waiting || c.busy && !active && c.dead.IsZero()
		c.mu.Unlock()
	}
	if m.waits < 4 {
		future := false
		if !m.expires.IsZero() {
			for _, d := range []time.Duration{-modelTTL / 8, 0, time.Second} {
				if d = time.Until(m.expires.Add(d + 50*time.Millisecond)); d > 0 && (!future || m.waits == 0) {
					faults = append(faults, "+"+d.String())
					future = true
				}
			}
		}
		if !future && waiting {
			faults = append(faults, "+2s")
		}
	}
	return append(events, faults...)
}

// do executes an event.
func (m *model) do(event string) {
	m.schedule = append(m.schedule, event)
	if d, ok := strings.CutPrefix(event, "+"); ok {
		m.waits++
		m.pass(d)
		return
	}
	c := m.clients[event[0]-'A']
	switch event[1] {
	case ':':
		c.note(event)
		c.step()
		return
	case '~':
		m.seen = hash(m.seen, event, m.now())
		c.die()
		return
	}
	var number int
	if _, err := fmt.Sscanf(event[1:len(event)-1], "%d", &number); err != nil {
		m.t.Fatal(err)
	}
	c.mu.Lock()
	i := slices.IndexFunc(c.calls, func(x *call) bool { return x.number == number })
	if i < 0 {
		c.mu.Unlock()
		return
	}
	x := c.calls[i]
	c.mu.Unlock()
	switch event[len(event)-1] {
	case '=': // the service executes a request that changes nothing, and the client gets the reply
		m.execute(c, x)
		m.seen = hash(m.seen, event, m.now())
		c.note(event + fmt.Sprint(m.seen))
		c.remove(x)
		x.done <- x.reply
	case '>', '!':
		m.seen = hash(m.seen, event, m.now())
		m.execute(c, x)
	case '<':
		c.note(event)
		c.remove(x)
		x.done <- x.reply
	case 'x':
		m.losses++
		c.note(event)
		c.remove(x)
		x.done <- nil
	}
}

// pass lets time pass until a request arrives, or for the given duration.
func (m *model) pass(text string) {
	d, err := time.ParseDuration(text)
	require.NoError(m.t, err)
	select {
	case <-m.arrived:
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.arrived:
	}
}

func (m *model) now() time.Duration { return time.Since(m.start) }

// state returns a hash of everything on which later events depend.
func (m *model) state() uint64 {
	return hash(m.seen, fmt.Sprint(m.clients[0].saw, m.clients[1].saw, m.losses, m.waits), m.now())
}

func hash(before uint64, event string, at time.Duration) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, before, event, at)
	return h.Sum64()
}

// RoundTrip makes a call, which waits for the events of the schedule.
func (c *modelClient) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	body := []byte{}
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	clock := strings.HasSuffix(req.URL.Path, bucketstore.ClockSuffix) || bytes.Contains(body, []byte(bucketstore.ClockSuffix+`"`))
	if c.died() {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	x := &call{method: req.Method, reads: req.Method == "GET" || clock, request: req, body: body, done: make(chan *http.Response, 1)}
	c.m.mu.Lock()
	mode := c.m.mode
	c.m.mu.Unlock()
	switch mode {
	case broken:
		return nil, errLost
	case connected:
		c.m.execute(c, x)
		return x.reply, nil
	}
	c.mu.Lock()
	c.made++
	x.number = c.made
	c.calls = append(c.calls, x)
	c.mu.Unlock()
	select {
	case c.m.arrived <- struct{}{}:
	default:
	}
	select {
	case reply := <-x.done:
		if reply == nil {
			return nil, errLost
		}
		return reply, nil
	case <-req.Context().Done():
		c.mu.Lock()
		x.abandoned = true
		c.mu.Unlock()
		return nil, req.Context().Err()
	}
}

var errLost = errors.New("connection reset")

// die ends the client. Its requests that were sent may still arrive.
func (c *modelClient) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = time.Now()
	for _, x := range c.calls {
		x.abandoned = true
	}
}

func (c *modelClient) died() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead.IsZero()
}

func (c *modelClient) remove(x *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = slices.DeleteFunc(c.calls, func(y *call) bool { return y == x })
}

// held returns the lease of the client, or nil.
func (c *modelClient) held() state.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease
}

// note adds an event to the hash of the client that sees it.
func (c *modelClient) note(event string) { c.saw = hash(c.saw, event, c.m.now()) }

// execute makes the service execute a request.
func (m *model) execute(c *modelClient, x *call) {
	req := httptest.NewRequest(x.method, x.request.URL.String(), bytes.NewReader(x.body))
	req.Header = x.request.Header
	w := httptest.NewRecorder()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.ServeHTTP(w, req)
	x.reply = w.Result()
	x.reply.Header.Set("Date", time.Now().Add(m.date).UTC().Format(http.TimeFormat))
	x.reply.Request = x.request
	m.changed(c, x)
}

// changed checks the effect of a request of c on the object. The caller holds m.mu.
func (m *model) changed(c *modelClient, x *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, now := m.object, modelObject{}
	o, ok := m.server.Object("state", m.id+".gcsup")
	if ok {
		content, err := m.server.ReadObject("state", m.id+".gcsup")
		if err != nil {
			m.t.Error(err)
		}
		now = modelObject{o.Generation, o.Metadata[bucketstore.LeaseKey], o.Metadata[bucketstore.HolderKey], string(content)}
	}
	if c.looked != now.generation && x.method == "GET" {
		c.looked, c.sawAt = now.generation, time.Now()
	}
	if now == was {
		return
	}
	held := was.lease != "" && time.Now().Before(m.expires) && !(was.holder == m.clients[0].name && c != m.clients[0] && m.clients[0].died())
	m.object, m.expires = now, time.Time{}
	if now.lease != "" {
		m.expires = o.Updated.Add(modelTTL)
	}
	if now.lease != was.lease && now.lease != "" {
		if held {
			m.t.Errorf("%s acquired the lease, which is held by %s for %v", c.name, was.holder, time.Until(m.expires))
		}
		if now.generation <= m.acquired {
			m.t.Errorf("%s acquired the lease with generation %d after %d", c.name, now.generation, m.acquired)
		}
		m.acquired = now.generation
	}
	if c.lease != nil && m.dead[bucketstore.Name(c.lease)] && !x.abandoned && !c.deleted && now.lease == bucketstore.Name(c.lease) {
		m.t.Errorf("%s wrote the object, after another client acquired the lease", c.name)
	}
	if now.lease != "" && now.lease != m.last {
		m.dead[m.last], m.last = true, now.lease
	}
	if now.lease != "" && now.holder != c.name {
		m.t.Errorf("%s wrote a lease of %s", c.name, now.holder)
	}
	switch {
	case now.lease != "" && was.lease != now.lease:
		if was.content != now.content && !c.contents[now.content] && !x.abandoned {
			m.t.Errorf("%s acquired the lease and changed the saved upload", c.name)
		}
	case c.contents != nil && !c.contents[now.content]:
		m.t.Errorf("%s replaced what was saved last", c.name)
	}
}

// check checks the invariants.
func (m *model) check() {
	for _, c := range m.clients {
		c.mu.Lock()
		lease, request := c.lease, c.request
		c.mu.Unlock()
		if lease == nil || c.died() {
			continue
		}
		name := bucketstore.Name(lease)
		if lease.Context().Err() != nil && !m.dead[name] {
			m.t.Errorf("%s lost its lease, and no other client acquired it", c.name)
		}
		if begin(lease) == nil {
			if m.object.lease != name {
				m.t.Errorf("%s can begin a request, and the lease is that of %q", c.name, m.object.holder)
			}
			if lease.Fence() < m.acquired {
				m.t.Errorf("%s can begin a request with the fencing number %d; the last is %d", c.name, lease.Fence(), m.acquired)
			}
		}
		if request != nil && request.Err() == nil && m.object.lease != name {
			m.t.Errorf("a request of %s is under way, and the lease is that of %q", c.name, m.object.holder)
		}
	}
}

// step starts the next step of the script.
func (c *modelClient) step() {
	what := c.script[0]
	c.busy = true
	c.saves++
	saved := c.saved()
	text, err := state.Encode(saved)
	require.NoError(c.m.t, err)
	if c.lease != nil {
		switch what {
		case "save", "release":
			c.contents[string(text)] = true
		case "delete":
			c.deleted = true
			c.contents[""] = true
		}
	}
	began := time.Now()
	go func() {
		lease := c.lease
		var request context.Context
		var end func()
		var loaded string
		var err error
		switch what {
		case "acquire":
			if lease, err = c.store.Acquire(c.m.ctx, c.m.id); err == nil {
				loaded = c.load(lease)
			}
		case "begin":
			request, end, err = lease.Begin(c.m.ctx)
		case "save":
			err = lease.Save(c.m.ctx, saved)
		case "delete":
			err = lease.Delete(c.m.ctx)
		case "release":
			err = lease.Release(c.m.ctx, saved)
		case "leave":
			err = lease.Release(c.m.ctx, nil)
		}
		if held, ok := errors.AsType[*state.HeldError](err); ok && what == "acquire" && c.m.mustBeFree(c, held, began) {
			c.m.t.Errorf("%s cannot acquire the lease, which has expired", c.name)
		}
		c.m.mu.Lock()
		holder := c.m.object.lease
		c.m.mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy = false
		if request != nil {
			c.request, c.end = request, end
		}
		switch {
		case what == "acquire" && err != nil:
			if c.tries++; c.tries == 3 {
				c.script = nil
			}
			return
		case what == "release", what == "leave":
			if holder == bucketstore.Name(lease) && err == nil {
				c.m.t.Errorf("%s released the lease, and still has it", c.name)
			}
			c.lease, c.script = nil, nil
			return
		case what == "acquire":
			c.lease = lease
			c.contents = map[string]bool{loaded: true}
		case what == "save" && err == nil:
			c.contents = map[string]bool{string(text): true}
		case what == "delete" && err == nil:
			c.contents = map[string]bool{"": true}
		}
		if c.script = c.script[1:]; errors.Is(err, state.ErrInUse) {
			c.script = []string{"release"}
		}
	}()
}

// mustBeFree reports whether the lease had expired, or its holder was dead, when a client began to
// acquire it. The Date has whole seconds. If it is behind, the client waits for a TTL since it saw
// the renewal.
func (m *model) mustBeFree(c *modelClient, held *state.HeldError, began time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := m.expires.Add(time.Second)
	if m.date < 0 {
		free = c.sawAt.Add(modelTTL)
	}
	if holder := m.clients[0]; m.object.holder == holder.name && holder.died() {
		free = holder.dead
	}
	return m.object.lease != "" && held.Renewal == m.object.generation && !began.Before(free)
}

// load returns the encoded saved upload that the lease loads, or "" if there is none.
func (c *modelClient) load(l state.Lease) string {
	t, err := l.Load(c.m.ctx)
	if err != nil {
		return ""
	}
	text, err := state.Encode(t)
	if err != nil {
		c.m.t.Error(err)
	}
	return string(text)
}

// saved returns a saved upload for the next save of the client.
func (c *modelClient) saved() *state.Upload {
	t := *c.m.saved
	t.Restarts, t.Committed, t.HighWater = c.index, int64(c.saves)<<18, t.Source.Size
	return &t
}

// finish delivers all requests and replies, and checks that the lease can then be acquired.
func (m *model) finish() {
	m.mu.Lock()
	m.mode = connected
	m.mu.Unlock()
	for _, c := range m.clients {
		c.mu.Lock()
		calls := c.calls
		c.calls = nil
		c.mu.Unlock()
		for _, x := range calls {
			if x.abandoned {
				continue
			}
			if x.reply == nil {
				m.execute(c, x)
			}
			x.done <- x.reply
		}
	}
	for range 60 {
		synctest.Wait()
		if !m.busy() {
			break
		}
		time.Sleep(time.Second)
	}
	if m.busy() {
		b := make([]byte, 1<<20)
		m.t.Errorf("a client still waits, but every request got a reply\n%s", b[:runtime.Stack(b, true)])
	}
	m.check()
	for _, c := range m.clients {
		if lease := c.held(); lease != nil && !c.died() {
			_ = lease.Release(m.ctx, nil)
		}
	}
	var err error
	for range 12 {
		var l state.Lease
		if l, err = m.clients[1].store.Acquire(m.ctx, m.id); err == nil {
			err = l.Release(m.ctx, nil)
			break
		}
		time.Sleep(time.Second)
	}
	if err != nil {
		m.t.Errorf("the lease cannot be acquired: %v", err)
	}
	m.cancel()
	if a := m.clients[0]; a.died() {
		synctest.Wait()
		if a.lease != nil {
			_ = a.lease.Release(m.ctx, nil)
		}
	}
}

func (m *model) busy() bool {
	busy := false
	for _, c := range m.clients {
		c.mu.Lock()
		busy = busy || c.busy && c.dead.IsZero()
		c.mu.Unlock()
	}
	return busy
}

// kill ends the run without checks.
func (m *model) kill() {
	m.mu.Lock()
	m.mode = broken
	m.mu.Unlock()
	m.cancel()
	synctest.Wait()
	for _, c := range m.clients {
		if lease := c.held(); lease != nil {
			_ = lease.Release(m.ctx, nil)
		}
	}
}
