package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// Stream sends a stream in the parts of a multipart upload. The bytes of a part are in memory until the service has
// it, so that no other process can continue the upload.
type Stream struct {
	*Upload
	content *source.Stream
}

// StreamWindow reports whether a stream can be sent in parts if its first window has n bytes.
func StreamWindow(n, share int64) bool {
	return n >= multipart.MinPart && (share == 0 || share >= streamConnections*multipart.MinPart)
}

// NewStream returns the upload of content in parts as d and chosen describe. The first window of content is known, and
// [StreamWindow] accepts it. The journal of d is not used.
func NewStream(d Division, chosen *state.Parts, content *source.Stream) *Stream {
	d.Journal = &saved.Journal{} // the saved upload has no parts
	d.Journal.Begin(chunk.Identity{}, chosen)
	base, budget := chosen.Size, d.Memory.Budget()
	content.Divide(multipart.MinPart, func(offset int64) (want, must int64) {
		return streamPart(base, offset, budget), streamPart(0, offset, budget)
	})
	f := &dividedFile{Division: d, size: -1}
	return &Stream{&Upload{dividedFile: f, joiner: &multipartUpload{file: f}}, content}
}

// Send sends the stream, makes the object, and compares it with the stream.
func (s *Stream) Send(ctx context.Context) (*session.Object, error) {
	object, err := s.makeObject(ctx)
	if errors.Is(err, errPartMissing) {
		err = fmt.Errorf("%w: %w", session.ErrSessionLost, err) // its bytes are no longer in memory
	}
	return s.verified(ctx, object, err)
}

// makeObject sends the parts and makes the object.
func (s *Stream) makeObject(ctx context.Context) (*session.Object, error) {
	err := s.sendAll(ctx)
	if s.Journal.Finished() > 0 {
		s.Wire.Retry.Progressed() // restores the budget for requests about the whole object
	}
	if err != nil {
		return nil, err
	}
	s.updatePosition()
	if err := s.confirm(ctx); err != nil {
		return nil, err
	}
	object, err := s.joiner.join(ctx)
	if errors.Is(err, errUploadGone) && s.common().Joining {
		// A request whose reply was lost may have completed it.
		if made, failed := s.Settle(ctx); made != nil || failed != nil {
			return made, failed
		}
	}
	return object, err
}

// sendAll reads the parts, and sends each one while the next are read. If one fails, the others are interrupted, and
// the error is that of the first.
func (s *Stream) sendAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	share := s.pool().Join()
	s.share.Store(share)
	defer func() { s.Used = new(share.Leave()) }()
	var once sync.Once
	var first error
	fail := func(err error) {
		once.Do(func() {
			first = err
			cancel(errSibling)
		})
	}
	var senders sync.WaitGroup
	for {
		part, err := s.next(ctx)
		if err != nil {
			if err != io.EOF {
				fail(err)
			}
			break
		}
		slot := share.Await(ctx, share.Queue(), s.risk(part))
		if slot == nil {
			part.body.Free()
			break
		}
		senders.Go(func() {
			err := s.joiner.send(ctx, part, slot)
			share.Release(slot, part.stored())
			if err != nil {
				fail(err)
			}
		})
	}
	senders.Wait()
	if first == nil && ctx.Err() != nil {
		return engine.NewInterruption(ctx, nil) // no part was being sent
	}
	return first
}

// next reads the next part. At the end of the stream the error is io.EOF, and the size is known.
func (s *Stream) next(ctx context.Context) (*filePart, error) {
	body, rng, err := s.content.NextPart(ctx)
	n := len(s.parts)
	switch {
	case err == io.EOF:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.size = s.parts[n-1].rng.To
		s.Wire.Pos.Size.Store(s.size)
		return nil, io.EOF
	case err != nil:
		return nil, engine.SourceFailed(ctx, err)
	}
	if err := s.tooLong(n, rng); err != nil {
		body.Free()
		return nil, err
	}
	s.Journal.Change(func(p *state.Parts) { p.List = append(p.List, state.Part{}) })
	q := engine.NewRequester(s.Uplink, n+1, engine.NewPosition(rng.Len())).To(s.Wire.Spec)
	p := &filePart{Requester: q, i: n, rng: rng, body: body}
	p.record = s.Journal.RecordPart(n+1, p.content)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, p)
	return p, nil
}

// tooLong returns an error if the stream has more bytes than its n parts may have, or than the caller expects.
func (s *Stream) tooLong(n int, next chunk.Range) error {
	if size := s.Expect.Size; size != nil && next.To > *size {
		return s.Expect.Sized(next.To)
	}
	if n < multipart.MaxParts {
		return nil
	}
	return fmt.Errorf("%w: the stream has more than the %d bytes that %d parts hold with this memory: "+
		"give it more memory (--memory), a spool (--spool), or one connection (--parallel off)", session.ErrInvalid, next.From, n)
}
