package engine

import (
	"context"
	"crypto/md5"
	"fmt"
	"slices"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/content"
)

// Transfer sends one range of a source to one object. If a session is lost, the next one has
// the same Transfer.
type Transfer struct {
	Wire    *Requester
	content content.Source
	record  Recorder
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

// NewTransfer returns a transfer of src to the object of q. r keeps the state of its
// sessions.
func NewTransfer(q *Requester, src content.Source, r Recorder, o TransferOptions) *Transfer {
	if o.Risk == nil {
		o.Risk = q.uplink.AtRisk.Session()
	}
	return &Transfer{Wire: q, content: src, record: r, TransferOptions: o, measurement: newMeasurement(o.Measure)}
}

// checkObject checks whether this upload made the object at the destination, by a request
// that began at since. An object with the same bytes that is older was not made by it.
func (t *Transfer) checkObject(ctx context.Context, since time.Time) (session.Reply, error) {
	ours, err := t.content.Whole(ctx)
	if err != nil {
		return session.Reply{}, SourceFailed(ctx, err)
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
		return nil, SourceFailed(ctx, err)
	}
	o, err := VerifyObject(object, t.Wire.Spec, ours.Offset, ours.CRC32C)
	if err != nil {
		return nil, t.Wire.Retry.Failure(&session.Error{Op: session.OpFinalize, Status: 200, Offset: t.Wire.Pos.Committed.Load(), Kind: session.ErrUnexpectedData}, err)
	}
	t.Wire.Pos.Committed.Store(o.Size)
	t.Wire.Pos.Sent.Store(o.Size)
	return o, nil
}

// refusedMD5 finds out why the service refused the bytes. If the source does not
// have the MD5 that the caller expects, another session would fail as well. The MD5
// is not computed while sending, because it costs more than everything else.
func (t *Transfer) refusedMD5(ctx context.Context, r session.Reply) error {
	if t.Wire.Spec.MD5 == nil || !r.Damaged() {
		return nil
	}
	verdict, err := t.content.Compare(ctx, content.Prefix{Offset: t.content.Total(), MD5: (*[md5.Size]byte)(t.Wire.Spec.MD5)}, true)
	if verdict == content.Different {
		err = fmt.Errorf("%w: the source has another MD5, expected is %x", session.ErrChecksum, t.Wire.Spec.MD5)
	}
	if err != nil {
		return SourceFailed(ctx, err)
	}
	return nil // also for a stream that cannot be sent again, which fails anyway
}
