package upload

import (
	"context"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/content"
)

// transfer sends one range of a source to one object. It outlives the sessions that are lost
// meanwhile.
type transfer struct {
	*requester
	wire    *exchanger
	content content.Source
	record  record
	transferOptions
}

// transferOptions are what not every transfer needs.
type transferOptions struct {
	expect  expectation
	moved   func(n int64) // called after n bytes were handed to the network; may be nil
	measure *measurement  // of the first request; nil after it, or if it is not measured
}

// measurement makes the rate of a request be checked.
type measurement struct {
	size  int64                                   // maximum, of the request
	check func(n int64, took time.Duration) error // an error ends the upload
}

// newTransfer returns a transfer of src to the object of spec. r keeps the state of its
// sessions.
func newTransfer(q *requester, spec session.Spec, src content.Source, r record, o transferOptions) *transfer {
	return &transfer{requester: q, wire: q.to(spec), content: src, record: r, transferOptions: o}
}

// drive holds a conversation that makes an object, and returns the object.
func (t *transfer) drive(ctx context.Context, c conversation, first session.Action) (*session.Object, error) {
	a, err := t.converse(ctx, c, first)
	return a.Object, err
}

// checkObject checks whether this upload made the object at the destination, by a request
// that began at since. An object with the same bytes that is older was not made by it.
func (t *transfer) checkObject(ctx context.Context, since time.Time) (session.Reply, error) {
	ours, err := t.content.Whole(ctx)
	if err != nil {
		return session.Reply{}, t.sourceFailed(ctx, err)
	}
	r := t.wire.statOf(ctx)
	if o := r.Object; o != nil {
		r.Ours = o.Size == ours.Offset && o.HasCRC32C && o.CRC32C == ours.CRC32C && !t.known(o.Generation)
	}
	r.Older = older(r, since)
	return r, nil
}

// known reports whether the caller gave the generation in a precondition. The object
// with it is then older than the upload.
func (t *transfer) known(generation int64) bool {
	spec := t.wire.spec
	for _, named := range []*int64{spec.IfGenerationMatch, spec.IfGenerationNotMatch} {
		if named != nil && *named != 0 && *named == generation {
			return true
		}
	}
	return false
}

// verify compares the finished object with the source. The result is the object that the
// service described.
func (t *transfer) verify(ctx context.Context, object *session.Object) (*session.Object, error) {
	ours, err := t.content.Whole(ctx)
	if err != nil {
		return nil, t.sourceFailed(ctx, err)
	}
	o, err := verifyObject(object, t.wire.spec, ours.Offset, ours.CRC32C)
	if err != nil {
		return nil, t.retry.failure(&session.Error{Op: session.OpFinalize, Status: 200, Offset: t.pos.committed.Load(), Kind: session.ErrUnexpectedData}, err)
	}
	t.pos.committed.Store(o.Size)
	t.pos.sent.Store(o.Size)
	return o, nil
}
