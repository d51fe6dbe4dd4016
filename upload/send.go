package upload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// smallLimit is up to where a file goes in one request that is not resumable,
// but carries its checksum.
const smallLimit = 8 << 20

// progressEvery is how often at most Progress is reported while bytes flow, and
// Comparing while they are read.
const progressEvery = 200 * time.Millisecond

// begin opens a session, or sends a small object whole.
func (t *transfer) begin(ctx context.Context) (session.Reply, error) {
	if err := t.preconditions(ctx, true); err != nil {
		return session.Reply{}, err
	}
	if t.small != nil && t.unmet == nil {
		return t.insert(ctx), nil
	}
	r := t.exchange(ctx, func(ctx context.Context, _ *watch) session.Reply {
		return t.u.client.Start(ctx, t.spec, t.content.total())
	})
	if r.URI.IsZero() {
		return r, nil
	}
	t.uri = r.URI
	if t.unmet != nil {
		t.dropSession(ctx)
		return r, t.unmet
	}
	if t.token != nil {
		// Saved before the first byte goes out, see send.
		t.token = &session.Token{
			ID: t.res.ID, Endpoint: t.u.client.Endpoint(), Spec: t.spec, Created: time.Now(), URI: r.URI,
			SourcePath: t.token.SourcePath, Source: t.file.identity, Restarts: t.state.Restarts,
		}
	}
	t.event(Event{Kind: Started})
	return r, nil
}

func (t *transfer) insert(ctx context.Context) session.Reply {
	t.event(Event{Kind: Started})
	crc := t.file.sum.Sum()
	t.sent = 0
	r := t.exchange(ctx, func(ctx context.Context, w *watch) session.Reply {
		body := &meter{r: w.body(bytes.NewReader(t.small)), t: t}
		return t.u.client.Insert(ctx, t.spec, int64(len(t.small)), crc, body)
	})
	t.count(0, r.Sent)
	return r
}

// send sends the next part, which may be the last.
func (t *transfer) send(ctx context.Context) (session.Reply, error) {
	if err := t.preconditions(ctx, false); err != nil {
		return session.Reply{}, err
	}
	p, err := t.content.part(ctx, t.state.Committed, t.bound.size())
	if err != nil {
		return session.Reply{}, t.sourceFailed(ctx, err)
	}
	from := p.From
	if p.last {
		// The last moment: after this request the object is there.
		if err := t.content.unchanged(ctx); err != nil {
			return session.Reply{}, errors.Join(t.sourceFailed(ctx, err), p.finish())
		}
		t.state.Size = p.To
		t.res.Size = p.To
	}
	if err := t.save(ctx, p.To); err != nil {
		return session.Reply{}, errors.Join(err, p.finish())
	}

	var checkpoints *saver
	if t.token != nil && !p.last {
		checkpoints = startSaver(ctx, t.u.opts.Store)
	}
	t.sent = from
	began := time.Now()
	t.checked = began
	r := t.exchange(ctx, func(ctx context.Context, w *watch) session.Reply {
		body := &meter{r: w.body(p.body), t: t, checkpoints: checkpoints}
		if p.last {
			return t.u.client.Finalize(ctx, t.uri, p.Range, p.To, p.crc32c, body)
		}
		return t.u.client.Put(ctx, t.uri, p.Range, t.content.total(), body)
	})
	took := time.Since(began)
	if checkpoints != nil {
		if err := checkpoints.stop(); err != nil {
			t.event(Event{Kind: Warning, Cause: err.Error()})
		}
	}
	t.count(from, r.Sent)
	if err := p.finish(); err != nil {
		return session.Reply{}, t.sourceFailed(ctx, err)
	}
	switch {
	case p.last:
	case r.Status == 308 && r.Committed >= p.To:
		t.bound.passed(p.Len(), took)
	case r.Status != 308 && r.Sent > from:
		t.cutFrom, t.cutLen = from, r.Sent-from
	}
	return r, nil
}

// count adds up what one request handed to the network.
func (t *transfer) count(from, to int64) {
	t.res.BytesSent += to - from
	t.res.BytesResent += max(0, min(to, t.handed)-from)
	t.handed = max(t.handed, to)
	t.sent = to
}

// meter sees the bytes of a request on their way: for progress, and for
// checkpoints.
type meter struct {
	r           io.Reader
	t           *transfer
	checkpoints *saver
	n           int64
}

