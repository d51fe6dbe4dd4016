package parts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"gcsup/internal/decide"
	"gcsup/internal/grace"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// multipartUpload is the joiner for upload.ByMultipart. It sends the parts of a file as those of one multipart
// upload of the XML API. It makes no temporary objects that must be deleted.
type multipartUpload struct {
	file      *dividedFile
	temporary bool                   // the object is one that only this upload writes
	fresh     bool                   // the upload was just started: it is not saved, and no part was sent
	completed bool                   // the reply to a completion had the object, so that the upload no longer exists
	held      map[int]multipart.Part // the parts that the service had when it was asked, by number
	hashFirst atomic.Bool            // a reply did not have the checksum of its part: later requests have it, so that the service checks it
}

// errUploadGone means that the service no longer has the multipart upload.
var errUploadGone = fmt.Errorf("%w: the multipart upload no longer exists", errPartMissing)

// startMultipart starts a multipart upload to the object of x. If it fails after that, it
// aborts the upload, because no later call could.
func startMultipart(ctx context.Context, u *engine.Uplink, x *engine.Requester) (session.URI, error) {
	var uri session.URI
	_, err := x.Ask(ctx, decide.Request{Optional: true}, func(ctx context.Context) session.Reply {
		// Wait for the reply even if the upload is canceled: only the reply has the ID
		// with which the multipart upload can be aborted.
		longer, cancel := saved.Outliving(ctx, grace.Requests)
		defer cancel()
		r := x.Plain(longer, multipart.OpStart, func(ctx context.Context, c *session.Client) session.Reply { return multipart.Start(ctx, c, x.Spec) })
		uri = r.URI
		return r
	})
	switch {
	case err == nil:
		x.Post(engine.Note{Kind: engine.Started})
	case !uri.IsZero():
		AbortUnsaved(ctx, u, x, uri)
	}
	return uri, err
}

// AbortUnsaved aborts a multipart upload that is not saved, and warns if it may be left.
func AbortUnsaved(ctx context.Context, u *engine.Uplink, x *engine.Requester, uri session.URI) {
	if err := abandoning(ctx, u, func(ctx context.Context) error { return abortMultipart(ctx, x, uri, true) }); err != nil {
		x.Post(engine.Note{Kind: engine.Warning, Cause: err.Error()})
	}
}

// abortMultipart aborts a multipart upload to the object of x. known is as in [decide.Request].
func abortMultipart(ctx context.Context, x *engine.Requester, uri session.URI, known bool) error {
	_, err := x.Ask(ctx, decide.Request{Known: known}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, multipart.OpAbort, func(ctx context.Context, c *session.Client) session.Reply {
			return multipart.Abort(ctx, c, x.Spec, uri)
		})
	})
	if err != nil {
		err = fmt.Errorf("the multipart upload to %s is not removed: %w", x.Spec.URL(), err)
	}
	return err
}

// begin asks which parts the service has. If the upload no longer exists, begin returns the
// object that it made, or starts another upload. It saves an upload that was just started.
func (m *multipartUpload) begin(ctx context.Context) (made *session.Object, err error) {
	if !m.fresh {
		switch err := m.inspect(ctx); {
		case err == errPartMissing:
			return nil, nil // it is sent again
		case !errors.Is(err, errUploadGone):
			return nil, err
		}
		// An earlier request may have completed it since make looked at the destination.
		if o, err := m.file.Settle(ctx); o != nil || err != nil {
			return o, err
		}
		if !m.file.startsOver() {
			return nil, fmt.Errorf("%w: the multipart upload no longer exists", session.ErrSessionLost)
		}
		for _, p := range m.file.parts {
			p.forget()
		}
		m.file.Wire.Post(engine.Note{Kind: engine.Restarted, Cause: "the multipart upload no longer exists"})
		uri, err := startMultipart(ctx, m.file.Uplink, m.file.Wire)
		if err != nil {
			return nil, err
		}
		m.held = nil
		m.file.Journal.Change(func(p *state.Parts) { p.Upload, p.Joining = uri, false })
	}
	m.fresh = false
	if err = m.file.Journal.Persist(ctx); err != nil { // even if the store has an earlier saved upload: it does not name this upload
		AbortUnsaved(ctx, m.file.Uplink, m.file.Wire, m.file.common().Upload) // no later call could
		return nil, fmt.Errorf("%w: %w", saved.ErrUnsaved, err)
	}
	m.file.startedOver()
	return nil, nil
}

// matches reports whether held has the size and the ETag of the part that was sent.
func (p *filePart) matches(held multipart.Part) bool {
	return held.Size == p.rng.Len() && strings.Trim(held.ETag, `"`) == strings.Trim(p.state().ETag, `"`)
}

// join checks that the service has the parts that were sent, and completes the upload.
func (m *multipartUpload) join(ctx context.Context) (*session.Object, error) {
	if err := m.inspect(ctx); err != nil {
		return nil, err
	}
	var parts []multipart.Part
	for _, p := range m.file.parts {
		parts = append(parts, m.held[p.i+1])
	}
	if others := len(m.held) - len(parts); others > 0 {
		return nil, fmt.Errorf("%w: the multipart upload has %d parts that were not sent", session.ErrUnexpectedData, others)
	}
	by := &joining{
		file: m.file, spec: m.file.Wire.Spec,
		state: decide.Join{Seen: m.file.common().Seen, Temporary: m.temporary, Unconditional: true, MayExist: m.file.common().Joining},
		made:  m.file.made, inspect: m.inspect, size: m.file.size, crc32c: m.file.crc32c(),
		join: func(ctx context.Context) session.Reply { // the checksums of all parts, with which a later process recognizes the object, are saved
			r := m.file.Wire.Plain(ctx, multipart.OpComplete, func(ctx context.Context, c *session.Client) session.Reply {
				return multipart.Complete(ctx, c, m.file.Wire.Spec, m.file.common().Upload, parts)
			})
			m.completed = r.Object != nil
			return r
		},
	}
	o, err := by.hold(ctx)
	if err != nil || m.temporary && o.HasCRC32C && o.Generation != 0 {
		return o, err
	}
	return m.describe(ctx, o), nil
}

