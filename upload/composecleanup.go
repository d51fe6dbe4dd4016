package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"gcsup/session"
)

// clean deletes the temporary objects. If the object was not made, it first cancels the
// sessions of the parts that are not finished.
func (p *composer) clean(ctx context.Context, joined bool) error {
	if joined && !p.parts.DeleteSources {
		p.markOver(ctx)
	}
	var left leftovers
	if !joined {
		p.each(func(c *piece) {
			left.add(c.cancel(ctx))
			left.add(p.find(ctx, c))
		})
	}
	// If the compose has deleted the parts, they are probably absent.
	known := !joined || !p.parts.DeleteSources
	p.each(func(c *piece) {
		if c.done.Finished() {
			left.add(p.delete(ctx, c.transfer.requester, p.name(c), c.done.Generation, known))
		}
	})
	p.removeGroups(ctx, &left)
	if left.n == 0 {
		return nil
	}
	return fmt.Errorf("%d temporary objects or sessions are not removed: %s: %w", left.n, p.pattern(), left.first)
}

// find looks for the temporary object of a part whose session may have made it although that is
// not recorded. Its name has a random part, so that no other upload writes it.
func (p *composer) find(ctx context.Context, c *piece) error {
	if c.done.Finished() {
		return nil
	}
	spec := p.temporary(p.name(c))
	a, err := c.transfer.ask(ctx, func(ctx context.Context) session.Reply { return c.transfer.wire.statOf(ctx, spec) })
	if a.Object != nil {
		c.done = session.Part{Generation: a.Object.Generation}
	}
	return err
}

// leftovers counts what could not be removed.
type leftovers struct {
	mu    sync.Mutex
	n     int
	first error // why the first one could not be removed
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

// pattern returns a pattern of the names of the temporary objects.
func (p *composer) pattern() string {
	return fmt.Sprintf("gs://%s/%s*", p.j.spec.Bucket, p.parts.Prefix)
}

// errForeign means that another client may have written a temporary object.
var errForeign = errors.New("another client may have written it")

// removeGroups deletes the temporary objects that groups of parts were composed into. It leaves
// those that another client may have made.
func (p *composer) removeGroups(ctx context.Context, left *leftovers) {
	t := p.j.requests
	for level, depth := p.spans(), 1; len(level) > session.ComposeMax; depth++ {
		var above []span
		for _, group := range p.groups(level, depth) {
			whole, _ := total(group.name, group.spans)
			above = append(above, whole)
			spec := p.temporary(whole.Name)
			switch a, err := t.ask(ctx, func(ctx context.Context) session.Reply { return t.to(spec).statOf(ctx, spec) }); {
			case err != nil:
				left.add(err)
			case a.Step == session.Absent:
			case !whole.matches(a.Object):
				left.add(errForeign)
			default:
				left.add(p.delete(ctx, t, whole.Name, a.Object.Generation, true))
			}
		}
		level = above
	}
}

// delete deletes a temporary object by its generation, so that a bucket with versioning does not
// keep it as a noncurrent version. known is as in [session.Request].
func (p *composer) delete(ctx context.Context, t *requester, name string, generation int64, known bool) error {
	spec := p.temporary(name)
	spec.IfGenerationMatch = nil
	own := newRequester(p.j.uplink, t.events.part, t.pos)
	defer own.retry.close()
	ask := own.ask
	if known {
		ask = own.askKnown
	}
	_, err := ask(ctx, func(ctx context.Context) session.Reply { return own.to(spec).remove(ctx, spec, generation) })
	return err
}

// removeUnfinished cancels the session of a part that is not finished. If the session has made an
// object, removeUnfinished deletes it.
func (p *composer) removeUnfinished(ctx context.Context, c *piece) error {
	if err := c.cancel(ctx); err != nil || !c.done.Finished() {
		return err
	}
	err := p.delete(ctx, c.transfer.requester, p.name(c), c.done.Generation, true)
	c.done = session.Part{}
	return err
}

// each calls f for all parts, at most 8 at a time.
func (p *composer) each(f func(*piece)) {
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
