package engine

import (
	"context"
	"slices"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/content"
)

// Transfer sends one range of a source to one object. If a session is lost, the next one has
// the same Transfer.
type Transfer struct {
	*Requester
	Wire    *Exchanger
	content content.Source
	record  Record
	TransferOptions
	measurement *measurement // nil if there is none
	begun       bool         // a session of it has sent data
	safe        int64        // the greatest offset of bytes that are known to be no longer at risk
}

// TransferOptions are what not every transfer needs.
type TransferOptions struct {
	Expect  Expectation
	Moved   func(n int64)  // called after the peer acknowledged n bytes, or, if the system does not tell, after they were handed to the network; may be nil
	Risk    *atrisk.Risk   // what the transfer has at risk, if the caller took it already; otherwise nil
	Measure func() Measure // begins to measure the first bytes; nil if they are not measured
}

// Measure is called while the first bytes are sent: n of them were handed to the network in the
// time took. done ends the measurement, and an error the upload.
type Measure func(n int64, took time.Duration) (done bool, err error)

// NewTransfer returns a transfer of src to the object of spec. r keeps the state of its
// sessions.
func NewTransfer(q *Requester, spec session.Spec, src content.Source, r Record, o TransferOptions) *Transfer {
	if o.Risk == nil {
		o.Risk = q.uplink.AtRisk.Session()
	}
	return &Transfer{
		Requester: q, Wire: q.To(spec), content: src, record: r, TransferOptions: o, measurement: newMeasurement(o.Measure),
	}
}

// checkObject checks whether this upload made the object at the destination, by a request
// that began at since. An object with the same bytes that is older was not made by it.
func (t *Transfer) checkObject(ctx context.Context, since time.Time) (session.Reply, error) {
	ours, err := t.content.Whole(ctx)
	if err != nil {
		return session.Reply{}, t.SourceFailed(ctx, err)
	}
	r := t.Wire.Stat(ctx)
	if o := r.Object; o != nil {
		r.Ours = o.Size == ours.Offset && o.HasCRC32C && o.CRC32C == ours.CRC32C && !t.known(o.Generation)
	}
	r.Older = older(r, since)
	return r, nil
}

// known reports whether the caller gave the generation in a precondition. The object
// with it is then older than the upload.
func (t *Transfer) known(generation int64) bool {
	named := []*int64{t.Wire.Spec.IfGenerationMatch, t.Wire.Spec.IfGenerationNotMatch}
	return slices.ContainsFunc(named, func(n *int64) bool { return n != nil && *n != 0 && *n == generation })
}

// Verify compares the finished object with the source. The result is the object that the
// service described.
func (t *Transfer) Verify(ctx context.Context, object *session.Object) (*session.Object, error) {
	ours, err := t.content.Whole(ctx)
	if err != nil {
		return nil, t.SourceFailed(ctx, err)
	}
	o, err := VerifyObject(object, t.Wire.Spec, ours.Offset, ours.CRC32C)
	if err != nil {
		return nil, t.Retry.Failure(&session.Error{Op: session.OpFinalize, Status: 200, Offset: t.Pos.Committed.Load(), Kind: session.ErrUnexpectedData}, err)
	}
	t.Pos.Committed.Store(o.Size)
	t.Pos.Sent.Store(o.Size)
	return o, nil
}
