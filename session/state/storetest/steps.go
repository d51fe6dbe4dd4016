package storetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gcsup/session/state"
)

// step is one step of one process. As text it is "process call [id] [version]". The ID is
// "id" if it is missing. The calls are
//   - lock and unlock, acquire and release. acquire waits until the lease of a holder that is
//     dead or paused has expired;
//   - save, delete and begin, under the lease if the process has one;
//   - store-save and store-delete, which are those of the Store;
//   - leave, which ends the context of acquire. The lease then expires, as if the process was paused, until resume;
//   - set-aside.
//
// A call must succeed. With "!" before it, it must fail because the upload is in use. With
// "?", it must fail because the process does not reach the place. With "~", its context is
// done: it must have its complete effect, or none. The other steps are
//   - kill, pause and resume of the process;
//   - wait, with the number of sixteenths of a TTL instead of a version;
//   - held, lost, renewed, valid and expired, which check a lease: see expect.
type step struct {
	text              string // for messages
	process, call, id string
	outcome           byte // '!', '?', '~' or 0
	version           int  // 0 means no saved upload
}

// parse returns the steps of a script. They are separated by semicolons.
func parse(format string, args ...any) []step {
	var steps []step
	for text := range strings.SplitSeq(fmt.Sprintf(format, args...), ";") {
		fields := strings.Fields(text)
		st := step{text: strings.Join(fields, " "), process: fields[0], call: strings.TrimLeft(fields[1], "!?~"), id: "id"}
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

// steps runs a script. After each step it checks what all processes see of the upload, except
// after resume: the lease may have expired.
func (s *subject) steps(format string, args ...any) {
	s.Helper()
	for _, st := range parse(format, args...) {
		if s.do(st); st.call != "resume" {
			s.observe(st.id)
		}
	}
}

// calls runs a script, and checks only the outcome of each call.
func (s *subject) calls(format string, args ...any) {
	s.Helper()
	for _, st := range parse(format, args...) {
		s.do(st)
	}
}

// script returns a check that only runs a script.
func script(steps string) func(*subject) {
	return func(s *subject) { s.steps("%s", steps) }
}

// do makes one step.
func (s *subject) do(st step) {
	s.Helper()
	s.at = st.text + ": "
	p, u := s.processes[st.process], s.upload(st.id)
	switch st.call {
	case "kill":
		p.Kill()
		s.left(p)
	case "pause":
		p.resume = p.Pause()
		s.left(p)
	case "leave":
		p.worker.lease(u.id).leave()
		p.resume = func() {}
		s.left(p)
	case "resume":
		p.resume()
		p.absent = false
	case "wait":
		time.Sleep(s.place.TTL * time.Duration(st.version) / 16)
		s.yield()
	case "held", "lost", "renewed", "valid", "expired":
		s.expect(p, u, st.call)
	default:
		s.make(p, u, st.outcome, call{Name: st.call, ID: st.id, Upload: s.version(st.id, st.version)})
	}
}

// left records that a process is dead or paused. Its locks have ended. Its leases expire.
func (s *subject) left(p *process) {
	p.absent = true
	for _, u := range s.uploads {
		switch {
		case u.holder != p:
		case s.place.TTL == 0:
			u.holder = nil
		default:
			u.last = nil
		}
	}
}

// expect checks a lease.
func (s *subject) expect(p *process, u *upload, what string) {
	s.Helper()
	lease := p.worker.lease(u.id)
	switch what {
	case "held": // no other process acquired it, also if it expired
		if lease.Context().Err() != nil {
			s.Errorf("Context has ended: %v", context.Cause(lease.Context()))
		}
	case "lost":
		if !isDone(lease.Context(), s.limit()) {
			s.Errorf("Context does not end, but another process acquired the lease")
		} else {
			s.means(context.Cause(lease.Context()), state.ErrInUse, "the cause of Context")
		}
	case "renewed": // while its holder was seen
		if u.seen.Renewal == u.last.Renewal {
			s.Errorf("HeldError.Renewal did not change while the lease was renewed")
		}
	case "valid": // for the request of the last call of Begin
		if lease.request.Err() != nil {
			s.Errorf("the context of a request has ended: %v", context.Cause(lease.request))
		}
	case "expired":
		if !isDone(lease.request, s.limit()) {
			s.Errorf("the context of a request did not end when the lease expired")
		}
	}
}

// make makes one call, and checks its outcome.
func (s *subject) make(p *process, u *upload, outcome byte, c call) {
	s.Helper()
	exclusive := c.Name == "lock" || c.Name == "acquire"
	if outcome == '!' && exclusive && u.unsure {
		return // the lease may have ended with Delete
	}
	ctx := s.Context()
	switch outcome {
	case '?':
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.place.TTL/64)
		defer cancel()
	case '~':
		ctx = ended()
	}
	_, err := s.call(ctx, p, c)
	if outcome == 0 && err != nil && c.Name == "acquire" && u.holder != nil && u.holder.absent {
		s.acquire(p, u, c, err)
		err = nil
	}
	switch outcome {
	case 0:
		if err != nil {
			s.Fatalf("%v", err)
		}
		s.succeeded(p, u, c)
	case '!':
		s.means(err, state.ErrInUse, "the error")
		if exclusive {
			s.heldError(u, err, c.Name == "acquire")
		}
	case '?':
		if s.means(err, nil, "the error"); err == nil {
			s.Errorf("the call succeeded, but its process does not reach the place")
		}
	case '~':
		s.means(err, nil, "the error, with a context that is done")
		switch {
		case err == nil:
			s.succeeded(p, u, c)
			if undo := map[string]string{"lock": "unlock", "acquire": "release"}[c.Name]; undo != "" {
				s.make(p, u, 0, call{Name: undo, ID: u.id})
			}
		case c.Name == "save" || c.Name == "delete":
			u.saved, u.unsure = s.loadsOneOf(s.processes["b"], u.id, u.saved, c.Upload), s.place.TTL > 0
		}
	}
}

// acquire waits until the lease of a dead or paused holder has expired. err is the error of
// the first call.
func (s *subject) acquire(p *process, u *upload, c call, err error) {
	s.Helper()
	for began := time.Now(); err != nil; _, err = s.call(s.Context(), p, c) {
		s.heldError(u, err, true)
		if d := time.Since(began); d > s.limit() {
			s.Fatalf("the lease has not expired after %v, with a TTL of %v", d, s.place.TTL)
		}
		time.Sleep(s.place.TTL / 16)
	}
}

// succeeded records what all processes must see after a call.
func (s *subject) succeeded(p *process, u *upload, c call) {
	s.Helper()
	switch c.Name {
	case "lock", "acquire":
		if s.place.TTL > 0 && u.holder != nil {
			if l := u.holder.worker.lease(u.id); l != nil && l.request != nil && l.request.Err() == nil {
				s.Errorf("the lease of the last holder was acquired while its request could be sent")
			}
		}
		if u.seen != nil {
			u.earlier = u.seen
		}
		u.holder, u.leased, u.unsure, u.late, u.seen, u.last = p, c.Name == "acquire", false, false, nil, nil
		if u.leased && s.place.TTL > 0 {
			fence := p.worker.lease(u.id).Fence()
			if fence <= u.fence {
				s.Errorf("the fencing number is %d, after one of %d", fence, u.fence)
			}
			u.fence = fence
		}
	case "unlock", "release":
		if u.holder == p {
			u.holder, u.unsure = nil, false
		}
		if c.Upload != nil {
			u.saved = c.Upload
		}
	case "begin":
		s.kept(p, u)
	case "save", "store-save":
		u.saved, u.damage = c.Upload, nil
		s.kept(p, u)
	case "delete", "store-delete", "set-aside":
		u.saved, u.damage, u.unsure = nil, nil, s.place.TTL > 0
	}
}

// kept records that the holder has the lock or lease: if it had ended with Delete, the
// holder acquired it again.
func (s *subject) kept(p *process, u *upload) {
	s.Helper()
	if u.leased && s.place.TTL > 0 {
		fence := p.worker.lease(u.id).Fence()
		if fence != u.fence && !u.unsure {
			s.Errorf("the fencing number changed from %d to %d", u.fence, fence)
		}
		u.fence = fence
	}
	if u.unsure {
		u.unsure, u.seen = false, nil
	}
}
