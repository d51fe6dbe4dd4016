package batch

import (
	"context"
	"strings"

	"gcsup/internal/bucket"
	"gcsup/session"
)

// A page of a listing costs about as much as minServed GETs of single objects, which
// the workers make in parallel.
const (
	minServed = 8 // names that a page must answer to be worthwhile

	// After poorPages pages in a row that were not worthwhile, the next skipFirst names
	// are not looked up. Then one more page is tried. If that page is not worthwhile
	// either, the number doubles, up to skipMost.
	poorPages = 3
	skipFirst = 8
	skipMost  = 1024
)

// A Merge looks up names in a listing. Both are in the order of the raw bytes of the
// names. It keeps only the current page.
//
// If a page answers too few names, the bucket has many more objects there than the
// source has files. Then Merge starts a new listing at the next name. If several of
// these are not worthwhile, some names are left to be looked up one by one.
type Merge struct {
	bucket, prefix string
	pages          *pager

	page  []session.Object
	at    int    // index of the first object of page that is not less than name
	last  string // the greatest name in the listing so far
	began bool   // page is valid
	end   bool   // page is the last one

	name     string // the newest name that was looked up
	off      bool   // no more names are looked up
	unsorted bool   // off, because names were out of order

	served int // names that page answered
	poor   int // pages in a row that were not worthwhile
	skip   int // names that will not be looked up before the next try
	skips  int // the value of skip after the last poor page
}

// NewMerge returns a Merge with the listing of a bucket and prefix. It calls fetch for
// each page, also in another goroutine, but not concurrently. The caller must call Close.
func NewMerge(ctx context.Context, query bucket.Query, fetch Fetch) *Merge {
	return &Merge{bucket: query.Bucket, prefix: query.Prefix, pages: &pager{ctx: ctx, query: query, fetch: fetch}}
}

// Close cancels the request for the page that is read ahead, and waits for its end.
func (m *Merge) Close() { m.pages.close() }

// Unsorted reports whether no more names are looked up because those of the caller or
// of the listing were not in order.
func (m *Merge) Unsorted() bool { return m.unsorted }

// Lookup looks up the next name. The object is nil if the listing does not have it.
// listed is false if the name was not looked up. After an error no more names are.
func (m *Merge) Lookup(name string) (object *session.Object, listed bool, err error) {
	if !strings.HasPrefix(name, m.prefix) {
		return nil, false, nil
	}
	if !m.off && name < m.name {
		m.outOfOrder()
	}
	m.name = name
	for !m.off {
		for m.at < len(m.page) && m.page[m.at].Name < name {
			m.at++
		}
		switch {
		case m.at < len(m.page):
			m.serve()
			return m.object(name), true, nil
		case m.end:
			return nil, true, nil
		case m.skip > 0:
			m.skip--
			return nil, false, nil
		case !m.began:
			m.last = name
			err = m.add(m.pages.seek(name))
		case len(m.page) == 0 || m.worthwhile(): // a page that is not the last may be empty
			err = m.add(m.pages.next())
		default:
			m.leavePoor()
		}
	}
	return nil, false, err
}

// object returns the current object if it has the name, or nil. It is a copy that uses
// the strings of the caller, so that it does not keep the page in memory.
func (m *Merge) object(name string) *session.Object {
	if m.page[m.at].Name != name {
		return nil
	}
	o := m.page[m.at]
	o.Bucket, o.Name = m.bucket, name
	return &o
}

// serve counts a name that the page answers.
func (m *Merge) serve() {
	if m.served++; m.worthwhile() {
		m.poor, m.skips = 0, 0
		if !m.end {
			m.pages.prefetch()
		}
	}
}

// worthwhile reports whether the page answered enough names to be worth its request.
func (m *Merge) worthwhile() bool { return m.served >= minServed }

// leavePoor leaves a page that was not worthwhile, and decides whether the next names
// are looked up.
func (m *Merge) leavePoor() {
	if m.poor++; m.poor == poorPages {
		m.poor-- // one more poor page is enough
		m.skips = min(max(skipFirst, 2*m.skips), skipMost)
		m.skip = m.skips
	}
	m.page, m.at, m.began = nil, 0, false
}

// add adds a page whose names are not less than m.last.
func (m *Merge) add(page *bucket.Page, err error) error {
	if err != nil {
		m.stop()
		return err
	}
	for i := range page.Objects {
		name := page.Objects[i].Name
		if name < m.last || !strings.HasPrefix(name, m.prefix) {
			m.outOfOrder()
			return nil
		}
		m.last = name
	}
	m.page, m.at, m.began, m.end, m.served = page.Objects, 0, true, page.NextPageToken == "", 0
	return nil
}

// stop ends the merge. No more names are looked up.
func (m *Merge) stop() { m.off, m.page = true, nil }

// outOfOrder ends the merge because names are not sorted.
func (m *Merge) outOfOrder() {
	m.unsorted = true
	m.stop()
}
