package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"gcsup/chunk"
	"gcsup/session"
)

// multipart is the joiner for ByMultipart. It sends the parts of a file as those of one multipart
// upload of the XML API. It makes no temporary objects that must be deleted.
type multipart struct {
	*parallel
	fresh bool // the upload was just started: it is not saved, and no part was sent

	mu   sync.Mutex
	held map[int]session.UploadedPart // the parts that the service had when it was asked, by number
}

var _ joiner = (*multipart)(nil)

// errUploadGone means that the service no longer has the multipart upload.
var errUploadGone = fmt.Errorf("%w: the multipart upload no longer exists", errPartMissing)

// unsuitable returns the reason why a multipart upload does not support the settings
// of the object, or "".
func (p *multipart) unsuitable() string { return p.j.spec.NotMultipart() }

// plan starts the upload. With InParts, the parts are small enough for one of each connection
// to fit in memory.
func (p *multipart) plan(ctx context.Context) (why string, err error) {
	memory := p.j.u.memory.Budget() / int64(p.j.u.opts.Parallel.connections)
	if p.j.u.opts.Parallel.auto {
		memory = autoMinPart // it is better to read some parts twice than to make all parts small
	}
	p.parts.Size = multipartSize(p.size, p.parts.Size, memory)
	if p.parts.Size >= p.size {
		return "a part of a multipart upload has at least 5 MiB", nil
	}
	if why, err := p.whyUndivided(ctx); why != "" || err != nil {
		return why, err
	}
	refused, err := p.start(ctx)
	switch {
	case err != nil:
		return "", err
	case refused == nil:
		return "", nil
	case p.j.u.opts.Parallel.way == ByMultipart, errors.Is(refused, session.ErrNotFound):
		return "", p.j.transfer.retry.failure(refused, nil)
	}
	return "multipart uploads are refused: " + refused.Cause(), nil
}

// multipartSize returns the size of the parts of a file of size bytes, within the
// limits of the service. want is the size that suits the connections. memory is the
// memory for one part; 0 means no limit.
func multipartSize(size, want, memory int64) int64 {
	if memory > 0 {
		want = min(want, chunk.Floor(memory))
	}
	return max(min(want, session.MultipartMaxPart), session.MultipartMinPart, chunk.Ceil((size+session.MultipartMaxParts-1)/session.MultipartMaxParts))
}

// start starts the multipart upload. refused is the error if the service does not allow it.
func (p *multipart) start(ctx context.Context) (refused *session.Error, err error) {
	r, err := p.ask(ctx, func(ctx context.Context) session.Reply {
		// Wait for the reply even if the upload is cancelled: only the reply has the ID
		// with which the multipart upload can be aborted.
		longer, cancel := outliving(ctx, abandonTimeout)
		defer cancel()
		return p.j.transfer.wire.startMultipart(longer)
	})
	switch {
	case err != nil && !r.URI.IsZero():
		p.parts.Upload = r.URI
		p.abandonNew(ctx)
		return nil, err
	case err != nil:
		return nil, err
	case !r.URI.IsZero():
		p.parts.Upload, p.fresh, p.held = r.URI, true, nil
		p.j.events.post(Event{Kind: Started})
		return nil, nil
	}
	refused = r.Refusal()
	if r.Status == http.StatusNotFound && r.FromService {
		refused.Kind = session.ErrNotFound
	}
	return refused, nil
}

// spec returns the Spec of the object, which the requests of a part name.
func (p *multipart) spec(*piece) Spec { return p.j.spec }

// record returns a record that keeps nothing: sent puts a finished part into the Token.
func (p *multipart) record(*piece) record { return unrecorded{} }

// begin saves an upload that was just started. Otherwise it asks which parts the
// service has, and resets those that differ from the Token, so that they are sent
// again. If the upload no longer exists, begin returns the object that it made, or
// starts another upload.
func (p *multipart) begin(ctx context.Context) (made *session.Object, err error) {
	if p.fresh {
		return nil, p.saveNew(ctx)
	}
	held, err := p.confirmed(ctx)
	switch {
	case errors.Is(err, errUploadGone):
		if p.finished() {
			// An earlier request may have completed it since make looked at the destination.
			if o, err := p.joined(ctx); o != nil || err != nil {
				return o, err
			}
		}
		return nil, p.restart(ctx)
	case err != nil:
		return nil, err
	}
	p.mu.Lock()
	p.held = held
	p.mu.Unlock()
	var other []*piece
	for _, c := range p.pieces {
		if c.done.Finished() && !c.matches(held[c.i+1]) {
			other = append(other, c)
		}
	}
	p.forget(other)
	return nil, nil
}