// flowing is how much of a request must have gone out, more than the buffers on
// the way hold, before it tells other uploads that the service is back.
const flowing = 16 << 20

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	t := m.t
	t.sent += int64(n)
	if m.checkpoints != nil {
		if c, ok := t.checkpoint(); ok {
			t.token = withCheckpoint(*t.token, c)
			m.checkpoints.offer(t.token)
		}
	}
	if m.n += int64(n); m.n >= flowing && m.n-int64(n) < flowing {
		t.u.throttle.Succeeded(t.retry)
		t.retry = false
	}
	if now := time.Now(); now.Sub(t.reported) >= progressEvery {
		t.reported = now
		t.event(Event{Kind: Progress})
	}
	return n, err
}

// checkpoint is the next one to save, once the checksum has passed it.
func (t *transfer) checkpoint() (chunk.Checkpoint, bool) {
	last := int64(0)
	if n := len(t.token.Checkpoints); n > 0 {
		last = t.token.Checkpoints[n-1].Offset
	}
	now, offset := time.Now(), t.file.sum.Offset()
	if !checkpointDue(offset, last, now.Sub(t.checked)) {
		return chunk.Checkpoint{}, false
	}
	c, ok := t.file.sum.Nearest(offset)
	if !ok || c.Offset <= last {
		return chunk.Checkpoint{}, false
	}
	t.checked = now
	return c, true
}

// save makes the Token durable, before a request that sends up to offset to.
func (t *transfer) save(ctx context.Context, to int64) error {
	if t.token == nil {
		return nil
	}
	token := *t.token
	token.Committed = t.state.Committed
	token.HighWater = max(token.HighWater, to)
	if !t.file.copied { // else it stays one whose bytes are still to be compared
		token.Source = t.file.identity
	}
	if c, ok := t.file.sum.Nearest(t.file.sum.Offset()); ok && c.Offset > 0 {
		t.token = withCheckpoint(token, c)
	} else {
		t.token = pruned(token)
	}
	if err := t.u.opts.Store.Save(ctx, t.token); err != nil {
		return err
	}
	t.saved = true
	return nil
}

// sourceFailed handles an error of the source. A stream that failed can never
// be finished, so the service need not keep its bytes.
func (t *transfer) sourceFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return t.interrupted(ctx, nil)
	}
	if t.file == nil {
		t.dropSession(ctx)
	}
	return sourceError(err)
}

// dropSession cancels a session that is of no more use. It is a courtesy: one
// that is left alone expires.
func (t *transfer) dropSession(ctx context.Context) {
	if t.uri.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	t.exchange(ctx, func(ctx context.Context, _ *watch) session.Reply {
		return t.u.client.Cancel(ctx, t.uri)
	})
}

// preconditions holds the preconditions against the destination before the
// first byte is sent, because the service does so only after the last. It
// looks once. Where the object cannot be seen it leaves the matter to the
// service.
//
// An object that is missing where one is wanted may also mean that the bucket
// is missing. Opening the session tells, so this is only noted when one is
// about to be opened.
func (t *transfer) preconditions(ctx context.Context, begins bool) error {
	if t.looked || !t.spec.Conditional() {
		return nil
	}
	for {
		r := t.exchange(ctx, func(ctx context.Context, _ *watch) session.Reply {
			return t.u.opts.Objects.Stat(ctx, t.spec)
		})
		switch {
		case ctx.Err() != nil:
			return t.interrupted(ctx, nil)
		case r.Status == 200 && r.Object != nil:
			t.looked = true
			return t.spec.Unmet(r.Object)
		case r.Status == 404:
			t.looked = true
			unmet := t.spec.Unmet(nil)
			if begins {
				t.unmet = unmet
				return nil
			}
			return unmet
		case r.Retryable():
			err := &session.Error{Op: r.Op, Status: r.Status, Reason: r.Reason, Message: r.Message, Err: r.Err}
			if err := t.backOff(ctx, session.Action{Err: err, RetryAfter: r.RetryAfter}); err != nil {
				return err
			}
		default:
			t.looked = true
			return nil
		}
	}
}

// stat looks whether the object at the destination is the one that this upload
// makes.
func (t *transfer) stat(ctx context.Context) (session.Reply, error) {
	ours, err := t.content.whole(ctx)
	if err != nil {
		return session.Reply{}, t.sourceFailed(ctx, err)
	}
	r := t.exchange(ctx, func(ctx context.Context, _ *watch) session.Reply {
		return t.u.opts.Objects.Stat(ctx, t.spec)
	})
	if o := r.Object; o != nil {
		r.Ours = o.Size == t.content.total() && o.HasCRC32C && o.CRC32C == ours
	}
	return r, nil
}

// load reads a small file into memory.
func (t *transfer) load(ctx context.Context) error {
	size := t.file.src.Size()
	data := make([]byte, size)
	body := t.file.src.Body(chunk.Range{From: 0, To: size}, t.file.sum)
	defer body.Close()
	if _, err := io.ReadFull(body, data); err != nil {
		return err
	}
	t.small = data
	return t.file.unchanged(ctx)
}
