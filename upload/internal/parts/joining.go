package parts

import (
	"context"

	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
)

// joining is the conversation that makes one object from parts: the object at the
// destination, or a temporary one.
type joining struct {
	file    *dividedFile
	spec    session.Spec // of the object
	state   decide.Join
	join    func(ctx context.Context) session.Reply
	made    func(*session.Object) bool      // reports whether an object is that of the parts
	inspect func(ctx context.Context) error // returns errPartMissing if the service does not have all parts, and resets the others
	size    int64                           // of the object
	crc32c  uint32                          // of the object
}

func (c *joining) Perform(ctx context.Context, a session.Action) (session.Reply, error) {
	if a.Step == session.Check {
		r := c.file.Wire.To(c.spec).Stat(ctx)
		r.Ours = r.Object != nil && c.made(r.Object)
		r.Unmet = !c.state.Temporary && c.spec.Unmet(r.Object) != nil
		return r, nil
	}
	if !c.state.Temporary && !c.state.Pinned {
		if err := c.file.recordJoin(ctx, c.state.Seen); err != nil {
			return session.Reply{}, err
		}
	}
	r := c.join(ctx)
	if r.Object != nil {
		_, err := engine.VerifyObject(r.Object, c.spec, c.size, c.crc32c)
		r.Differs = err != nil
	}
	return r, nil
}

func (c *joining) HandleReply(_ context.Context, r session.Reply) (a session.Action, _ error) {
	c.state, a = c.state.Decide(r)
	if !c.state.MayExist && !c.state.Temporary {
		c.file.forgetJoin()
	}
	return a, nil
}

// recordJoin records that a request that makes the object will be sent. seen is the generation that
// it may replace. If it returns nil, the record is durable, or an earlier one is, and cannot be
// updated.
func (f *dividedFile) recordJoin(ctx context.Context, seen int64) error {
	if was := f.common(); !was.Joining || was.Seen != seen {
		f.Journal.Change(func(p *state.Parts) { p.Joining, p.Seen = true, seen })
	}
	return f.Journal.Save(ctx)
}

// forgetJoin records that all requests that would have made the object had no effect.
func (f *dividedFile) forgetJoin() {
	if f.common().Joining {
		f.Journal.Change(func(p *state.Parts) { p.Joining = false })
	}
}

// Settle is Find for an upload that continues. If an earlier request that makes the object has an
// unknown outcome, the error is session.ErrOutcomeUnknown if another client may have replaced the
// object that the request made.
func (f *dividedFile) Settle(ctx context.Context) (*session.Object, error) {
	if !f.common().Joining {
		return f.Find(ctx)
	}
	c := &joining{
		file: f, spec: f.Wire.Spec, made: f.made,
		state: decide.Join{Seen: f.common().Seen, MayExist: true, Unconditional: true}, // so that it ends if the destination has not changed
	}
	a, err := f.Wire.Converse(ctx, c, session.Action{Step: session.Check})
	return a.Object, c.failed(a, err)
}

// failed returns err, with which the conversation ended. The service still has the parts.
func (c *joining) failed(a session.Action, err error) error {
	if a.Step == session.Fail {
		a.Err.Offset, a.Err.Open = c.file.from+c.file.size, true // err is a.Err
	}
	return err
}

// hold holds the conversation until the object exists. The error is errPartMissing if the
// service does not have all parts. The others stay as they are after any error.
func (c *joining) hold(ctx context.Context) (*session.Object, error) {
	q, first := c.file.Wire, session.Finish
	if c.state.MayExist {
		first = session.Check
	}
	for {
		a, err := q.Converse(ctx, c, session.Action{Step: first})
		first = session.Finish
		switch {
		case err != nil:
			return nil, c.failed(a, err)
		case a.Step == session.Done:
			q.Retry.Succeeded()
			return a.Object, nil
		}
		if err := c.inspect(ctx); err != nil {
			return nil, err
		}
	}
}
