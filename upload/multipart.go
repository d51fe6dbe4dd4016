package upload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"gcsup/chunk"
	"gcsup/session"
)

// multipart is the joiner for ByMultipart. It sends the parts of a file as those of one multipart
// upload of the XML API. It makes no temporary objects that must be deleted.
type multipart struct {
	*parallel
	fresh     bool // the upload was just started: it is not saved, and no part was sent
	completed bool // the reply to a completion had the object, so that the upload no longer exists

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
	err = p.start(ctx)
	if refusal(err) && p.j.u.opts.Parallel.way != ByMultipart && !errors.Is(err, session.ErrCredentials) && !errors.Is(err, session.ErrNotFound) {
		e, _ := errors.AsType[*session.Error](err)
		return "multipart uploads are refused: " + e.Cause(), nil
	}
	return "", err
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

// start starts the multipart upload.
func (p *multipart) start(ctx context.Context) error {
	var uri session.URI
	_, err := p.j.requests.ask(ctx, func(ctx context.Context) session.Reply {
		// Wait for the reply even if the upload is cancelled: only the reply has the ID
		// with which the multipart upload can be aborted.
		longer, cancel := outliving(ctx, abandonTimeout)
		defer cancel()
		r := p.j.wire().startMultipart(longer)
		uri = r.URI
		return r
	})
	if !uri.IsZero() {
		p.parts.Upload = uri
	}
	switch {
	case err == nil:
		p.fresh, p.held = true, nil
		p.j.events.post(Event{Kind: Started})
	case !uri.IsZero():
		p.abandonNew(ctx)
	}
	return err
}

// spec returns the Spec of the object, which the requests of a part name.
func (p *multipart) spec(*piece) Spec { return p.j.spec }

// record returns a record that keeps nothing: sent puts a finished part into the Token.
func (p *multipart) record(*piece) record { return unrecorded{} }

// begin saves an upload that was just started. Otherwise it asks which parts the
// service has. If the upload no longer exists, begin returns the object that it made, or
// starts another upload.
func (p *multipart) begin(ctx context.Context) (made *session.Object, err error) {
	if p.fresh {
		return nil, p.saveNew(ctx)
	}
	_, err = p.inspect(ctx)
	if !errors.Is(err, errUploadGone) {
		return nil, err
	}
	if p.finished() {
		// An earlier request may have completed it since make looked at the destination.
		if o, err := p.joined(ctx); o != nil || err != nil {
			return o, err
		}
	}
	return nil, p.restart(ctx)
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
	if err := p.abandon(ctx); err != nil {
		p.warn(err.Error())
	}
}

// restart starts another multipart upload after this one disappeared.
func (p *multipart) restart(ctx context.Context) error {
	p.forget(p.pieces)
	p.j.events.post(Event{Kind: Restarted, Cause: "the multipart upload no longer exists"})
	if err := p.start(ctx); err != nil {
		return err
	}
	return p.saveNew(ctx)
}

// matches reports whether held has the size and the ETag of the part that was sent.
func (c *piece) matches(held session.UploadedPart) bool {
	return held.Size == c.rng.Len() && strings.Trim(held.ETag, `"`) == strings.Trim(c.done.ETag, `"`)
}

// join checks that the service has the parts that were sent, and completes the upload.
func (p *multipart) join(ctx context.Context) (*session.Object, error) {
	if j := p.j.journal; j != nil {
		// A later process needs the checksums of all parts to recognize the object.
		if err := j.saveVersion(ctx, j.change(func(*session.Token) {})); err != nil {
			return nil, err
		}
	}
	if missing, err := p.inspect(ctx); err != nil {
		return nil, err
	} else if missing {
		return nil, errPartMissing
	}
	var parts []session.UploadedPart
	for _, c := range p.pieces {
		parts = append(parts, p.held[c.i+1])
	}
	if others := len(p.held) - len(parts); others > 0 {
		return nil, fmt.Errorf("%w: the multipart upload has %d parts that were not sent", session.ErrUnexpectedData, others)
	}
	c := &joining{
		p: p.parallel, spec: p.j.spec, state: session.JoinState{Seen: p.parts.Seen}, made: p.made, whole: chunkSum{p.size, p.crc32c()},
		join: func(ctx context.Context, _ int64) session.Reply {
			r := p.j.wire().complete(ctx, p.parts.Upload, parts)
			p.completed = r.Object != nil
			return r
		},
	}
	o, err := c.hold(ctx)
	if err != nil {
		return nil, err
	}
	return p.describe(ctx, o), nil
}

// inspect asks which parts the service has, and resets finished ones that it does not have
// as they were sent.
func (p *multipart) inspect(ctx context.Context) (missing bool, err error) {
	held, err := p.list(ctx)
	if err != nil {
		return false, err
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
	return len(other) > 0, nil
}

// list returns the parts that the service has, by number. A second answer must confirm that
// a finished part is missing or differs. The error is errUploadGone if the service does not
// have the upload.
func (p *multipart) list(ctx context.Context) (map[int]session.UploadedPart, error) {
	held := map[int]session.UploadedPart{}
	for after, more := 0, true; more; {
		var last int
		a, err := p.j.requests.askKnown(ctx, func(ctx context.Context) session.Reply {
			parts, further, r := p.j.wire().parts(ctx, p.parts.Upload, after)
			if last, more = after, further; len(parts) > 0 {
				last = parts[len(parts)-1].Number
			}
			// A part that an earlier answer has as it was sent is not missing.
			maps.DeleteFunc(held, func(n int, had session.UploadedPart) bool { return n > after && !p.sentAs(had) })
			for _, part := range parts {
				if _, sent := held[part.Number]; !sent {
					held[part.Number] = part
				}
			}
			r.Differs = !p.agrees(held, after, last, further)
			return r
		})
		switch {
		case err != nil:
			return nil, err
		case a.Step == session.Absent:
			return nil, errUploadGone
		}
		after = last
	}
	return held, nil
}

// sentAs reports whether a part that the service has is one that was sent.
func (p *multipart) sentAs(held session.UploadedPart) bool {
	return held.Number <= len(p.pieces) && p.pieces[held.Number-1].matches(held)
}

// agrees reports whether the page of held with the numbers from after+1 to last has every
// finished part as it was sent, and no other part numbers. more reports that there are
// further pages.
func (p *multipart) agrees(held map[int]session.UploadedPart, after, last int, more bool) bool {
	for _, c := range p.pieces[min(after, len(p.pieces)):] {
		if more && c.i+1 > last {
			break
		}
		if c.done.Finished() && !c.matches(held[c.i+1]) {
			return false
		}
	}
	return last <= len(p.pieces)
}

// describe returns the metadata of the object that was just made. If it cannot be read, describe
// returns made, which has only what the reply to the completion describes.
func (p *multipart) describe(ctx context.Context, made *session.Object) *session.Object {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	a, err := p.j.requests.ask(ctx, func(ctx context.Context) session.Reply { return p.j.wire().statOf(ctx, p.j.spec) })
	if o := a.Object; err == nil && o != nil && (o.Generation == made.Generation || made.Generation == 0) && p.made(o) {
		return o
	}
	return made
}

// made reports whether o has the bytes of the file and may have been made by this
// upload: it is newer than the object seen before, and has no MD5, like every object
// of a multipart upload.
func (p *multipart) made(o *session.Object) bool {
	return o.Size == p.size && o.HasCRC32C && o.CRC32C == p.crc32c() && o.MD5 == nil && o.Generation > p.parts.Seen
}

// clean aborts the upload, unless it was completed. If the object was found at the destination,
// another upload of the same bytes may have made it.
func (p *multipart) clean(ctx context.Context, joined bool) error {
	if p.completed || p.parts.Upload.IsZero() {
		return nil
	}
	t := p.j.requests
	ask := t.askKnown
	if joined {
		ask = t.ask // it is probably absent
	}
	_, err := ask(ctx, func(ctx context.Context) session.Reply { return p.j.wire().abort(ctx, p.parts.Upload) })
	if err != nil {
		err = fmt.Errorf("the multipart upload to %s is not removed: %w", p.j.spec.URL(), err)
	}
	return err
}

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
