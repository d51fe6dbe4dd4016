package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// Stream sends a stream in parts. The bytes of a part are in memory until the service has it, so that no other process
// can continue the upload. The parts are those of a multipart upload to the object, or of as many multipart uploads to
// temporary objects as the stream needs, which are composed.
type Stream struct {
	whole   *Upload        // composes the object; nil if there is one multipart upload to the object
	removal *saved.Journal // records the temporary objects, if there are any
	most    int            // parts of a multipart upload
	content *source.Stream
	next    section // was read, and does not fit in the multipart upload before; its body is nil if there is none

	Used       *connections.Usage // nil if no part was sent
	Unverified error              // as in [Upload]

	mu   sync.Mutex // held while last changes, and by Position and Progress
	last *Upload    // the multipart upload that gets the parts
	sums sums       // of the multipart uploads before
}

// section is a part of a stream that was read.
type section struct {
	body *source.Part
	rng  chunk.Range
}

// sums are those of multipart uploads of a stream that are completed.
type sums struct {
	parts, retries int
	waited         time.Duration
}

// StreamWindow reports whether a stream can be sent in parts if its first window has n bytes.
func StreamWindow(n, share int64) bool {
	return n >= multipart.MinPart && (share == 0 || share >= streamConnections*multipart.MinPart)
}

// NewStream returns the upload of content in parts as d and chosen describe. The first window of content is known, and
// [StreamWindow] accepts it. The journal of d records the temporary objects, so that they are removed if the process
// ends.
func NewStream(d Division, chosen *state.Parts, content *source.Stream) *Stream {
	s := &Stream{removal: d.Journal, most: d.Options.most(), content: content}
	d.Journal = &saved.Journal{} // the saved upload has no parts
	d.Journal.Begin(chunk.Identity{}, chosen)
	base, budget := chosen.Size, d.Memory.Budget()
	f := &dividedFile{Division: d, size: -1}
	sizes := func(offset int64) (want, must int64) {
		return streamPart(base, offset, budget), streamPart(0, offset, budget)
	}
	if chosen.Prefix == "" {
		s.last = &Upload{dividedFile: f, joiner: &multipartUpload{file: f}}
	} else {
		// The size of the parts has a limit here, because there can be more multipart uploads.
		sizes = func(offset int64) (want, must int64) {
			return streamPart(base, offset, overlapping(d.Memory.Share())), 0
		}
		d.Journal.Change(func(p *state.Parts) { p.Size = 0 })
		s.whole = &Upload{dividedFile: f, joiner: &composer{f}}
		s.last = s.piece(chosen.Upload)
	}
	content.Divide(multipart.MinPart, sizes)
	return s
}

// piece returns the multipart upload to the next temporary object.
func (s *Stream) piece(uri session.URI) *Upload {
	f := s.whole.multipartTo(len(s.whole.parts), uri)
	if s.last != nil {
		f.from = s.last.from + s.last.size
	}
	return &Upload{dividedFile: f, joiner: &multipartUpload{file: f, temporary: true}}
}

// Send sends the stream, makes the object, and compares it with the stream.
func (s *Stream) Send(ctx context.Context) (*session.Object, error) {
	object, err := s.makeObject(ctx)
	if errors.Is(err, errPartMissing) {
		err = fmt.Errorf("%w: %w", session.ErrSessionLost, err) // its bytes are no longer in memory
	}
	made := s.whole
	if made == nil {
		made = s.last
	}
	object, err = made.verified(ctx, object, err)
	s.Unverified = made.Unverified
	return object, err
}

// makeObject sends the parts and makes the object.
func (s *Stream) makeObject(ctx context.Context) (*session.Object, error) {
	for {
		more, err := s.sendAll(ctx)
		if s.last.Journal.Finished() > 0 {
			s.last.Wire.Retry.Progressed() // restores the budget for requests about the whole object
		}
		if err != nil {
			return nil, err
		}
		if s.whole == nil {
			s.last.updatePosition()
			if err := s.last.confirm(ctx); err != nil {
				return nil, err
			}
			return s.join(ctx)
		}
		if !more {
			return s.compose(ctx)
		}
		if err := s.continueIn(ctx); err != nil {
			return nil, err
		}
	}
}

