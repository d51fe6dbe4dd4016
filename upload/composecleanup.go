package upload

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	"gcsup/session"
)

// clean deletes the temporary objects. If the object was not made, it first cancels the
// sessions of the parts that are not finished.
func (p *composer) clean(ctx context.Context, joined bool) (left string, err error) {
	if joined && !p.parts.DeleteSources {
		p.markOver(ctx)
	}
	var failed error
	if !joined {
		failed = p.cancelAll(ctx)
	}
	names, err := p.remove(ctx)
	if len(names) > 0 {
		left = fmt.Sprintf("%d temporary objects could not be deleted: %s", len(names), p.pattern())
	}
	return left, cmp.Or(err, failed)
}

// leftovers describes the temporary objects that may be left.
func (p *composer) leftovers() string { return "temporary objects may be left: " + p.pattern() }

// pattern returns a pattern of the names of the temporary objects.
func (p *composer) pattern() string {
	return fmt.Sprintf("gs://%s/%s*", p.j.spec.Bucket, p.parts.Prefix)
}

// cancelAll cancels the sessions of the parts that are not finished.
func (p *composer) cancelAll(ctx context.Context) (failed error) {
	var mu sync.Mutex
	p.each(func(c *piece) {
		if err := c.cancel(ctx); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = err
		}
	})
	return failed
}

// remove deletes the temporary objects, each by its generation. It returns the names of
// those that the service refuses to delete. The error is that of a request that may
// succeed later.
func (p *composer) remove(ctx context.Context) (left []string, err error) {
	var mu sync.Mutex
	p.each(func(c *piece) {
		if !c.done.Finished() {
			return
		}
		refused, failed := p.delete(ctx, c.transfer, p.name(c), c.done.Generation)
		mu.Lock()
		defer mu.Unlock()
		if refused {
			left = append(left, p.name(c))
		}
		err = cmp.Or(err, failed)
	})
	groups, failed := p.removeGroups(ctx)
	return append(left, groups...), cmp.Or(err, failed)
}

// removeGroups deletes the temporary objects that groups of parts were composed into. It leaves
// those that another client may have made.
func (p *composer) removeGroups(ctx context.Context) (left []string, err error) {
	t := p.j.transfer
	for level, depth := p.spans(), 1; len(level) > session.ComposeMax; depth++ {
		var above []span
		for _, group := range p.groups(level, depth) {
			whole, _ := total(group.name, group.spans)
			above = append(above, whole)
			spec := p.temporary(whole.Name)
			r, err := p.stat(ctx, spec)
			switch {
			case err != nil:
				return left, err
			case r.Status == http.StatusNotFound:
			case r.Status != http.StatusOK || !whole.matches(r.Object):
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

// delete deletes a temporary object by its generation, so that a bucket with versioning does not
// keep it as a noncurrent version. refused reports that the service refuses to delete it.
func (p *composer) delete(ctx context.Context, t *transfer, name string, generation int64) (refused bool, err error) {
	retry := newRetrier(p.j.u.opts.Policy, p.j.u.opts.Gate, p.j.transfer.retry.budget, p.j.events)
	defer retry.close()
	spec := p.temporary(name)
	spec.IfGenerationMatch = nil
	r, err := retry.repeat(ctx, func(ctx context.Context) session.Reply { return t.wire.remove(ctx, spec, generation) })
	if err != nil {
		return false, err
	}
	gone := r.Status >= 200 && r.Status < 300 || r.Status == http.StatusNotFound || r.Status == http.StatusPreconditionFailed
	return !gone, nil
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