// saveNew saves an upload before its first part is sent. If that fails, it aborts the upload,
// because no later call could.
func (p *multipart) saveNew(ctx context.Context) error {
	p.fresh = false
	j := p.j.journal
	if j == nil {
		return nil
	}
	err := j.saveVersion(ctx, j.change(func(t *session.Token) { t.Parts.Upload = p.parts.Upload }))
	if err != nil {
		p.abandonNew(ctx)
	}
	return err
}

// abandonNew aborts an upload that is not saved, and warns if it may be left.
func (p *multipart) abandonNew(ctx context.Context) {
	if left := p.abandon(ctx); left != nil {
		p.warn(p.leftovers() + ": " + left.Error())
	}
}

// restart starts another multipart upload after this one disappeared.
func (p *multipart) restart(ctx context.Context) error {
	p.forget(p.pieces)
	p.j.events.post(Event{Kind: Restarted, Cause: "the multipart upload no longer exists"})
	refused, err := p.start(ctx)
	if refused != nil {
		err = p.j.transfer.retry.failure(refused, nil)
	}
	if err != nil {
		return err
	}
	return p.saveNew(ctx)
}

// forget resets parts to ones that were not sent.
func (p *multipart) forget(parts []*piece) {
	for _, c := range parts {
		c.forget()
	}
	if j := p.j.journal; j != nil {
		j.change(func(t *session.Token) {
			for _, c := range parts {
				t.Parts.List[c.i] = session.Part{}
			}
		})
	}
}

// matches reports whether held has the size and the ETag of the part that was sent.
func (c *piece) matches(held session.UploadedPart) bool {
	return held.Size == c.rng.Len() && strings.Trim(held.ETag, `"`) == strings.Trim(c.done.ETag, `"`)
}

// join checks that the service has the parts that were sent, and completes the upload. If a reply
// is lost, join looks for the object that the request may have made.
func (p *multipart) join(ctx context.Context) (*session.Object, error) {
	if j := p.j.journal; j != nil {
		// A later process needs the checksums of all parts to recognize the object.
		if err := j.saveVersion(ctx, j.change(func(*session.Token) {})); err != nil {
			return nil, err
		}
	}
	parts, err := p.compare(ctx)
	if err != nil {
		return nil, err
	}
	t := p.j.transfer
	for refreshed := false; ; {
		r := t.wire.complete(ctx, p.parts.Upload, parts)
		switch {
		case r.Status == http.StatusOK && r.Object != nil:
			t.retry.succeeded()
			return p.describe(ctx, r.Object)
		case ctx.Err() != nil:
			return nil, t.interrupted(ctx, r.Err)
		case r.Status == http.StatusUnauthorized && !refreshed:
			refreshed = true
			continue
		case r.NoUpload():
		case r.Status == http.StatusConflict: // the service still works on an earlier request
		case r.Status == http.StatusBadRequest && r.Reason == "InvalidPart":
			return nil, errPartMissing
		case !r.Retryable():
			return nil, t.retry.failure(r.Refusal(), nil)
		}
		if r.NoUpload() {
			if o, err := p.joined(ctx); o != nil || err != nil {
				return o, err
			}
		}
		if err := t.retry.Wait(ctx, failureOf(r), r.RetryAfter); err != nil {
			return nil, t.stopped(ctx, err, r.Err)
		}
		refreshed = false // these credentials may expire too
		if o, err := p.joined(ctx); o != nil || err != nil {
			return o, err
		}
		if r.NoUpload() {
			return nil, errUploadGone
		}
	}
}

// failureOf returns the error for a reply after which the request will be repeated.
func failureOf(r session.Reply) *session.Error {
	return &session.Error{Op: r.Op, Status: r.Status, Reason: r.Reason, Message: r.Message, Err: r.Err, FromService: r.FromService}
}

