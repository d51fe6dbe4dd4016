package storetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/session/state"
)

// step is one call of one process. As text it is "process call [id] [version]". The ID is
// "id" if it is missing. The calls are
//   - lock, unlock, again (all earlier unlocks of the upload), acquire and release. acquire
//     waits until the lease of a holder that is dead or paused has expired;
//   - save, delete and begin, under the lease if the process has one;
//   - store-save and store-delete, which are those of the Store;
//   - set-aside, and wait, which only lets time pass;
//   - kill, pause and resume of the process.
//
// A call must succeed. With "!" before it, it must fail because the upload is in use. With
// "~", its context is done: it must have its complete effect, or none.
type step struct {
	text              string // for messages
	process, call, id string
	outcome           byte // '!', '~' or 0
	version           int  // 0 means no Token
}

// parse returns the steps of a script. They are separated by semicolons.
func parse(format string, args ...any) []step {
	var steps []step
	for text := range strings.SplitSeq(fmt.Sprintf(format, args...), ";") {
		fields := strings.Fields(text)
		st := step{text: strings.Join(fields, " "), process: fields[0], call: strings.TrimLeft(fields[1], "!~"), id: "id"}
		if st.call != fields[1] {
			st.outcome = fields[1][0]
		}
		for _, field := range fields[2:] {
			if n, err := strconv.Atoi(field); err == nil {
				st.version = n
			} else {
				st.id = field
			}
		}
		steps = append(steps, st)
	}
	return steps
}

// steps makes the calls of a script. After each it checks what all processes see of the
// upload.
func (s *subject) steps(format string, args ...any) {
	s.Helper()
	for _, st := range parse(format, args...) {
		s.do(st)
		for _, p := range s.processes {
			s.observe(p, s.upload(st.id))
		}
	}
}

// calls makes the calls of a script, and checks only their outcome.
func (s *subject) calls(format string, args ...any) {
	s.Helper()
	for _, st := range parse(format, args...) {
		s.do(st)
	}
}

// script returns a check that only makes the calls of a script.
func script(calls string) func(*subject) {
	return func(s *subject) { s.steps("%s", calls) }
}

// do makes one call, and checks its outcome.
func (s *subject) do(st step) {
	s.Helper()
	s.at = st.text + ": "
	u := s.upload(st.id)
	exclusive := st.call == "lock" || st.call == "acquire"
	switch st.outcome {
	case 0:
		s.succeeded(s.try(s.brief(patience), st))
	case '!':
		if exclusive && u.unsure {
			return // the lease may have ended with Delete
		}
		err := s.try(s.brief(patience), st)
		s.means(err, state.ErrInUse, "the error")
		if exclusive {
			s.heldError(u, err, st.call == "acquire")
		}
	case '~':
		want := []*state.Token{u.saved, version(u.id, st.version)}
		err := s.try(ended(), st)
		s.means(err, nil, "the error, with a context that is done")
		switch {
		case err == nil && st.call == "lock":
			s.succeeded(s.try(s.brief(patience), step{process: st.process, call: "unlock", id: st.id}))
		case err == nil && st.call == "acquire":
			s.succeeded(s.try(s.brief(patience), step{process: st.process, call: "release", id: st.id}))
		case err != nil && (st.call == "save" || st.call == "delete"):
			u.saved, u.unsure = s.loadsOneOf(s.processes["b"], u.id, want...), s.place.TTL > 0
		}
	}
}

