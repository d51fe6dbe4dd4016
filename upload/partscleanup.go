package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"gcsup/session"
)

// conclude deletes the temporary objects or keeps the saved upload, depending on err, with
// which the upload ended.
func (p *parallel) conclude(ctx context.Context, err error) error {
	j := p.j
	j.update(func(r *Result) {
		for _, c := range p.pieces {
			retry := c.transfer.retry
			r.ResumedFrom, r.Retries, r.Waited = r.ResumedFrom+c.resumed, r.Retries+retry.retries, r.Waited+retry.waiter.Waited()
		}
	})
	switch {
	case err == nil:
		p.finish(ctx)
		return nil
	case j.journal != nil && !j.journal.saved():
		return err // nothing was sent before the first save, or another process has the lease
	case j.journal == nil || dead(err) && !errors.Is(err, session.ErrSessionLost) || j.spec.NoClobber && errors.Is(err, session.ErrPrecondition):
		// Nothing can resume it.
		switch left := p.abandon(ctx); {
		case j.journal.saved() && left == nil:
			return errors.Join(err, j.journal.discard())
		case !j.journal.saved() && left != nil:
			p.warnOf(nil, left)
		}
	}
	if j.journal.saved() {
		j.journal.keep()
	}
	return err
}

// leased returns a context that ends when the lease is lost, so that its requests are not
// tried again. Another process then does what is left.
func (p *parallel) leased(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if lease := p.j.transfer.wire.lease; lease != nil {
		lost := lease.Context()
		stop = context.AfterFunc(lost, func() { cancel(context.Cause(lost)) })
	}
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// finish deletes the temporary objects of a finished upload. Those that cannot be deleted
// stay in the Token, and prune or the next call tries again.
func (p *parallel) finish(ctx context.Context) {
	ctx, stop := p.leased(ctx)
	defer stop()
	j := p.j
	if !p.parts.DeleteSources {
		p.over(ctx)
	}
	left, err := p.remove(ctx)
	if len(left) > 0 || err != nil {
		p.warnOf(left, err)
		if j.journal.saved() {
			j.journal.keep()
		}
		return
	}
	if j.journal.saved() {
		if err := j.journal.discard(); err != nil {
			j.events.post(Event{Kind: Warning, Cause: err.Error()})
		}
	}
}

// over notes that what is left is to delete the temporary objects.
func (p *parallel) over(ctx context.Context) {
	if j := p.j.journal; j.saved() {
		_ = j.saveVersion(ctx, j.change(func(t *session.Token) { t.Parts.Over = true })) // else a warning
	}
}

// abandonTimeout bounds abandon once the upload was cancelled, so that what is left can be
// reported before the call returns.
const abandonTimeout = abandonAfter * 3 / 4

// abandon cancels the sessions and deletes the temporary objects of an upload that cannot
// be resumed. It warns of those that the service does not delete. The error is that of a
// request that may succeed later.
func (p *parallel) abandon(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
		defer cancel()
	}
	ctx, stop := p.leased(ctx)
	defer stop()
	p.over(ctx)
	var mu sync.Mutex
	var failed error
	p.each(func(c *piece) {
		if err := c.cancel(ctx); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = err
		}
	})
	left, err := p.remove(ctx)
	if len(left) > 0 {
		p.warnOf(left, nil)
	}
	return cmp.Or(err, failed)
}

// cancel ends the session of a part that is not finished, as far as is known. If it is
// finished, cancel notes its object. The error is that of a request that may succeed
// later.
func (c *piece) cancel(ctx context.Context) error {
	uri := c.uri()
	if c.object != 0 || uri.IsZero() {
		return nil
	}
	t := c.transfer
	defer t.retry.close()
	r, err := t.retry.repeat(ctx, func(ctx context.Context) session.Reply { return t.wire.cancel(ctx, uri) })
	if err == nil && r.Object != nil {
		c.object = r.Object.Generation
	}
	return err
}

// warnOf reports temporary objects that could not be deleted.
func (p *parallel) warnOf(left []string, err error) {
	text := fmt.Sprintf("%d temporary objects could not be deleted: gs://%s/%s*", len(left), p.j.spec.Bucket, p.parts.Prefix)
	if err != nil {
		text = fmt.Sprintf("temporary objects may be left: gs://%s/%s*: %v", p.j.spec.Bucket, p.parts.Prefix, err)
	}
	p.j.events.post(Event{Kind: Warning, Cause: text})
}

// remove deletes the temporary objects, each by its generation. It returns the names of
// those that the service refuses to delete. The error is that of a request that may
// succeed later.
func (p *parallel) remove(ctx context.Context) (left []string, err error) {
	var mu sync.Mutex
	p.each(func(c *piece) {
		if c.object == 0 {
			return
		}
		refused, failed := p.delete(ctx, c.transfer, c.name(), c.object)
		mu.Lock()
		defer mu.Unlock()
		if refused {
			left = append(left, c.name())
		}
		err = cmp.Or(err, failed)
	})
	groups, failed := p.removeGroups(ctx)
	return append(left, groups...), cmp.Or(err, failed)
}

// removeGroups deletes the temporary objects between the parts and the object. It leaves
// those that another client may have made.
func (p *parallel) removeGroups(ctx context.Context) (left []string, err error) {
	t := p.j.transfer
	for level, depth := p.spans(), 1; len(level) > session.ComposeMax; depth++ {
		var above []span
		for _, group := range p.groups(level, depth) {
			whole, _ := join(group.name, group.spans)
			above = append(above, whole)
			spec := p.temporary(whole.Name)
			r, err := p.stat(ctx, spec)
			switch {
			case err != nil:
				return left, err
			case r.Status == http.StatusNotFound:
			case r.Status != http.StatusOK || !whole.is(r.Object):
				left = append(left, whole.Name)
			default:
				refused, err := p.delete(ctx, t, whole.Name, r.Object.Generation)
				if err != nil {
					return left, err
				}
				if refused {
					left = append(left, whole.Name)
				}
			}
		}
		level = above
	}
	return left, nil
}

// delete deletes a generation of a temporary object. refused reports that the service does
// not delete it.
func (p *parallel) delete(ctx context.Context, t *transfer, name string, generation int64) (refused bool, err error) {
	retry := newRetrier(p.j.u.opts.Policy, p.j.u.opts.Gate, p.j.transfer.retry.budget, p.j.events)
	defer retry.close()
	spec := p.temporary(name)
	spec.IfGenerationMatch = &generation
	r, err := retry.repeat(ctx, func(ctx context.Context) session.Reply { return t.wire.remove(ctx, spec) })
	if err != nil {
		return false, err
	}
	gone := r.Status >= 200 && r.Status < 300 || r.Status == http.StatusNotFound || r.Status == http.StatusPreconditionFailed
	return !gone, nil
}

// each calls f for every part, with up to 8 calls at a time.
func (p *parallel) each(f func(*piece)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, c := range p.pieces {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(c)
		})
	}
	wg.Wait()
}

// uri returns the session URI of a part, which is zero if it has none.
func (c *piece) uri() session.URI {
	switch j := c.p.j.journal; {
	case j != nil:
		return j.part(c.i).URI
	case c.saved != nil:
		return c.saved.URI
	}
	return c.session
}
