package engine

import (
	"context"
	"io"
	"time"

	"gcsup/internal/brief"
	"gcsup/session"
	"gcsup/upload/internal/content"
)

// Insertion makes an object in a single request.
type Insertion struct {
	*Transfer
	object content.Loaded
	state  session.State

	// first is when the first request with an unknown outcome began.
	first time.Time

	// identical is called if the upload was not necessary, because another client had just made
	// an object with the same bytes.
	identical func()
}

// NewInsertion returns the insertion of object. seen is the generation at the destination
// before, 0 if there was no object, and nil if that is not known.
func NewInsertion(t *Transfer, object content.Loaded, seen *int64, identical func()) *Insertion {
	spec := t.Wire.Spec
	state := session.State{Size: object.Size, Unconditional: spec.IfGenerationMatch == nil}
	if seen != nil && len(spec.Conditions()) == 0 {
		state = state.Guarded(*seen)
	}
	return &Insertion{Transfer: t, object: object, state: state, identical: identical}
}

// Drive makes the object.
func (i *Insertion) Drive(ctx context.Context) (*session.Object, error) {
	i.Risk = i.Wire.uplink.AtRisk.Insert(i.object.Size)
	a, err := i.Wire.Converse(ctx, i, session.Action{Step: session.Begin})
	return a.Object, err
}

// Perform makes one exchange. The decision table requests only two kinds: insert the
// object, and check the destination after an insert with an unknown outcome.
func (i *Insertion) Perform(ctx context.Context, a session.Action) (session.Reply, error) {
	if a.Step == session.Check {
		return i.checkObject(ctx, i.first)
	}
	if err := i.Expect.CheckEnd(ctx, i.state.Size); err != nil {
		return session.Reply{}, err
	}
	i.Wire.Post(Note{Kind: Started})
	i.Wire.Pos.Sent.Store(0)
	var began time.Time
	spec := i.Wire.Spec
	if generation, ok := i.state.Guard(); ok {
		if err := excluded(spec, generation); err != nil {
			return session.Reply{}, err
		}
		// A request can have only one precondition for the generation, and the guard is
		// stricter.
		spec.IfGenerationMatch, spec.IfGenerationNotMatch = &generation, nil
	}
	if i.Risk.Take(ctx) != nil {
		return session.Reply{}, NewInterruption(ctx, nil)
	}
	defer i.Risk.End()
	body := i.Meter(i.object.Open())
	defer body.Close()
	r := i.Wire.Send(ctx, session.OpInsert, 0, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		began = time.Now() // after the wait for the rate of the bucket
		if i.Wire.uplink.BriefObject {
			ctx = brief.With(ctx)
		}
		return c.Insert(ctx, spec, i.state.Size, i.object.CRC32C, body)
	})
	i.Wire.Handed(0, r.Sent)
	if r.Object != nil {
		i.Risk.Committed(i.object.Size)
	}
	if i.first.IsZero() {
		i.first = began // until HandleReply knows the outcome
	}
	return r, nil
}

// excluded returns an error if spec requires another generation at the destination.
// 0 stands for no object.
func excluded(spec session.Spec, generation int64) error {
	var object *session.Object
	if generation != 0 {
		object = &session.Object{Generation: generation}
	}
	return session.Spec{Bucket: spec.Bucket, Object: spec.Object, IfGenerationNotMatch: spec.IfGenerationNotMatch}.Unmet(object)
}

// HandleReply returns the action of the decision table.
func (i *Insertion) HandleReply(_ context.Context, r session.Reply) (session.Action, error) {
	var action session.Action
	i.state.Replayable = true
	i.state, action = session.Decide(i.state, r)
	if action.Step == session.Done {
		i.Wire.Retry.Succeeded()
		if !i.state.MayExist {
			i.identical()
		}
	}
	if !i.state.MayExist {
		i.first = time.Time{}
	}
	return action, nil
}
