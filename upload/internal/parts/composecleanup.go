package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// clean deletes the temporary objects. If the object was not made, it first cancels the
// sessions of the parts that are not finished.
func (c *composer) clean(ctx context.Context, joined bool) error {
	deleted := joined && c.file.common().DeleteSources // by the compose, so that the parts are probably absent
	if joined && !deleted {
		c.file.markOver(ctx)
	}
	var left leftovers
	c.removeNext(ctx, &left)
	for _, finished := range []bool{false, true} {
		// The sessions come first: once the service has answered, a refusal by a stranger is no
		// longer believed.
		c.each(func(p *filePart) {
			if p.finished() == finished {
				c.remove(ctx, p, !deleted, &left)
			}
		})
	}
	c.removeGroups(ctx, &left)
	if left.n == 0 {
		return nil
	}
	return fmt.Errorf("%d temporary objects or sessions are not removed: gs://%s/%s*: %w", left.n, c.file.Wire.Spec.Bucket, c.file.common().Prefix, left.first)
}

// remove deletes the temporary object of a part. If the part is not finished, it cancels the
// session, which may have made the object although that is not recorded. The name of the object has
// a random part, so that no other upload writes it. known is as in [decide.Request].
func (c *composer) remove(ctx context.Context, p *filePart, known bool, left *leftovers) {
	s := p.state()
	defer p.Retry.Close()
	if err := left.outage(); err != nil {
		left.add(err)
		return
	}
	if !s.Finished() {
		var made *session.Object
		if !s.URI.IsZero() {
			a, err := p.Ask(ctx, decide.Request{Known: true}, func(ctx context.Context) session.Reply { return p.Cancel(ctx, s.URI) })
			left.add(err)
			made = a.Object
		}
		if made == nil {
			a, err := p.Ask(ctx, decide.Request{}, p.Stat)
			left.add(err)
			made = a.Object
		}
		if made == nil {
			return
		}
		s.Generation = made.Generation
	}
	left.add(c.delete(ctx, p.Requester, s.Generation, known))
}

// removeNext aborts the multipart upload to the next temporary object of a stream. It deletes the object if the upload
// was completed, although that is not recorded.
func (c *composer) removeNext(ctx context.Context, left *leftovers) {
	next := c.next()
	if next == nil {
		return
	}
	x := next.file.Wire
	if err := abortMultipart(ctx, x, next.file.common().Upload, true); err != nil {
		left.add(err)
		return
	}
	switch a, err := x.Ask(ctx, decide.Request{}, x.Stat); {
	case err != nil:
		left.add(err)
	case a.Object != nil:
		left.add(c.delete(ctx, x, a.Object.Generation, true))
	}
}

// leftovers counts what could not be removed.
type leftovers struct {
	mu    sync.Mutex
	n     int
	first error // why the first one could not be removed
}

// outage returns why the retries of one deletion are spent, or nil. The others would wait as long, a few
// at a time: hours for a large file that is already complete.
func (l *leftovers) outage() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.first, session.ErrRetriesExhausted) {
		return l.first
	}
	return nil
}

// add counts err, unless it is nil.
func (l *leftovers) add(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.first = cmp.Or(l.first, err)
}

// errForeign means that another client may have written a temporary object.
var errForeign = errors.New("another client may have written it")

// removeGroups deletes the temporary objects that groups of parts were composed into. It leaves
// those that another client may have made. Of what an earlier process left of a stream, only the names are known, which
// have a random part.
func (c *composer) removeGroups(ctx context.Context, left *leftovers) {
	level, known := c.spans(), c.file.size > 0
	if !known && !c.file.common().Upload.IsZero() {
		level = append(level, span{}) // the last one, if its multipart upload was completed
	}
	_, _ = c.reduce(level, func(g span) (span, error) {
		if err := left.outage(); err != nil {
			left.add(err)
			return g, nil
		}
		x := c.file.Wire.To(c.file.temporary(g.Name))
		switch a, err := x.Ask(ctx, decide.Request{}, x.Stat); {
		case err != nil:
			left.add(err)
		case a.Step == decide.Absent:
		case known && !g.matches(a.Object):
			left.add(errForeign)
		default:
			left.add(c.delete(ctx, x, a.Object.Generation, true))
		}
		return g, nil
	})
}

// delete deletes a generation of the temporary object of x, so that a bucket with versioning does
// not keep it as a noncurrent version. Each deletion has retries of its own. known is as in
// [decide.Request].
func (c *composer) delete(ctx context.Context, x *engine.Requester, generation int64, known bool) error {
	spec := x.Spec
	spec.IfGenerationMatch = nil
	own := engine.NewRequester(c.file.Uplink, x.Part, x.Pos).To(spec)
	defer own.Retry.Close()
	_, err := own.Ask(ctx, decide.Request{Known: known}, func(ctx context.Context) session.Reply {
		return own.Plain(ctx, bucket.OpDelete, func(ctx context.Context, c *session.Client) session.Reply {
			return bucket.DeleteGeneration(ctx, c, spec, generation)
		})
	})
	return err
}

// each calls f for all parts, at most 8 at a time.
func (c *composer) each(f func(*filePart)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, p := range c.file.parts {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(p)
		})
	}
	wg.Wait()
}