// join completes the multipart upload.
func (s *Stream) join(ctx context.Context) (*session.Object, error) {
	object, err := s.last.joiner.join(ctx)
	if !errors.Is(err, errUploadGone) {
		return object, err
	}
	// A request whose reply was lost may have completed it.
	find := s.last.Find
	switch {
	case s.last.common().Joining:
		find = s.last.Settle
	case s.whole == nil: // then another client has made whatever there is
		return nil, err
	}
	if made, failed := find(ctx); made != nil || failed != nil {
		return made, failed
	}
	return nil, err
}

// complete makes the temporary object of the last multipart upload.
func (s *Stream) complete(ctx context.Context) error {
	made, err := s.join(ctx)
	if err != nil {
		return err
	}
	f, p := s.whole.dividedFile, s.last
	made, _ = p.Wire.Confirm(ctx, made)
	made, err = engine.VerifyObject(made, p.Wire.Spec, p.size, p.crc32c())
	if err == nil && made.Generation == 0 {
		err = errors.New("the temporary object has no generation")
	}
	if err != nil {
		return p.Wire.Retry.Failure(&session.Error{Op: multipart.OpComplete, Status: 200, Kind: session.ErrUnexpectedData}, err)
	}
	i := len(f.parts)
	f.Journal.Change(func(parts *state.Parts) {
		parts.List, parts.Upload = append(parts.List, state.Part{Generation: made.Generation, CRC32C: p.crc32c()}), session.URI{}
	})
	pos := engine.NewPosition(p.size)
	part := &filePart{Requester: engine.NewRequester(f.Uplink, i+1, pos).To(f.temporary(f.partName(i))), i: i, rng: chunk.Range{From: p.from, To: p.from + p.size}}
	part.record = f.Journal.RecordPart(i+1, part.content)
	part.place(p.size)
	_, retries, waited := p.Sums()
	s.mu.Lock()
	defer s.mu.Unlock()
	f.parts = append(f.parts, part)
	s.sums = sums{s.sums.parts + len(p.parts), s.sums.retries + retries, s.sums.waited + waited}
	s.last = &Upload{dividedFile: &dividedFile{Division: Division{Journal: &saved.Journal{}}, from: p.from + p.size}} // no parts
	return nil
}

