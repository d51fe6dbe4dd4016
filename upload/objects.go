package upload

import (
	"context"
	"iter"

	"gcsup/session"
	"gcsup/session/bucket"
	"gcsup/upload/internal/batch"
)

// List yields the objects of a listing in the order of the raw bytes of their names, with the
// fields that a [bucket.Page] has. Its memory is constant: it keeps two pages of 1,000 objects. It
// reads one page ahead while the caller processes objects. A failed request is retried like that of
// an upload. If the listing fails, or if its names are not in order, the last pair has the error.
func (u *Uploader) List(ctx context.Context, l Listing) iter.Seq2[*session.Object, error] {
	return func(yield func(*session.Object, error) bool) {
		if u.invalid != nil {
			yield(nil, u.invalid)
			return
		}
		lister := u.newLister(ctx, l, u.newBudget())
		defer lister.close(ctx)
		query := bucket.Query{Bucket: l.Bucket, Prefix: l.Prefix, UserProject: l.UserProject}
		batch.Objects(ctx, query, lister.page)(yield)
	}
}
