package parts

import (
	"context"

	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// joining is the conversation that makes one object from parts: the object at the
// destination, or a temporary one.
type joining struct {
	file    *dividedFile
	spec    session.Spec // of the object
	state   session.JoinState
	join    func(ctx context.Context, seen int64) session.Reply
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
	r := c.join(ctx, c.state.Seen)
	if r.Object != nil {
		_, err := engine.VerifyObject(r.Object, c.spec, c.size, c.crc32c)
		r.Differs = err != nil
	}
	return r, nil
}

func (c *joining) HandleReply(_ context.Context, r session.Reply) (a session.Action, _ error) {
	c.state, a = session.DecideJoin(c.state, r)
	return a, nil
}

// hold holds the conversation until the object exists. The error is errPartMissing if the
// service does not have all parts. The others stay as they are after any error.
func (c *joining) hold(ctx context.Context) (*session.Object, error) {
	q := c.file.Wire
	for {
		a, err := q.Hold(ctx, c, session.Action{Step: session.Finish})
		switch {
		case a.Step == session.Fail:
			a.Err.Offset, a.Err.Open = c.file.size, true // err is a.Err
			return nil, err
		case err != nil:
			return nil, err
		case a.Step == session.Done:
			q.Retry.Succeeded()
			return a.Object, nil
		}
		if err := c.inspect(ctx); err != nil {
			return nil, err
		}
	}
}
