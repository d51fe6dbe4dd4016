package batch

import (
	"context"
	"errors"
	"iter"
	"strings"

	"gcsup/internal/bucket"
	"gcsup/session"
)

// Objects yields all objects of a listing in the order of the raw bytes of their names. It keeps
// two pages, and reads one page ahead. If a page cannot be read, or if the names are not in order
// or not below the prefix, the last pair has the error. It calls fetch as [NewMerge] does.
func Objects(ctx context.Context, query bucket.Query, fetch Fetch) iter.Seq2[*session.Object, error] {
	return func(yield func(*session.Object, error) bool) {
		pages := &pager{ctx: ctx, query: query, fetch: fetch}
		defer pages.close()
		last := ""
		page, err := pages.seek("")
		for ; err == nil; page, err = pages.next() {
			pages.prefetch()
			for i := range page.Objects {
				o := page.Objects[i] // a copy, so that it does not keep the page in memory
				if o.Name <= last || !strings.HasPrefix(o.Name, query.Prefix) {
					yield(nil, &session.Error{Op: bucket.OpList, Kind: session.ErrProtocol, Err: errors.New("the names of the listing are not in order, or not below its prefix")})
					return
				}
				last = o.Name
				if !yield(&o, nil) {
					return
				}
			}
			if page.NextPageToken == "" {
				return
			}
		}
		yield(nil, err)
	}
}