// compare returns the parts that the service has, if they are those that were sent. If one
// differs, the error is errPartMissing.
func (p *multipart) compare(ctx context.Context) (parts []session.UploadedPart, err error) {
	held, err := p.confirmed(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range p.pieces {
		part := held[c.i+1]
		if !c.matches(part) {
			err = errPartMissing // begin then resets it
		}
		parts = append(parts, part)
		delete(held, c.i+1)
	}
	if err == nil && len(held) > 0 {
		return nil, fmt.Errorf("%w: the multipart upload has %d parts that were not sent", session.ErrUnexpectedData, len(held))
	}
	return parts, err
}

// confirmed returns the parts that the service has. If they differ from those that
// were sent, it requests the list twice.
func (p *multipart) confirmed(ctx context.Context) (map[int]session.UploadedPart, error) {
	held, err := p.list(ctx)
	if err != nil || p.agrees(held) {
		return held, err
	}
	t := p.j.transfer
	if err := t.retry.Wait(ctx, &session.Error{Op: session.OpParts, Err: errPartsDiffer, FromService: true}, 0); err != nil {
		return nil, t.stopped(ctx, err, nil)
	}
	again, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range p.pieces {
		if part := held[c.i+1]; c.done.Finished() && c.matches(part) {
			again[c.i+1] = part
		}
	}
	return again, nil
}

// agrees reports whether held has every finished part as it was sent, and no other
// part numbers.
func (p *multipart) agrees(held map[int]session.UploadedPart) bool {
	for _, c := range p.pieces {
		if c.done.Finished() && !c.matches(held[c.i+1]) {
			return false
		}
	}
	for number := range held {
		if number > len(p.pieces) {
			return false
		}
	}
	return true
}

// errPartsDiffer is the cause of a second request for the list of parts.
var errPartsDiffer = errors.New("the list of parts differs from the parts that were sent")

// list returns the parts that the service has, by number. The error is errUploadGone if
// two answers agree that it does not have the upload.
func (p *multipart) list(ctx context.Context) (map[int]session.UploadedPart, error) {
	held := map[int]session.UploadedPart{}
	for after, denied := 0, false; ; {
		var parts []session.UploadedPart
		var more bool
		r, err := p.ask(ctx, func(ctx context.Context) (r session.Reply) {
			parts, more, r = p.j.transfer.wire.parts(ctx, p.parts.Upload, after)
			return r
		})
		switch {
		case err != nil:
			return nil, err
		case r.NoUpload() && denied:
			return nil, errUploadGone
		case r.NoUpload():
			denied = true
			if err := p.j.transfer.retry.Wait(ctx, failureOf(r), r.RetryAfter); err != nil {
				return nil, p.j.transfer.stopped(ctx, err, nil)
			}
			continue
		case r.Status != http.StatusOK:
			return nil, p.j.transfer.retry.failure(r.Refusal(), nil)
		}
		denied = false
		for _, part := range parts {
			held[part.Number] = part
			after = part.Number
		}
		if !more {
			return held, nil
		}
	}
}

// describe returns the metadata of the object that was just made. If it cannot be read, describe
// returns made, which has only what the reply to the completion describes.
func (p *multipart) describe(ctx context.Context, made *session.Object) (*session.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	r, err := p.stat(ctx, p.j.spec)
	if o := r.Object; err == nil && o != nil && (o.Generation == made.Generation || made.Generation == 0 && p.matches(o)) {
		return o, nil
	}
	return made, nil
}

// matches reports whether o has the bytes of the file and may have been made by this
// upload: it is newer than the object seen before, and has no MD5, like every object
// of a multipart upload.
func (p *multipart) matches(o *session.Object) bool {
	return o.Size == p.size && o.HasCRC32C && o.CRC32C == p.crc32c() && o.MD5 == nil && o.Generation > p.parts.Seen
}

// joined returns the object at the destination if an earlier request completed the upload.
func (p *multipart) joined(ctx context.Context) (*session.Object, error) {
	r, err := p.stat(ctx, p.j.spec)
	switch {
	case err != nil:
		return nil, p.j.transfer.stopped(ctx, err, nil)
	case r.Status == http.StatusNotFound:
		return nil, nil
	case r.Status != http.StatusOK:
		return nil, p.j.transfer.retry.failure(r.Refusal(), nil) // the object may exist
	case p.matches(r.Object):
		return r.Object, nil
	}
	return nil, nil
}

// clean aborts the upload, unless it was completed.
func (p *multipart) clean(ctx context.Context, joined bool) (left string, err error) {
	if joined || p.parts.Upload.IsZero() {
		return "", nil
	}
	r, err := p.ask(ctx, func(ctx context.Context) session.Reply { return p.j.transfer.wire.abort(ctx, p.parts.Upload) })
	switch {
	case err != nil:
		return "", err
	case r.Status == http.StatusNoContent, r.Status == http.StatusNotFound && r.FromService:
		return "", nil
	}
	return fmt.Sprintf("the multipart upload to %s could not be aborted: %s", p.j.spec.URL(), r.Refusal().Cause()), nil
}

// leftovers describes the multipart upload that may be left.
func (p *multipart) leftovers() string { return "a multipart upload may be left: " + p.j.spec.URL() }

// query requests the list of parts from the service.
func (p *multipart) query(ctx context.Context, token *session.Token) (Holding, error) {
	held, err := p.list(ctx)
	switch {
	case errors.Is(err, errUploadGone):
		return Holding{State: SessionGone}, nil
	case err != nil:
		return Holding{}, err
	}
	whole := Holding{State: SessionOpen}
	for _, c := range p.pieces {
		if part, ok := held[c.i+1]; ok && part.Size == c.rng.Len() {
			whole.Stored += part.Size
		}
	}
	return whole, nil
}