// inspect asks which parts the service has, and resets finished ones that it does not have
// as they were sent. The error is then errPartMissing.
func (m *multipartUpload) inspect(ctx context.Context) error {
	held, err := m.list(ctx)
	if err != nil {
		return err
	}
	m.held = held
	for _, p := range m.file.parts {
		if p.finished() && !p.matches(held[p.i+1]) {
			if err := m.file.lost(p); err != nil {
				return err
			}
			p.forget()
			err = errPartMissing
		}
	}
	return err
}

// list returns the parts that the service has, by number. A second answer must confirm that
// a finished part is missing or differs. The error is errUploadGone if the service does not
// have the upload.
func (m *multipartUpload) list(ctx context.Context) (map[int]multipart.Part, error) {
	held := map[int]multipart.Part{}
	for after, more := 0, true; more; {
		var last int
		a, err := m.file.Wire.Ask(ctx, decide.Request{Known: true}, func(ctx context.Context) session.Reply {
			parts, further, r := listParts(ctx, m.file.Wire, m.file.common().Upload, after)
			if last, more = after, further; len(parts) > 0 {
				last = parts[len(parts)-1].Number
			}
			// A part that an earlier answer has as it was sent is not missing.
			maps.DeleteFunc(held, func(n int, had multipart.Part) bool { return n > after && !m.sentAs(had) })
			for _, part := range parts {
				if _, sent := held[part.Number]; !sent {
					held[part.Number] = part
				}
			}
			r.Differs = !m.agrees(held, after, last, further)
			return r
		})
		switch {
		case err != nil:
			return nil, err
		case a.Step == decide.Absent:
			return nil, errUploadGone
		}
		after = last
	}
	return held, nil
}

// listParts lists the parts of a multipart upload whose numbers are greater than after.
func listParts(ctx context.Context, x *engine.Requester, uri session.URI, after int) (parts []multipart.Part, more bool, _ session.Reply) {
	r := x.Plain(ctx, multipart.OpList, func(ctx context.Context, c *session.Client) (r session.Reply) {
		parts, more, r = multipart.List(ctx, c, x.Spec, uri, after)
		return r
	})
	return parts, more, r
}

// sentAs reports whether a part that the service has is one that was sent.
func (m *multipartUpload) sentAs(held multipart.Part) bool {
	return held.Number <= len(m.file.parts) && m.file.parts[held.Number-1].matches(held)
}

// agrees reports whether the page of held with the numbers from after+1 to last has every
// finished part as it was sent, and no other part numbers. more reports that there are
// further pages. Nothing is known of the parts that a stream left.
func (m *multipartUpload) agrees(held map[int]multipart.Part, after, last int, more bool) bool {
	if len(m.file.parts) == 0 {
		return true
	}
	for _, p := range m.file.parts[min(after, len(m.file.parts)):] {
		if more && p.i+1 > last {
			break
		}
		if p.finished() && !p.matches(held[p.i+1]) {
			return false
		}
	}
	return last <= len(m.file.parts)
}

// describe returns the metadata of the object that was just made. If it cannot be read, describe
// returns made, which has only what the reply to the completion describes.
func (m *multipartUpload) describe(ctx context.Context, made *session.Object) *session.Object {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	if o, err := m.file.Find(ctx); err == nil && o != nil && (o.Generation == made.Generation || made.Generation == 0) {
		return o
	}
	return made
}

// describeTimeout bounds the requests for the metadata of an object that was made.
const describeTimeout = 30 * time.Second

// clean aborts the upload, unless it was completed. If the object was found at the destination,
// another upload of the same bytes may have made it.
func (m *multipartUpload) clean(ctx context.Context, joined bool) error {
	if m.completed {
		return nil
	}
	return abortMultipart(ctx, m.file.Wire, m.file.common().Upload, !joined) // after a join it is probably absent
}

// committed requests the list of parts from the service.
func (m *multipartUpload) committed(ctx context.Context) (engine.Held, error) {
	held, err := m.list(ctx)
	switch {
	case errors.Is(err, errUploadGone):
		return engine.Held{State: engine.HeldGone}, nil
	case err != nil:
		return engine.Held{}, err
	}
	all := engine.Held{State: engine.HeldOpen}
	if len(m.file.parts) == 0 { // a stream left them
		for _, part := range held {
			all.Committed += part.Size
		}
	}
	for _, p := range m.file.parts {
		switch has, err := m.holds(ctx, p, held[p.i+1]); {
		case err != nil:
			return engine.Held{}, err
		case has:
			all.Committed += p.rng.Len()
		}
	}
	return all, nil
}

// holds reports whether a resume would not send the part again, because the service has it as held.
func (m *multipartUpload) holds(ctx context.Context, p *filePart, held multipart.Part) (bool, error) {
	switch {
	case p.finished():
		return p.matches(held), nil
	case held.Size != p.rng.Len() || p.content == nil:
		return false, nil
	}
	body, err := p.content.Part(ctx, m.file.Memory)
	if err != nil {
		return false, engine.SourceFailed(ctx, err)
	}
	defer body.Free()
	has, err := body.HasETag(ctx, held.ETag)
	if err != nil {
		return false, engine.SourceFailed(ctx, err)
	}
	return has, nil
}
