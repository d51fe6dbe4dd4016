package batch

import (
	"context"
	"errors"

	"gcsup/internal/bucket"
	"gcsup/session"
)

// A Fetch reads one page of a listing.
type Fetch func(context.Context, bucket.Query) (*bucket.Page, error)

// pager reads the pages of a listing. It fetches at most one page ahead, in a
// goroutine that ends with close and owns the pager until then.
type pager struct {
	ctx   context.Context
	query bucket.Query // of the next page; without a PageToken there is none, see seek
	fetch Fetch

	last      string // the greatest name so far
	restarted string // last at the newest restart, see load

	ahead  chan fetched // receives the next page; nil if it is not being fetched
	cancel func()       // cancels the request for it
}

// fetched is the result of fetching a page.
type fetched struct {
	page *bucket.Page
	err  error
}

// seek starts a listing of the objects whose names are not less than name, and
// returns its first page.
func (p *pager) seek(name string) (*bucket.Page, error) {
	p.close()
	p.query.StartOffset, p.query.PageToken = "", ""
	if name > p.query.Prefix {
		p.query.StartOffset = name
	}
	return p.got(p.fetch(p.ctx, p.query))
}

// next returns the page after the one that seek or next returned before.
func (p *pager) next() (*bucket.Page, error) {
	if p.ahead == nil {
		return p.got(p.load(p.ctx))
	}
	f := <-p.ahead
	p.close()
	return p.got(f.page, f.err)
}

// got records where the next page begins.
func (p *pager) got(page *bucket.Page, err error) (*bucket.Page, error) {
	if err == nil {
		p.query.PageToken = page.NextPageToken
		if n := len(page.Objects); n > 0 {
			p.last = page.Objects[n-1].Name
		}
	}
	return page, err
}

// load fetches the page of the token. The token may be days old, because large
// uploads can take place between two pages. How long a token is valid is not
// documented. If it is refused, load starts another listing at the last name.
func (p *pager) load(ctx context.Context) (*bucket.Page, error) {
	page, err := p.fetch(ctx, p.query)
	e, ok := errors.AsType[*session.Error](err)
	if !ok || !errors.Is(e, session.ErrInvalid) || p.last == p.restarted {
		return page, err
	}
	p.restarted = p.last
	p.query.StartOffset, p.query.PageToken = p.last, ""
	if page, err = p.fetch(ctx, p.query); err == nil && len(page.Objects) > 0 && page.Objects[0].Name == p.last {
		page.Objects = page.Objects[1:]
	}
	return page, err
}

// prefetch starts to fetch the page that next will return, and does not wait for it.
// It does nothing if that page is being fetched or does not exist.
func (p *pager) prefetch() {
	if p.ahead != nil || p.query.PageToken == "" {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	ahead := make(chan fetched, 1)
	go func() {
		defer close(ahead)
		page, err := p.load(ctx)
		ahead <- fetched{page, err}
	}()
	p.ahead, p.cancel = ahead, cancel
}

// close cancels the request for the next page and waits for the goroutine.
func (p *pager) close() {
	if p.ahead == nil {
		return
	}
	p.cancel()
	for range p.ahead {
	}
	p.ahead, p.cancel = nil, nil
}
