package upload

import (
	"context"

	"gcsup/session"
)

// joining is the conversation that makes one object from parts: the object at the
// destination, or a temporary one.
type joining struct {
	p     *parallel
	spec  Spec // of the object
	state session.JoinState
	join  func(ctx context.Context, seen int64) session.Reply
	made  func(*session.Object) bool // reports whether an object is that of the parts
	whole chunkSum                   // of the object
}

// chunkSum is the size and the CRC32C of an object.
type chunkSum struct {
	size   int64
	crc32c uint32
}

func (c *joining) perform(ctx context.Context, a session.Action) (session.Reply, error) {
	if a.Step == session.Check {
		r := c.p.j.wire().statOf(ctx, c.spec)
		r.Ours = r.Object != nil && c.made(r.Object)
		r.Unmet = !c.state.Temporary && c.p.j.spec.Unmet(r.Object) != nil
		return r, nil
	}
	r := c.join(ctx, c.state.Seen)
	if r.Object != nil {
		_, err := verifyObject(r.Object, c.spec, c.whole.size, c.whole.crc32c)
		r.Differs = err != nil
	}
	return r, nil
}

func (c *joining) handleReply(_ context.Context, r session.Reply) (a session.Action, _ error) {
	c.state, a = session.DecideJoin(c.state, r)
	return a, nil
}

// hold holds the conversation until the object exists. The error is errPartMissing if the
// service does not have all parts. The others stay as they are after any error.
func (c *joining) hold(ctx context.Context) (*session.Object, error) {
	t := c.p.j.requests
	for {
		a, err := t.retry.converse(ctx, c, session.Action{Step: session.Finish})
		switch {
		case err != nil:
			return nil, t.stopped(ctx, err, a.Err)
		case a.Step == session.Done:
			t.retry.succeeded()
			return a.Object, nil
		case a.Step == session.Fail:
			a.Err.Offset, a.Err.Open = c.p.size, true
			return nil, t.retry.failure(a.Err, nil)
		}
		if missing, err := c.p.joiner.inspect(ctx); err != nil {
			return nil, err
		} else if missing {
			return nil, errPartMissing
		}
	}
}

// joined returns the object at the destination if an earlier request made it from the parts,
// which must all be finished. Otherwise the object is nil.
func (p *parallel) joined(ctx context.Context) (*session.Object, error) {
	a, err := p.j.requests.ask(ctx, func(ctx context.Context) session.Reply { return p.j.wire().statOf(ctx, p.j.spec) })
	if err != nil || a.Object == nil || !p.joiner.made(a.Object) {
		return nil, err
	}
	return a.Object, nil
}
