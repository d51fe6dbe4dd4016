package upload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// A Skip is a rule by which a batch, or a call, leaves out files whose object exists:
// [BatchOptions], [CallOptions]. Its String method returns the rule in a few words.
type Skip int

// The rules. Each compares the file with the object that has the name of the
// destination.
const (
	SkipNothing   Skip = iota // upload every file
	SkipExisting              // skip a file whose object exists, and never replace an object
	SkipIdentical             // skip a file whose object has its size, CRC32C and encryption key; the file is read

	// SkipSameTime skips a file whose object has its size and, in whole seconds,
	// its modification time under [session.FileModTimeKey]. If the file has an encryption
	// key, an object without one is replaced. An upload writes that key,
	// unless the file was modified less than two seconds before. If the object does
	// not have the key, or if the file was modified less than two seconds before the
	// object was created, the CRC32C is compared as with SkipIdentical.
	SkipSameTime

	// SkipSameContent is SkipIdentical, except that the object determines whether
	// the file is compressed for the comparison: [Spec].Gzip of the job is
	// replaced.
	SkipSameContent
)

var skipNames = [...]string{
	SkipNothing: "not skipped", SkipExisting: "exists", SkipIdentical: "identical", SkipSameTime: "same size and time",
	SkipSameContent: "same content",
}

func (s Skip) String() string { return nameOf(int(s), skipNames[:], "Skip") }

// nameOf returns the name of a value, or its number if it has none.
func nameOf(value int, names []string, kind string) string {
	if value < 0 || value >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, value)
	}
	return names[value]
}

// sameMTime returns want with the modification time in the metadata of saved, or
// without one if it has none. The time is not an option of the caller. A change of
// the source changes its identity, and an object without the time is compared by its
// CRC32C.
func sameMTime(want, saved Spec) Spec {
	want.Metadata = maps.Clone(want.Metadata)
	delete(want.Metadata, session.FileModTimeKey)
	if then, ok := saved.Metadata[session.FileModTimeKey]; ok && want.Metadata != nil {
		want.Metadata[session.FileModTimeKey] = then
	}
	if len(want.Metadata) == 0 {
		want.Metadata = nil // the caller gave none
	}
	return want
}

// unread reports whether a job is skipped without opening its file, because the
// listings of the file and of its object suffice.
func (s Skip) unread(job Job) bool {
	switch {
	case !job.Listed || job.Object == nil:
		return false
	case s == SkipExisting:
		return true
	case s == SkipSameTime && !job.ModTime.IsZero():
		if !job.Spec.EncryptionKey.IsZero() && job.Object.HasCRC32C {
			return false // the object is not encrypted with a key, see skip
		}
		return batch.CompareTime(job.Spec.Gzip, job.Size, job.ModTime, job.Object) == batch.SameTime
	}
	return false
}

// skipped applies the rule of the job, whose source is open, and reports whether the
// upload is not necessary. listed and object are as in skip.
func (j *job) skipped(ctx context.Context, listed bool, object *session.Object) (bool, error) {
	rule := j.rule
	switch modified := time.Unix(0, j.file.Identity().ModTimeNS); {
	case rule != SkipSameTime:
	case modified.UnixNano() == 0: // the source has none
		rule = SkipIdentical
	case !batch.Recent(modified):
		j.spec = withMetadata(j.spec, session.FileModTimeKey, modified.Unix())
	}
	want := j.spec
	j.setSpec(want.Resolved())
	skipped, err := j.skip(ctx, rule, listed, object)
	want.Gzip = j.spec.Gzip // see SkipSameContent
	j.spec = want
	return skipped, err
}

// skip applies a rule to the job, whose source is open, and reports whether the
// upload is not necessary. listed is false if the destination was not looked up;
// object is the object at the destination. skip notes its generation for the insert of a
// small file, see [session.State.Guarded].
func (j *job) skip(ctx context.Context, rule Skip, listed bool, object *session.Object) (bool, error) {
	if rule == SkipNothing || rule == SkipExisting && !listed {
		return false, nil // the precondition detects an existing object
	}
	known := listed
	if !listed {
		if err := j.awaitTurn(ctx); err != nil {
			return false, err
		}
		a, err := j.requests.Ask(ctx, session.Request{}, j.wire().Stat)
		if err != nil && (!engine.Refusal(err) || j.u.removal.wanted && errors.Is(err, session.ErrPermission)) {
			return false, err // after an upload that cannot be compared the source would stay, and be sent again
		}
		object = a.Object // also nil for a missing bucket, which the upload reports
		known, j.refused = err == nil, err
	}
	j.found = object
	switch {
	case object != nil && object.Generation != 0:
		j.seen = &object.Generation
	case object == nil && known:
		j.seen = new(int64)
	}
	if object == nil {
		j.precondition.Absent(j.spec)
		return false, nil
	}
	if rule == SkipSameContent {
		rule = SkipIdentical
		spec := j.spec
		spec.Gzip = object.Gzip
		j.setSpec(spec)
	}
	size := j.file.Total()
	like := batch.CompareSize(j.spec.Gzip, size, object)
	switch rule {
	case SkipExisting:
		like = batch.SameTime
	case SkipSameTime:
		like = batch.CompareTime(j.spec.Gzip, size, time.Unix(0, j.file.Identity().ModTimeNS), object)
		if like == batch.SameTime && j.u.removal.wanted {
			like = batch.MaybeEqual // only bytes that were compared may be removed
		}
	}
	if rule != SkipExisting && j.spec.EncryptionKey.HasSecret() {
		// A listing has the CRC32C only of objects without a key, and Stat only of objects
		// with this key. Any other object differs.
		switch {
		case listed == object.HasCRC32C:
			return false, nil
		case listed && like == batch.MaybeEqual:
			return j.skip(ctx, rule, false, nil)
		}
	}
	if like == batch.MaybeEqual {
		equal, err := j.sameBytes(ctx, object)
		if err != nil || !equal {
			return false, err
		}
		rule = SkipIdentical
	}
	if like == batch.Differs {
		return false, nil
	}
	j.result.update(func(r *Result) { r.Skipped, r.Object = rule, object })
	return true, nil
}

// sameBytes reads the source and compares its CRC32C with that of an object. If the
// file is compressed, it compares the compressed bytes. If the source changes
// meanwhile, the error is the same as for an upload.
func (j *job) sameBytes(ctx context.Context, object *session.Object) (bool, error) {
	if !object.HasCRC32C {
		return false, nil
	}
	j.compress()
	same, err := j.source.Equal(ctx, chunk.Checkpoint{Offset: object.Size, CRC32C: object.CRC32C})
	if err != nil {
		return false, j.requests.SourceFailed(ctx, err)
	}
	return same, nil
}
