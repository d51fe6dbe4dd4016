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

// step is one call of one process. As text it is "process call [id] [version]", where the
// ID is "id" if it is missing. The calls are
//   - lock, acquire, which waits until the lease of a holder that is dead or paused has
//     expired, unlock, again (all earlier unlocks of the upload), and release;
//   - refused: Lock and Acquire must fail, unless the lease may have ended with Delete;
//   - save, delete and begin, under the lease if there is one;
//   - save-without, which is Save of the Store under a lease, and set-aside;
//   - denied: Save and Delete of the Store, which must fail;
//   - kill, pause and resume of the process.
type step struct {
	process, call, id string
	version           int // 0 means no Token
}

// parse returns the steps of a script. They are separated by semicolons.
func parse(script string) []step {
	var steps []step
	for text := range strings.SplitSeq(script, ";") {
		fields := strings.Fields(text)
		st := step{process: fields[0], call: fields[1], id: "id"}
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
	for _, st := range parse(fmt.Sprintf(format, args...)) {
		s.do(st)
		for _, p := range s.processes {
			s.observe(p, s.upload(st.id))
		}
	}
}

// calls makes the calls of a script, and checks only that they succeed.
func (s *subject) calls(format string, args ...any) {
	s.Helper()
	for _, st := range parse(fmt.Sprintf(format, args...)) {
		s.do(st)
	}
}

// script returns a check that only makes the calls of a script.
func script(calls string) func(*subject) {
	return func(s *subject) { s.steps("%s", calls) }
}

// do makes one call, which must succeed.
func (s *subject) do(st step) {
	s.Helper()
	s.at = fmt.Sprintf("%s %s %s: ", st.process, st.call, st.id)
	p, u, t := s.processes[st.process], s.upload(st.id), version(st.id, st.version)
	ctx := s.brief(patience)
	switch st.call {
	case "lock":
		unlock, err := p.Store.Lock(ctx, u.id)
		s.succeeded(err)
		s.atEnd(unlock)
		s.grip(p, u)
		u.lease, u.unlock = nil, unlock
	case "refused":
		if !u.unsure {
			s.refused(p, u)
		}
	case "acquire":
		s.acquire(p, u)
	case "unlock":
		var other sync.WaitGroup
		other.Go(u.unlock) // not in the goroutine that locked it
		other.Wait()
		u.past, u.holder, u.unsure = append(u.past, u.unlock), nil, false
	case "again":
		for _, unlock := range u.past {
			unlock()
		}
	case "release":
		u.lease.released = true
		s.succeeded(u.lease.Release(ctx, t))
		u.holder, u.unsure, u.lease = nil, false, nil
		if t != nil {
			u.saved = t
		}
	case "save":
		s.save(ctx, p, u, t)
	case "save-without":
		s.succeeded(p.Store.Save(ctx, t))
		u.saved = t
	case "delete":
		if u.lease != nil {
			s.succeeded(u.lease.Delete(ctx))
		} else {
			s.succeeded(p.Store.Delete(ctx, u.id))
		}
		u.saved, u.damage, u.unsure = nil, nil, s.place.TTL > 0
	case "set-aside":
		s.succeeded(state.SetAside(ctx, p.Store, u.id))
		u.saved, u.damage, u.unsure = nil, nil, s.place.TTL > 0
	case "begin":
		request, end, err := u.lease.Begin(s.Context())
		s.succeeded(err)
		s.Cleanup(end)
		u.request = request
		s.kept(u)
	case "denied":
		s.means(p.Store.Save(ctx, version(u.id, 7)), state.ErrInUse, "Save without a lease")
		s.means(p.Store.Delete(ctx, u.id), state.ErrInUse, "Delete without a lease")
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
}

func (s *subject) succeeded(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%v", err)
	}
}

func (s *subject) save(ctx context.Context, p *process, u *upload, t *state.Token) {
	s.Helper()
	if u.lease != nil {
		s.succeeded(u.lease.Save(ctx, t))
	} else {
		s.succeeded(p.Store.Save(ctx, t))
	}
	u.saved, u.damage = t, nil
	s.kept(u)
}

// acquire acquires an upload that is free, or whose holder is dead or paused.
func (s *subject) acquire(p *process, u *upload) {
	s.Helper()
	for began := time.Now(); ; s.pause(1) {
		l, err := state.Acquire(s.brief(patience), p.Store, u.id)
		if err == nil {
			s.grip(p, u)
			u.lease = s.hold(l)
			break
		}
		if u.holder == nil {
			s.Fatalf("%v", err)
		}
		s.heldError(u, err)
		if d := time.Since(began); d > s.limit() {
			s.Fatalf("the lease has not expired after %v, with a TTL of %v", d, s.place.TTL)
		}
	}
	if fence := u.lease.Fence(); s.place.TTL > 0 {
		if fence <= u.fence {
			s.Errorf("the fencing number is %d, after one of %d", fence, u.fence)
		}
		u.fence = fence
	}
}

// grip records a new holder.
func (s *subject) grip(p *process, u *upload) {
	if u.seen != nil {
		u.earlier = u.seen
	}
	u.holder, u.unsure, u.seen = p, false, nil
}

// kept records that the holder has the lock or lease: it acquired it again if it had
// ended with Delete.
func (s *subject) kept(u *upload) {
	s.Helper()
	if u.lease != nil && s.place.TTL > 0 {
		fence := u.lease.Fence()
		if fence != u.fence && !u.unsure {
			s.Errorf("the fencing number changed from %d to %d", u.fence, fence)
		}
		u.fence = fence
	}
	if u.unsure {
		u.unsure, u.seen = false, nil
	}
}

// left records that a process is dead or paused. Its locks have ended, and its leases may
// expire.
func (s *subject) left(p *process) {
	p.absent = true
	for _, u := range s.uploads {
		switch {
		case u.holder != p:
		case s.place.TTL == 0:
			u.holder, u.lease = nil, nil
		default:
			u.unsure = true
		}
	}
}
