package upload

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"gcsup/session"
	"gcsup/session/bucket"
	"gcsup/upload/internal/engine"
)

// A Difference is the outcome of a comparison of a file with the object at its destination.
type Difference int

// The outcomes.
const (
	NotCompared     Difference = iota // the Result is not of [Uploader.Compare], or the comparison failed
	ObjectEqual                       // the object has the size, CRC32C and encryption key of the file
	ObjectMissing                     // there is no object
	SizeDiffers                       // the object has another size, or was compressed from another one
	ContentDiffers                    // the object has the same size, but another CRC32C or another encryption key
	ChecksumMissing                   // the object has the same size, but no CRC32C to compare with
)

var differenceNames = [...]string{
	NotCompared: "not compared", ObjectEqual: "equal", ObjectMissing: "missing", SizeDiffers: "size differs",
	ContentDiffers: "content differs", ChecksumMissing: "checksum missing",
}

func (d Difference) String() string { return nameOf(int(d), differenceNames[:], "Difference") }

// Compare compares the files of jobs with the objects at their destinations. It sends no data and
// changes nothing. Like [Uploader.Files], it yields one Result for each job, in the order in
// which they end: Difference is the outcome, and Object is the object at the destination, nil if
// there is none. Planned is set if they differ. A file is read only if its object has the same
// size. The object determines whether the file is compressed for the comparison, as with
// [SkipSameContent].
//
// Only Small, Large, their limiters, Jobs, Listing and Sizes of opts apply; a nil opts uses the defaults. If the
// Listing fails because there is no such bucket, because the credentials are not accepted or
// because the service cannot be reached, no more jobs are read, and the last pair has the error
// and no Result. After any other failure of the listing, the objects are looked up one by one.
// If there is no such bucket, the error of a file wraps [session.ErrNotFound].
func (u *Uploader) Compare(ctx context.Context, jobs iter.Seq[Job], opts *BatchOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		b := newFilesCall(ctx, u, opts)
		b.opts.Skip, b.opts.DryRun, b.opts.PreservePOSIX = SkipSameContent, true, false
		b.comparison = &comparison{}
		if !b.run(jobs, yield) || ctx.Err() != nil {
			return
		}
		if failed := b.comparison.unlisted.Load(); failed != nil {
			yield(nil, *failed)
		}
	}
}

// comparison is what a call of [Uploader.Compare] knows of all files.
type comparison struct {
	unlisted atomic.Pointer[error] // the error that ended the listing
	buckets  sync.Map              // by the names of the buckets that exist
}

// endsComparison reports whether the error of a listing applies to every object.
func endsComparison(err error) bool {
	return errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrCredentials) || errors.Is(err, session.ErrRetriesExhausted)
}

// compare ends the comparison of a file with the object that is there. equal and err are the outcome of the rule.
func (b *filesCall) compare(ctx context.Context, there *destination, equal bool, err error) error {
	if err == nil && !equal {
		err = there.refused
	}
	if err == nil && !equal && there.found == nil && !there.listed {
		err = b.findBucket(ctx, there.spec)
	}
	if err != nil {
		return err
	}
	d := ObjectEqual
	if !equal {
		d = there.difference()
	}
	there.result.update(func(r *Result) { r.Object, r.Difference, r.Planned = there.found, d, !equal })
	return nil
}

// findBucket returns an error if there is no such bucket. The reply to a request for an object does not
// show it. If the listing is not allowed, the bucket exists.
func (b *filesCall) findBucket(ctx context.Context, spec Spec) error {
	if _, known := b.comparison.buckets.Load(spec.Bucket); known {
		return nil
	}
	lister := newLister(ctx, b.u, Listing{Bucket: spec.Bucket, UserProject: spec.UserProject}, b.budget)
	defer lister.close(ctx)
	_, err := lister.page(ctx, bucket.Query{Bucket: spec.Bucket, MaxResults: 1, UserProject: spec.UserProject})
	if err != nil && (errors.Is(err, session.ErrNotFound) || !engine.Refusal(err)) {
		return err
	}
	b.comparison.buckets.Store(spec.Bucket, nil)
	return nil
}
