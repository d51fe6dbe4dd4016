package upload

import (
	"context"
	"fmt"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// sending is the conversation that sends one part of a multipart upload.
type sending struct {
	*transfer
	p     *multipart
	c     *piece
	body  *source.Hashed
	etag  string // of the part, once the service has it
	state session.PartState
}

// send sends a part, unless the service has it already from an earlier process.
func (p *multipart) send(ctx context.Context, c *piece) error {
	t := c.transfer
	defer t.retry.close()
	t.retry.stake(c.rng.Len())
	body, err := c.content.Hash(ctx, p.j.u.memory)
	if err != nil {
		return t.sourceFailed(ctx, err)
	}
	defer body.Free()
	s := &sending{transfer: t, p: p, c: c, body: body}
	p.mu.Lock()
	held := p.held[c.i+1]
	p.mu.Unlock()
	if has, err := s.is(ctx, held); err != nil {
		return err
	} else if has {
		c.resumed = c.rng.Len()
		p.sent(c, held.ETag, body.CRC32C)
		return nil
	}
	t.events.post(Event{Kind: Started})
	a, err := t.retry.converse(ctx, s, session.Action{Step: session.Send})
	switch {
	case err != nil:
		return t.stopped(ctx, err, a.Err)
	case a.Step == session.Absent:
		return errUploadGone
	case a.Step == session.Fail:
		_, _, a.Err.Offset = p.position()
		return t.retry.failure(a.Err, fmt.Errorf("part %d", c.i+1))
	}
	p.sent(c, s.etag, body.CRC32C)
	return nil
}

// perform sends the part, or asks whether the service has it.
func (s *sending) perform(ctx context.Context, a session.Action) (session.Reply, error) {
	if a.Step == session.Query {
		return s.query(ctx)
	}
	s.pos.sent.Store(0)
	reader, finish := s.body.Open()
	etag, r := s.wire.part(ctx, s.p.parts.Upload, s.c.i+1, s.c.rng.Len(), s.body.CRC32C, &meter{r: reader, t: s.transfer})
	s.tally.count(s.pos, 0, r.Sent)
	s.etag = etag
	err := finish()
	if err == nil && r.Damaged() {
		err = s.body.Unchanged(ctx)
	}
	if err != nil {
		return r, s.sourceFailed(ctx, err)
	}
	return r, nil
}

func (s *sending) query(ctx context.Context) (session.Reply, error) {
	parts, _, r := s.wire.parts(ctx, s.p.parts.Upload, s.c.i)
	for _, held := range parts {
		if held.Number != s.c.i+1 {
			continue
		}
		has, err := s.is(ctx, held)
		if err != nil {
			return r, err
		}
		r.Ours, s.etag = has, held.ETag
	}
	return r, nil
}

func (s *sending) handleReply(_ context.Context, r session.Reply) (a session.Action, _ error) {
	s.state, a = session.DecidePart(s.state, r)
	return a, nil
}

// is reports whether held is the part with the bytes of the source, by the MD5 in its ETag.
func (s *sending) is(ctx context.Context, held session.UploadedPart) (bool, error) {
	if held.Size != s.c.rng.Len() {
		return false, nil
	}
	same, err := s.body.HasETag(held.ETag)
	if err != nil {
		return false, s.sourceFailed(ctx, err)
	}
	return same, nil
}

// sent records that the service has a part. The Token is saved in the background, because a
// process that resumes the upload also finds the part in the list of the service.
func (p *multipart) sent(c *piece, etag string, crc32c uint32) {
	t := c.transfer
	done := session.Part{ETag: etag, CRC32C: crc32c}
	c.finished(done)
	t.retry.succeeded()
	t.retry.progressed()
	t.retry.budget.progressed()
	t.wire.stale.Store(false)
	if j := p.j.journal; j != nil {
		j.change(func(t *session.Token) { t.Parts.List[c.i] = done })
		if j.old(time.Now()) {
			j.saveSoon()
		}
	}
}
