package upload

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// driver makes an object: an [engine.Run] or an [engine.Insertion].
type driver interface {
	Drive(ctx context.Context) (*session.Object, error)
	Verify(ctx context.Context, object *session.Object) (*session.Object, error)
}

// makeObject makes the object with d, and verifies it.
func (c *call) makeObject(ctx context.Context, d driver) error {
	guarded, stop := c.journal.Guard(ctx)
	defer stop()
	object, err := d.Drive(guarded)
	if err != nil {
		return err
	}
	object, unverified := c.wire().Confirm(guarded, object)
	if object, err = d.Verify(guarded, object); err != nil {
		return err
	}
	c.reportUnverified(unverified)
	c.result.update(func(r *Result) { r.Object = object })
	c.events.committed()
	return nil
}

// makeInSession is make with a session, which an earlier process may have finished.
func (c *call) makeInSession(ctx context.Context, r *engine.Run) error {
	err := c.makeObject(ctx, r)
	if err == nil && r.Unqueried() {
		c.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = true, r.Object.Size })
	}
	return err
}

// uploadOnce uploads src through a session that no other call can resume.
func (c *call) uploadOnce(ctx context.Context, src content.Source) error {
	t := c.newTransfer(src, engine.Unrecorded{}, nil)
	r := engine.NewRun(t, &c.precondition, session.State{Size: src.Total()})
	return c.finishSession(ctx, ofStream, r, c.makeInSession(ctx, r))
}

// insert uploads the whole of src, which is in memory, in a single request. seen is as in [engine.NewInsertion].
func (c *call) insert(ctx context.Context, src content.Source, loaded content.Loaded, seen *int64) error {
	if err := engine.ExpectCRC32C(c.spec, loaded.CRC32C); err != nil {
		return err
	}
	if err := expectMD5(c.spec, loaded.Open(), loaded.Size); err != nil {
		return err
	}
	i := engine.NewInsertion(c.newTransfer(src, engine.Unrecorded{}, nil), loaded, seen, func() {
		c.result.update(func(r *Result) { r.Skipped = SkipIdentical })
	})
	return c.finishSession(ctx, ofFile, nil, c.makeObject(ctx, i))
}

// expectMD5 compares the MD5 of n bytes with the one that the caller expects.
func expectMD5(spec Spec, r io.Reader, n int64) error {
	want := spec.MD5
	if want == nil {
		return nil
	}
	sum, err := source.MD5(r, n)
	if err != nil {
		return err
	}
	if sum == [md5.Size]byte(want) {
		return nil
	}
	return fmt.Errorf("%w: the source has MD5 %x, expected is %s", session.ErrChecksum, sum, hex.EncodeToString(want))
}

// finishSession decides what happens to the saved upload, and to the session of r, which ended with err. r is nil if the
// source was sent in one request.
func (c *call) finishSession(ctx context.Context, of medium, r *engine.Run, err error) error {
	err = endedBy(ctx, err, c.journal)
	var uri session.URI
	if r != nil {
		uri = r.URI()
		if err != nil && c.journal.Saved() {
			r.AskStored(ctx, grace.Requests)
		}
	}
	c.reportFailure(err)
	e := c.endOf(of, err)
	e.outdated = r != nil && r.Unqueried() || errors.Is(err, session.ErrSourceChanged)
	switch what := ending(e); what {
	case cancelSession:
		c.cancelSession(ctx, uri, err)
	case discard, discardAndCancel:
		left := c.journal.Discard()
		if what == discardAndCancel {
			c.cancelSession(ctx, uri, err)
		}
		return c.discarded(err, left)
	case keep:
		if e, ok := errors.AsType[*session.Error](err); ok && e.Open {
			c.journal.File().Rejected(e.Offset)
		}
		_, sent, _, committed := c.requests.Pos.Load()
		c.journal.File().Ended(committed, sent)
	}
	return err
}

// endOf describes the end of the upload with err.
func (c *call) endOf(of medium, err error) end {
	why, interrupted := errors.AsType[*engine.Interruption](err)
	_, unexpected := errors.AsType[*engine.UnexpectedBytes](err)
	return end{
		of: of, made: err == nil, unexpected: unexpected,
		savable: c.journal.Lease() != nil, saved: c.journal.Saved(), lost: c.journal.LeaseLost() != nil,
		canceled: interrupted && errors.Is(why, session.ErrCanceled),
		dead:     factOf(err != nil && !interrupted && saved.Dead(err)),
		refused:  errors.Is(err, session.ErrPrecondition), final: c.spec.NoClobber,
	}
}

// discarded returns the error of an upload that ended with err, after its saved upload was deleted with the error
// derr.
func (c *call) discarded(err, derr error) error {
	switch {
	case derr == nil:
		return err
	case err != nil:
		return errors.Join(err, derr)
	}
	c.warn(derr)
	return nil
}

// cancelSession cancels a session that can never be resumed, so that the service need not keep its bytes. A service
// that does not answer, or does not know the session, is not asked. err is that of the upload.
func (c *call) cancelSession(ctx context.Context, uri session.URI, err error) {
	if errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrSessionLost) || errors.Is(err, session.ErrCanceled) {
		return
	}
	c.wire().Drop(ctx, uri)
}
