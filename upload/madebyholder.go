package upload

import (
	"context"
	"strings"

	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// holderWait is what the destination held before a job waited until another process no
// longer holds the lease of its upload. That process may make the object meanwhile.
type holderWait struct {
	began      bool
	known      bool  // the service answered
	generation int64 // of the object, 0 if there was none
}

// waitForHolder notes that the job waits for the holder of the lease.
func (j *job) waitForHolder(ctx context.Context) {
	if w := &j.wait; !w.began {
		w.began = true
		if j.rule == SkipNothing { // otherwise the rule is applied again
			o, ok := j.lookOnce(ctx)
			w.known = ok
			if o != nil {
				w.generation = o.Generation
			}
		}
	}
	j.precondition.Looked = false
}

// madeMeanwhile reports whether the job, which now holds the lease, is finished: another process
// may have made the object, and released the lease, since the destination was looked up. With a rule, the
// job looks again. It trusts the look of its caller, such as a listing, unless another process had the
// upload: the job waited for the lease, or the saved upload was damaged.
func (j *job) madeMeanwhile(ctx context.Context, want Spec, damaged bool) (bool, error) {
	if damaged {
		j.precondition.Looked = false
	}
	switch {
	case j.rule == SkipNothing:
		return j.madeByHolder(ctx, want)
	case j.skipAgain == nil, j.listed && !j.wait.began && !damaged:
		return false, nil
	}
	return j.skipAgain(ctx)
}

// lookOnce returns the object at the destination, or nil if there is none. ok is
// false if that is not known.
func (j *job) lookOnce(ctx context.Context) (o *session.Object, ok bool) {
	r := engine.Bounded(ctx, j.wire().Stat)
	return r.Object, r.Answers()
}

// madeByHolder reports whether the job is finished, because an object with the bytes
// of the source and the options in want appeared at the destination while the job
// waited for the lease. An upload with preconditions is never finished in this way:
// if two processes want to create an object, only one may succeed.
func (j *job) madeByHolder(ctx context.Context, want Spec) (bool, error) {
	if !j.wait.known || j.u.opts.Restart {
		return false, nil
	}
	o, ok := j.lookOnce(ctx)
	if !ok || o == nil || o.Generation == j.wait.generation || madeWith(o, want).Conflict(want) != "" || batch.CompareSize(want.Gzip, j.file.Total(), o) == batch.Differs {
		return false, nil
	}
	if err := j.settle(ctx, j.file); err != nil {
		return false, err
	}
	if same, err := j.sameBytes(ctx, o); err != nil || !same {
		return false, err
	}
	if err := j.expect.CheckEnd(ctx, j.file.Total()); err != nil {
		return false, err
	}
	j.result.update(func(r *Result) { r.Object = o })
	j.requests.Pos.Size.Store(o.Size)
	return true, nil
}

// madeWith returns the options of an object that are compared with want. The metadata
// of the object does not show its ACL or preconditions.
func madeWith(o *session.Object, want Spec) Spec {
	kms, _, _ := strings.Cut(o.KMSKeyName, "/cryptoKeyVersions/")
	made := Spec{
		ContentType: o.ContentType, ContentEncoding: o.ContentEncoding, ContentDisposition: o.ContentDisposition,
		ContentLanguage: o.ContentLanguage, CacheControl: o.CacheControl, StorageClass: o.StorageClass, Metadata: o.Metadata,
		CustomTime: o.CustomTime, TemporaryHold: o.TemporaryHold, EventBasedHold: o.EventBasedHold, Retention: o.Retention,
		Contexts: o.Contexts, KMSKeyName: kms, MD5: o.MD5, Gzip: o.Gzip, UserProject: want.UserProject,
	}
	if o.CustomerKeySHA256 == want.EncryptionKey.SHA256() {
		made.EncryptionKey = want.EncryptionKey
	}
	if o.HasCRC32C {
		made.CRC32C = &o.CRC32C
	}
	return made
}