// try makes a call. If it succeeds, try records what all processes must see from now on.
func (s *subject) try(ctx context.Context, st step) error {
	s.Helper()
	p, u, t := s.processes[st.process], s.upload(st.id), version(st.id, st.version)
	lease := p.leases[u.id]
	switch st.call {
	case "lock":
		unlock, err := p.Store.Lock(ctx, u.id)
		if err != nil {
			return err
		}
		s.atEnd(unlock)
		s.grip(p, u)
		u.unlock = unlock
	case "unlock":
		var other sync.WaitGroup
		other.Go(u.unlock) // not in the goroutine that locked it
		other.Wait()
		u.past, u.holder, u.unsure = append(u.past, u.unlock), nil, false
	case "again":
		for _, unlock := range u.past {
			unlock()
		}
	case "acquire":
		return s.acquire(ctx, p, u, st.outcome == 0)
	case "release":
		lease.released = true
		if err := lease.Release(ctx, t); err != nil {
			return err
		}
		u.holder, u.unsure = nil, false
		delete(p.leases, u.id)
		if t != nil {
			u.saved = t
		}
	case "begin":
		if st.outcome == 0 {
			ctx = s.Context() // the request may last long
		}
		request, end, err := lease.Begin(ctx)
		if err != nil {
			return err
		}
		s.Cleanup(end)
		u.request = request
		s.kept(u, lease)
	case "save", "store-save":
		return s.save(ctx, p, u, t, st.call == "save")
	case "delete", "store-delete", "set-aside":
		remove := func() error { return p.Store.Delete(ctx, u.id) }
		switch {
		case st.call == "set-aside":
			remove = func() error { return state.SetAside(ctx, p.Store, u.id) }
		case st.call == "delete" && lease != nil:
			remove = func() error { return lease.Delete(ctx) }
		}
		if err := remove(); err != nil {
			return err
		}
		u.saved, u.damage, u.unsure = nil, nil, s.place.TTL > 0
	case "wait":
		s.yield()
	case "kill":
		p.Kill()
		s.left(p)
	case "pause":
		p.resume = p.Pause()
		s.left(p)
	case "resume":
		p.resume()
		p.absent = false
	default:
		s.Fatalf("no such call")
	}
	return nil
}

func (s *subject) succeeded(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%v", err)
	}
}

// save saves a Token, under the lease if the process has one and may use it.
func (s *subject) save(ctx context.Context, p *process, u *upload, t *state.Token, leased bool) error {
	s.Helper()
	lease, save := p.leases[u.id], p.Store.Save
	if leased && lease != nil {
		save = lease.Save
	}
	if err := save(ctx, t); err != nil {
		return err
	}
	u.saved, u.damage = t, nil
	s.kept(u, lease)
	return nil
}

// acquire acquires an upload. If wait is set, it waits for a holder that is dead or paused.
func (s *subject) acquire(ctx context.Context, p *process, u *upload, wait bool) error {
	s.Helper()
	for began := time.Now(); ; s.pause(1) {
		l, err := state.Acquire(ctx, p.Store, u.id)
		if err == nil {
			s.grip(p, u)
			p.leases[u.id] = s.hold(l)
			break
		}
		if !wait || u.holder == nil || !u.holder.absent {
			return err
		}
		s.heldError(u, err, true)
		if d := time.Since(began); d > s.limit() {
			s.Fatalf("the lease has not expired after %v, with a TTL of %v", d, s.place.TTL)
		}
		ctx = s.brief(patience)
	}
	if fence := p.leases[u.id].Fence(); s.place.TTL > 0 {
		if fence <= u.fence {
			s.Errorf("the fencing number is %d, after one of %d", fence, u.fence)
		}
		u.fence = fence
	}
	return nil
}

// grip records a new holder.
func (s *subject) grip(p *process, u *upload) {
	if u.seen != nil {
		u.earlier = u.seen
	}
	u.holder, u.unsure, u.seen = p, false, nil
	delete(p.leases, u.id)
}

// kept records that the holder has the lock or lease: if it had ended with Delete, the
// holder acquired it again.
func (s *subject) kept(u *upload, lease *held) {
	s.Helper()
	if lease != nil && s.place.TTL > 0 {
		fence := lease.Fence()
		if fence != u.fence && !u.unsure {
			s.Errorf("the fencing number changed from %d to %d", u.fence, fence)
		}
		u.fence = fence
	}
	if u.unsure {
		u.unsure, u.seen = false, nil
	}
}

// left records that a process is dead or paused. Its locks have ended. Its leases expire.
func (s *subject) left(p *process) {
	p.absent = true
	for _, u := range s.uploads {
		if u.holder == p && s.place.TTL == 0 {
			u.holder = nil
		}
	}
}