// continueIn makes the temporary object of the last multipart upload, and starts another one.
func (s *Stream) continueIn(ctx context.Context) error {
	if err := s.complete(ctx); err != nil {
		return err
	}
	f := s.whole.dividedFile
	next := f.multipartTo(len(f.parts), session.URI{})
	uri, err := startMultipart(ctx, f.Uplink, next.Wire)
	if err != nil {
		return err
	}
	f.Journal.Change(func(p *state.Parts) { p.Upload = uri })
	s.record(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.piece(uri)
	return nil
}

// record saves what must be removed if the process ends.
func (s *Stream) record(ctx context.Context) {
	now := s.whole.common()
	s.removal.Change(func(p *state.Parts) { p.Upload, p.List = now.Upload, append([]state.Part(nil), now.List...) })
	if err := s.removal.Persist(ctx); err != nil && ctx.Err() == nil {
		s.whole.Wire.Post(engine.Note{Kind: engine.Warning, Cause: "what the upload stores would not be removed if the process were killed: " + err.Error()})
	}
}

// compose makes the object from the temporary ones.
func (s *Stream) compose(ctx context.Context) (*session.Object, error) {
	f, p := s.whole, s.last
	size, crc32c := p.from+p.size, checksum.Combine(f.crc32c(), p.crc32c(), p.size)
	if err := f.Expect.CheckEnd(ctx, size); err != nil {
		return nil, err
	}
	if err := engine.ExpectCRC32C(f.Wire.Spec, crc32c); err != nil {
		return nil, err
	}
	if err := s.complete(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	f.size = size
	s.mu.Unlock()
	f.updatePosition()
	return f.joiner.join(ctx)
}

// Finish removes what is left after the object was made.
func (s *Stream) Finish(ctx context.Context) error { return s.upload().Finish(ctx) }

// Abandon removes everything that the service stores.
func (s *Stream) Abandon(ctx context.Context) error { return s.upload().Abandon(ctx) }

// upload returns the upload of the object.
func (s *Stream) upload() *Upload {
	if s.whole != nil {
		return s.whole
	}
	return s.last
}

// Position returns the sums over all parts.
func (s *Stream) Position() (size, sent, arrived, committed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, sent, arrived, committed = s.last.Position()
	if s.whole != nil {
		before := s.last.from
		size, sent, arrived, committed = max(s.whole.size, -1), before+sent, before+arrived, before+committed
	}
	return size, sent, arrived, committed
}

// Progress returns how many parts there are, are finished, and are being sent.
func (s *Stream) Progress() (count, done, sending int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, done, sending = s.last.Progress()
	return s.sums.parts + count, s.sums.parts + done, sending
}

// Sums returns the retries of all parts.
func (s *Stream) Sums() (resumed int64, retries int, waited time.Duration) {
	_, retries, waited = s.last.Sums()
	return 0, s.sums.retries + retries, s.sums.waited + waited
}

// sendAll reads parts, and sends each one while the next are read. more reports that the stream has more than the
// multipart upload may have. If a part fails, the others are interrupted, and the error is that of the first.
func (s *Stream) sendAll(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	share := s.last.pool().Join(nil)
	s.last.share.Store(share)
	defer func() { s.Used = cmp.Or(s.Used, new(share.Leave())) }()
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
		var part *filePart
		if part, err = s.read(ctx); err != nil {
			if err != io.EOF && err != errFull {
				fail(err)
			}
			break
		}
		slot := share.Await(ctx, share.Queue(), s.last.risk(part))
		if slot == nil {
			part.body.Free()
			break
		}
		senders.Go(func() {
			err := s.last.joiner.send(ctx, part, slot)
			share.Release(slot, part.stored())
			if err != nil {
				fail(err)
			}
		})
	}
	senders.Wait()
	if first == nil && ctx.Err() != nil {
		first = engine.NewInterruption(ctx, nil) // no part was being sent
	}
	return err == errFull, first
}

// errFull means that the multipart upload has as many parts as it may have, and the stream continues.
var errFull = errors.New("the multipart upload has all its parts")

// read reads the next part. At the end of the stream the error is io.EOF, and the size is known.
func (s *Stream) read(ctx context.Context) (*filePart, error) {
	next, err := s.next, error(nil)
	if s.next = (section{}); next.body == nil {
		next.body, next.rng, err = s.content.NextPart(ctx)
	}
	f := s.last
	n := len(f.parts)
	if err == nil && n >= s.most && s.whole != nil {
		s.next, err = next, errFull
	}
	switch {
	case err == io.EOF || err == errFull:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.size = f.parts[n-1].rng.To
		if err == io.EOF {
			f.Wire.Pos.Size.Store(f.from + f.size)
		}
		return nil, err
	case err != nil:
		return nil, engine.SourceFailed(ctx, err)
	}
	if err := s.tooLong(n, next.rng); err != nil {
		next.body.Free()
		return nil, err
	}
	f.Journal.Change(func(p *state.Parts) { p.List = append(p.List, state.Part{}) })
	rng := chunk.Range{From: next.rng.From - f.from, To: next.rng.To - f.from}
	q := engine.NewRequester(f.Uplink, s.sums.parts+n+1, engine.NewPosition(rng.Len())).To(f.Wire.Spec)
	p := &filePart{Requester: q, i: n, rng: rng, body: next.body}
	p.record = f.Journal.RecordPart(n+1, p.content)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = append(f.parts, p)
	return p, nil
}

// tooLong returns an error if the stream has more bytes than its n parts may have, than an object can have, or than the
// caller expects.
func (s *Stream) tooLong(n int, next chunk.Range) error {
	if size := s.upload().Expect.Size; size != nil && next.To > *size {
		return s.upload().Expect.Sized(next.To)
	}
	switch {
	case next.To > MaxObject: // temporary objects could hold more, which the compose at the end would refuse
		return fmt.Errorf("%w: the stream has more than the %d bytes that an object can have (5 TiB)", session.ErrInvalid, int64(MaxObject))
	case n < s.most:
		return nil
	}
	return tooLong(next.From, n, "this memory: give it more memory (--memory), a spool (--spool)")
}

// Close frees what was read and not sent.
func (s *Stream) Close() {
	if s.next.body != nil {
		s.next.body.Free()
	}
}
