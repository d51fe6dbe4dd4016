package upload

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"gcsup/session"
)

// send sends a part, unless the service has it already from an earlier process or from a request
// whose reply was lost.
func (p *multipart) send(ctx context.Context, c *piece) error {
	t := c.transfer
	defer t.retry.close()
	t.retry.stake(c.rng.Len())
	body, err := readPart(ctx, c.content.src, p.j.u.memory)
	if err != nil {
		return t.sourceFailed(ctx, err)
	}
	defer body.free()
	if body.data == nil {
		t.tally.reread.Add(c.rng.Len())
	}
	if has, err := p.has(ctx, c, body); err != nil {
		return err
	} else if has {
		c.resumed = c.rng.Len()
		return nil
	}
	t.events.post(Event{Kind: Started, Part: t.part})
	for refreshed, reconnected, damaged := false, false, 0; ; {
		etag, r, err := p.put(ctx, c, body)
		switch {
		case err != nil:
			return t.sourceFailed(ctx, err)
		case etag != "":
			p.sent(c, etag, body.crc32c)
			return nil
		case ctx.Err() != nil:
			return t.interrupted(ctx, r.Err)
		case r.NoUpload(): // lookFor checks whether the multipart upload exists
		case r.Status == http.StatusUnauthorized && !refreshed:
			refreshed = true
			continue
		case r.Damaged() && damaged < maxMissing:
			damaged++
			if err := body.unchanged(ctx); err != nil {
				return t.sourceFailed(ctx, err)
			}
		case !r.Retryable():
			return p.refused(c, r)
		}
		if !reconnected && r.StaleConnection() {
			reconnected = true
		} else if err := t.retry.Wait(ctx, failureOf(r), r.RetryAfter); err != nil {
			return t.stopped(ctx, err, r.Err)
		}
		refreshed = false // these credentials may expire too
		if r.Unsent || r.Damaged() {
			continue
		}
		if err := p.lookFor(ctx, c); err != nil {
			return err
		}
		if has, err := p.has(ctx, c, body); has || err != nil {
			return err
		}
	}
}

// put makes the request that carries a part. The error is one of reading the source.
func (p *multipart) put(ctx context.Context, c *piece, body *partBody) (etag string, r session.Reply, err error) {
	t := c.transfer
	t.pos.sent.Store(0)
	reader, finish := body.open()
	etag, r = t.wire.part(ctx, p.parts.Upload, c.i+1, c.rng.Len(), body.crc32c, &meter{r: reader, t: t})
	t.tally.count(&t.pos, 0, r.Sent)
	if err := finish(); err != nil {
		return "", r, err
	}
	return etag, r, nil
}

// lookFor asks the service for a part whose request failed, and updates held.
func (p *multipart) lookFor(ctx context.Context, c *piece) error {
	t := c.transfer
	var parts []session.UploadedPart
	r, err := t.retry.repeat(ctx, func(ctx context.Context) (r session.Reply) {
		parts, _, r = t.wire.parts(ctx, p.parts.Upload, c.i)
		return r
	})
	switch {
	case err != nil:
		return t.stopped(ctx, err, nil)
	case r.NoUpload():
		return errPartMissing
	case r.Status != http.StatusOK:
		return nil // send the part again
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = map[int]session.UploadedPart{}
	}
	delete(p.held, c.i+1)
	for _, part := range parts {
		if part.Number == c.i+1 {
			p.held[c.i+1] = part
		}
	}
	return nil
}

// has reports whether held has the part with the same bytes, by the MD5 in its ETag.
// If it does, has records the part as finished.
func (p *multipart) has(ctx context.Context, c *piece, body *partBody) (bool, error) {
	p.mu.Lock()
	held := p.held[c.i+1]
	p.mu.Unlock()
	if held.Size != c.rng.Len() {
		return false, nil
	}
	same, err := body.hasETag(held.ETag)
	if err != nil {
		return false, c.transfer.sourceFailed(ctx, err)
	}
	if same {
		p.sent(c, held.ETag, body.crc32c)
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

// refused returns the error for a reply to a part, with the committed bytes of all parts as its
// offset.
func (p *multipart) refused(c *piece, r session.Reply) error {
	e := r.Refusal()
	_, _, e.Offset = p.position()
	return c.transfer.retry.failure(e, fmt.Errorf("part %d", c.i+1))
}
