package upload

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// A Job is one file of a batch, and the object to make of it.
type Job struct {
	// Path is the source file.
	Path string
	Spec Spec

	// Below, if not "", is the directory below which the file was listed. With RemoveSource, no symbolic
	// link below it is followed: another user may have replaced a directory since.
	Below string

	// Size and ModTime are those of the file when it was listed. They determine
	// the order of work, and are compared with Object. The upload checks the file itself.
	Size    int64
	ModTime time.Time

	// Listed is true if the destination was looked up in a listing. Object is
	// what it holds, nil if there is no object. If Listed is false, the
	// destination is looked up when that is necessary.
	Listed bool
	Object *session.Object

	// Err reports a file that cannot be uploaded: it was not readable, or the
	// service refuses its name. It is the outcome of the job.
	Err error
}

// Listing selects the objects that [Uploader.Lookup] lists. Bucket is required.
type Listing struct {
	Bucket      string
	Prefix      string // of the names; "" is the whole bucket
	UserProject string // project that is billed, for requester-pays buckets
}

// List yields the objects of a listing in the order of the raw bytes of their names. They have the fields
// Bucket, Name, Generation, Size, CRC32C, Created, FileModTime, Gzip and UncompressedSize. Its memory is
// constant: it keeps two pages of 1,000 objects. It
// reads one page ahead while the caller processes objects. A failed request is retried like that of
// an upload. If the listing fails, or if its names are not in order, the last pair has the error.
func (u *Uploader) List(ctx context.Context, l Listing) iter.Seq2[*session.Object, error] {
	return func(yield func(*session.Object, error) bool) {
		lister := newLister(ctx, u, l, u.newBudget())
		defer lister.close(ctx)
		query := bucket.Query{Bucket: l.Bucket, Prefix: l.Prefix, UserProject: l.UserProject}
		batch.Objects(ctx, query, lister.page)(yield)
	}
}

// Lookup looks up the destinations of jobs in one listing of a prefix, instead of one
// by one. It yields the jobs in the same order, with [Job.Listed] and [Job.Object].
// Its memory is constant: it keeps two pages of 1,000 objects. It reads one page
// ahead while the caller processes jobs.
//
// The jobs must be in the order of the raw bytes of their object names, which is the
// order of the service. If few of the listed names are jobs, Lookup does not read the
// names between them, but starts a listing at the name of the next job. After 3 pages
// in a row with fewer than 8 jobs, the next 8 jobs are not looked up. If the page after
// that has fewer, too, the next 16 are not, and so on up to 1,024. For example, 10 jobs
// need 3 requests for any number of objects.
//
// If Lookup does not look up a job, Listed stays false, and the destination must be
// looked up later if necessary. These jobs are not looked up:
//   - jobs for which a listing would be too long, as above,
//   - jobs of another bucket, or without the prefix, and jobs with an Err,
//   - the remaining jobs after the names of the jobs or of the listing were not in
//     order,
//   - the remaining jobs after the listing failed.
//
// A failed request is retried like that of an upload. If the listing fails, one pair
// has a zero Job and the error, and the jobs follow. The error wraps a sentinel of
// package session; [session.ErrNotFound] if there is no such bucket. If ctx is done,
// the last pair has its error.
//
// The results may be out of date when they are used. Only a precondition of the
// upload is reliable.
func (u *Uploader) Lookup(ctx context.Context, l Listing, jobs iter.Seq[Job]) iter.Seq2[Job, error] {
	return lookup(ctx, u, l, u.newBudget(), jobs)
}

// lookup is Lookup with the budget of a batch.
func lookup(ctx context.Context, u *Uploader, l Listing, b *engine.SharedBudget, jobs iter.Seq[Job]) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		lister := newLister(ctx, u, l, b)
		defer lister.close(ctx)
		m := batch.NewMerge(ctx, bucket.Query{Bucket: l.Bucket, Prefix: l.Prefix, UserProject: l.UserProject}, lister.page)
		defer m.Close()
		for job := range jobs {
			var err error
			if job.Err == nil && !job.Listed && job.Spec.Bucket == l.Bucket {
				job.Object, job.Listed, err = m.Lookup(job.Spec.Object)
			}
			if ctx.Err() != nil {
				yield(Job{}, callInterrupted(ctx, "list"))
				return
			}
			if err != nil && !yield(Job{}, err) {
				return
			}
			if !yield(job, nil) {
				return
			}
		}
		if m.Unsorted() {
			u.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "names out of order, destinations were looked up one by one",
				slog.String("bucket", l.Bucket), slog.String("prefix", l.Prefix))
		}
	}
}

// callInterrupted returns the error of a call that is no upload and whose ctx is done. what names the
// call.
func callInterrupted(ctx context.Context, what string) error {
	return fmt.Errorf("%s: %w: %v", what, ctx.Err(), context.Cause(ctx))
}

// lister reads pages of a listing, with retries.
type lister struct {
	events   *events
	requests *engine.Requester
	prefix   Spec // has the prefix as the name of the object
}

// newLister returns a lister that fails when b is spent. The caller must call close.
func newLister(ctx context.Context, u *Uploader, l Listing, b *engine.SharedBudget) *lister {
	s := &lister{prefix: Spec{Bucket: l.Bucket, Object: l.Prefix, UserProject: l.UserProject}}
	p := progress{whole: engine.NewPosition(-1)}
	s.events = newEvents(ctx, u, &label{names: names{spec: s.prefix}}, p.describe)
	link := u.newUplink(b, new(engine.Tally), &reporter{s.events, u.opts.Logger, func() []slog.Attr {
		return []slog.Attr{slog.String("bucket", l.Bucket), slog.String("prefix", l.Prefix)}
	}})
	s.requests = engine.NewRequester(link, 0, p.whole)
	return s
}

// page reads one page. It must not be called concurrently.
func (s *lister) page(ctx context.Context, q bucket.Query) (*bucket.Page, error) {
	var page *bucket.Page
	_, err := s.requests.Ask(ctx, decide.Request{}, func(ctx context.Context) session.Reply {
		return s.requests.To(s.prefix).Plain(ctx, bucket.OpList, func(ctx context.Context, c *session.Client) (r session.Reply) {
			page, r = bucket.List(ctx, c, q)
			return r
		})
	})
	switch {
	case ctx.Err() != nil:
		return nil, callInterrupted(ctx, "list")
	case err != nil:
		return nil, err
	case page.NextPageToken != "" && page.NextPageToken == q.PageToken:
		return nil, &session.Error{Op: bucket.OpList, Kind: session.ErrProtocol, Err: errors.New("the listing repeats a page")}
	}
	s.requests.Retry.Succeeded()
	s.requests.Progressed()
	return page, nil
}

// close delivers the last events.
func (s *lister) close(ctx context.Context) {
	s.requests.Retry.Close()
	s.events.close(ctx, nil)
}
