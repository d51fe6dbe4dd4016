package upload

import (
	"context"
	"errors"
	"strings"
	"time"

	"gcsup/internal/decide"
	"gcsup/internal/objectmeta"
	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// destination is what a call knows of the object at the destination of its file, and by which rule the file need not
// be uploaded.
type destination struct {
	*openFile
	listed bool                        // the caller looked up the object
	turn   func(context.Context) error // waits, before the first request, until the batch may upload another file

	seen    *int64          // generation of the object when it was compared, 0 if there was none; nil if it was not read
	found   *session.Object // when it was compared
	refused error           // the refusal of the request for it

	// before is what the destination had before the call waited until another process no longer holds the lease of its
	// upload. That process may make the object meanwhile.
	before struct {
		waited     bool
		known      bool  // the service answered
		generation int64 // of the object, 0 if there was none
	}
}

// skipped applies the rule of the call and reports whether the
// upload is not necessary. listed and object are as in skip.
func (d *destination) skipped(ctx context.Context, listed bool, object *session.Object) (bool, error) {
	rule := d.rule
	switch modified := time.Unix(0, d.file.Identity().ModTimeNS); {
	case rule != SkipSameTime:
	case modified.UnixNano() == 0: // the source has none
		rule = SkipIdentical
	case !batch.Recent(modified):
		d.spec = withMetadata(d.spec, objectmeta.FileModTime, modified.Unix())
	}
	want := d.spec
	d.setSpec(want.Resolved())
	skipped, err := d.skip(ctx, rule, listed, object)
	want.Gzip = d.spec.Gzip // see SkipSameContent
	d.spec = want
	return skipped, err
}

// skip applies a rule, and reports whether the
// upload is not necessary. listed is false if the destination was not looked up;
// object is the object at the destination. skip notes its generation for the insert of a
// small file, see [session.State.Guarded].
func (d *destination) skip(ctx context.Context, rule Skip, listed bool, object *session.Object) (bool, error) {
	if rule == SkipNothing || rule == SkipExisting && !listed {
		return false, nil // the precondition detects an existing object
	}
	known := listed
	if !listed {
		if err := d.turn(ctx); err != nil {
			return false, err
		}
		a, err := d.requests.Ask(ctx, decide.Request{}, d.wire().Stat)
		if err != nil && (!engine.Refusal(err) || d.u.removal.wanted && errors.Is(err, session.ErrPermission)) {
			return false, err // after an upload that cannot be compared the source would stay, and be sent again
		}
		object = a.Object // also nil for a missing bucket, which the upload reports
		known, d.refused = err == nil, err
	}
	d.found = object
	switch {
	case object != nil && object.Generation != 0:
		d.seen = &object.Generation
	case object == nil && known:
		d.seen = new(int64)
	}
	if object == nil {
		d.precondition.Absent(d.spec)
		return false, nil
	}
	if rule == SkipSameContent {
		rule = SkipIdentical
		spec := d.spec
		spec.Gzip = object.Gzip
		d.setSpec(spec)
	}
	size := d.file.Total()
	like := batch.CompareSize(d.spec.Gzip, size, object)
	switch rule {
	case SkipExisting:
		like = batch.SameTime
	case SkipSameTime:
		like = batch.CompareTime(d.spec.Gzip, size, time.Unix(0, d.file.Identity().ModTimeNS), object)
		if like == batch.SameTime && d.u.removal.wanted {
			like = batch.MaybeEqual // only bytes that were compared may be removed
		}
	}
	if rule != SkipExisting && d.spec.EncryptionKey.HasSecret() {
		// A listing has the CRC32C only of objects without a key, and Stat only of objects
		// with this key. Any other object differs.
		switch {
		case listed == object.HasCRC32C:
			return false, nil
		case listed && like == batch.MaybeEqual:
			return d.skip(ctx, rule, false, nil)
		}
	}
	if like == batch.MaybeEqual {
		equal, err := d.sameBytes(ctx, object)
		if err != nil || !equal {
			return false, err
		}
		rule = SkipIdentical
	}
	if like == batch.Differs {
		return false, nil
	}
	d.result.update(func(r *Result) { r.Skipped, r.Object = rule, object })
	return true, nil
}

// waitForHolder notes that the call waits for the holder of the lease.
func (d *destination) waitForHolder(ctx context.Context) {
	if w := &d.before; !w.waited {
		w.waited = true
		if d.rule == SkipNothing { // otherwise the rule is applied again
			o, ok := d.lookOnce(ctx)
			w.known = ok
			if o != nil {
				w.generation = o.Generation
			}
		}
	}
	d.precondition.Looked = false
}

// madeMeanwhile reports whether the call, which now holds the lease, is finished: another process
// may have made the object, and released the lease, since the destination was looked up. With a rule, the
// call looks again. It trusts the look of its caller, such as a listing, unless another process had the
// upload: the call waited for the lease, or the saved upload was damaged.
func (d *destination) madeMeanwhile(ctx context.Context, want Spec, damaged bool) (bool, error) {
	if damaged {
		d.precondition.Looked = false
	}
	switch {
	case d.rule == SkipNothing:
		return d.madeByHolder(ctx, want)
	case d.listed && !d.before.waited && !damaged:
		return false, nil
	}
	return d.skipped(ctx, false, nil)
}

// lookOnce returns the object at the destination, or nil if there is none. ok is
// false if that is not known.
func (d *destination) lookOnce(ctx context.Context) (o *session.Object, ok bool) {
	r := engine.Bounded(ctx, d.wire().Stat)
	return r.Object, decide.Answers(&r)
}

// madeByHolder reports whether the call is finished, because an object with the bytes
// of the source and the options in want appeared at the destination while the call
// waited for the lease. An upload with preconditions is never finished in this way:
// if two processes want to create an object, only one may succeed.
func (d *destination) madeByHolder(ctx context.Context, want Spec) (bool, error) {
	if !d.before.known || d.u.opts.Restart {
		return false, nil
	}
	o, ok := d.lookOnce(ctx)
	if !ok || o == nil || o.Generation == d.before.generation || madeWith(o, want).Conflict(want) != "" || batch.CompareSize(want.Gzip, d.file.Total(), o) == batch.Differs {
		return false, nil
	}
	if err := d.settle(ctx); err != nil {
		return false, err
	}
	if same, err := d.sameBytes(ctx, o); err != nil || !same {
		return false, err
	}
	if err := d.expect.CheckEnd(ctx, d.file.Total()); err != nil {
		return false, err
	}
	d.result.update(func(r *Result) { r.Object = o })
	d.requests.Pos.Size.Store(o.Size)
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

// difference returns how the object that was found differs from the file.
func (d *destination) difference() Difference {
	switch o := d.found; {
	case o == nil:
		return ObjectMissing
	case batch.CompareSize(o.Gzip, d.file.Total(), o) == batch.Differs:
		return SizeDiffers
	case !o.HasCRC32C && !d.spec.EncryptionKey.HasSecret():
		return ChecksumMissing
	}
	return ContentDiffers
}
