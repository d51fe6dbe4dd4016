package parts

import (
	"context"
	"fmt"
	"io"

	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// sending is the conversation that sends one part of a multipart upload.
type sending struct {
	*engine.Transfer
	multipart *multipartUpload
	part      *filePart
	body      *source.Part
	etag      string // of the part, once the service has it
	state     decide.Part
}

// send sends a part, unless the service has it already from an earlier process.
func (m *multipartUpload) send(ctx context.Context, p *filePart, slot *connections.Slot) error {
	defer p.Retry.Close()
	p.Retry.Stake(p.rng.Len())
	if err := m.file.savePart(ctx, p.i); err != nil {
		p.drop()
		return err
	}
	body := p.body
	if body == nil {
		var err error
		if body, err = p.content.Part(ctx, m.file.Memory); err != nil {
			return engine.SourceFailed(ctx, err)
		}
	}
	defer body.Free()
	if m.hashFirst.Load() {
		if err := body.Hash(ctx); err != nil {
			return engine.SourceFailed(ctx, err)
		}
	}
	s := &sending{Transfer: p.transfer(slot), multipart: m, part: p, body: body}
	held := m.held[p.i+1]
	if has, err := s.is(ctx, held); err != nil {
		return err
	} else if has {
		p.resumed = p.rng.Len()
		m.has(p, held.ETag, body)
		return nil
	}
	p.Post(engine.Note{Kind: engine.Started})
	a, err := p.Converse(ctx, s, session.Action{Step: session.Send})
	switch {
	case a.Step == session.Fail:
		_, _, _, committed := m.file.Position()
		a.Err.Offset = m.file.from + committed
		return p.Retry.Failure(a.Err, fmt.Errorf("part %d", p.i+1))
	case err != nil:
		return err
	case a.Step == decide.Absent:
		return errUploadGone
	}
	m.has(p, s.etag, body)
	slot.Risk.Committed(p.rng.Len())
	return nil
}

// Perform sends the part, or asks whether the service has it. The service checks a checksum that is known.
// Otherwise its reply has that of the part.
func (s *sending) Perform(ctx context.Context, a session.Action) (session.Reply, error) {
	if a.Step == session.Query {
		return s.query(ctx)
	}
	if s.Risk.Take(ctx) != nil { // after a failed request
		return session.Reply{}, engine.NewInterruption(ctx, nil)
	}
	defer s.Risk.End()
	s.Wire.Pos.Sent.Store(0)
	crc32c, known := s.body.CRC32C()
	reader, finish := s.body.Open()
	metered := s.Meter(reader)
	defer metered.Close()
	r := s.Wire.Send(ctx, multipart.OpPart, 0, metered, func(ctx context.Context, c *session.Client, body io.Reader) (r session.Reply) {
		upload, number, size := s.multipart.file.common().Upload, s.part.i+1, s.part.rng.Len()
		if known {
			s.etag, r = multipart.PutPart(ctx, c, s.Wire.Spec, upload, number, size, crc32c, body)
		} else {
			s.etag, r = multipart.StreamPart(ctx, c, s.Wire.Spec, upload, number, size, s.body.CRC32C, body)
		}
		return r
	})
	s.Wire.Handed(0, r.Sent)
	if err := finish(); err != nil {
		return r, engine.SourceFailed(ctx, err)
	}
	if r.Differs {
		s.multipart.hashFirst.Store(true)
	}
	return r, nil
}

func (s *sending) query(ctx context.Context) (session.Reply, error) {
	parts, _, r := listParts(ctx, s.Wire, s.multipart.file.common().Upload, s.part.i)
	for _, held := range parts {
		if held.Number != s.part.i+1 {
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

func (s *sending) HandleReply(_ context.Context, r session.Reply) (a session.Action, _ error) {
	s.state, a = s.state.Decide(r)
	return a, nil
}

// is reports whether held is the part with the bytes of the source, by the MD5 in its ETag.
func (s *sending) is(ctx context.Context, held multipart.Part) (bool, error) {
	if held.Size != s.part.rng.Len() {
		return false, nil
	}
	same, err := s.body.HasETag(ctx, held.ETag)
	if err != nil {
		return false, engine.SourceFailed(ctx, err)
	}
	return same, nil
}

// has records that the service has a part, whose bytes were all read. The saved upload is saved in the background, because a
// process that resumes the upload also finds the part in the list of the service.
func (m *multipartUpload) has(p *filePart, etag string, body *source.Part) {
	crc32c, _ := body.CRC32C()
	p.finish(state.Part{ETag: etag, CRC32C: crc32c})
	if p.content != nil {
		p.content.Committed(p.rng.Len())
	}
	p.Retry.Succeeded()
	p.Progressed()
	p.Retry.Budget.Progressed()
	m.file.release()
	if m.file.Journal.Old() {
		m.file.Journal.SaveSoon()
	}
}
