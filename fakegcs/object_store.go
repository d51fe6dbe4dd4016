package fakegcs

import (
	"net/http"
	"slices"
	"time"

	"gcsup/fakegcs/internal/blob"
)

// This file is the one place where objects appear, are replaced and go away.
// Each change goes
// to the directory first and into memory afterwards, so that a failed write
// changes nothing.

// errNoBucket returns the service's answer for a bucket that isn't there.
func errNoBucket() *apiError {
	return refuse(http.StatusNotFound, "noBucket", "The specified bucket does not exist.")
}

func errNoObject(bucket, name string) *apiError {
	return refuse(http.StatusNotFound, "notFound", "No such object: %s/%s", bucket, name)
}

func errInternal(err error) *apiError {
	return refuse(http.StatusInternalServerError, "internalError", "%v", err)
}

// publish makes an object of the bytes in content: it becomes the live generation
// of its name, all at once, if the preconditions hold. o has the metadata that
// the uploader gave, with size and checksums. The object adopts the caller's
// reference to content, except when publish fails.
func (s *store) publish(o *Object, content *blob.Blob, cond conditions) (*Object, *apiError) {
	return s.publishUpload(o, content, cond, "", func(*Object) {})
}

// publishUpload is publish for the end of the session or multipart upload of
// that id. When the object's record is there it calls over, which finishes the
// record of the upload. Until then no request can delete the object, so that a
// server that is killed in between finds at least one of the two records.
func (s *store) publishUpload(o *Object, content *blob.Blob, cond conditions, upload string, over func(*Object)) (*Object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(o.Bucket)
	if err != nil {
		return nil, err
	}
	now := s.now()
	previous := b.live(o.Name)
	if err := cond.check(objectOf(previous)); err != nil {
		return nil, err
	}
	if previous != nil {
		if err := b.mayRetire(previous, now); err != nil {
			return nil, err
		}
	}
	o = o.clone()
	o.Generation = s.generationLocked(now)
	o.Metageneration = 1
	o.TimeCreated, o.Updated, o.TimeFinalized, o.TimeStorageClassUpdated = now, now, now, now
	if o.StorageClass == "" {
		o.StorageClass = b.StorageClass
	}
	if o.ContentType == "" {
		o.ContentType = "application/octet-stream"
	}
	if b.Encryption != nil && o.KMSKeyName == "" && o.CustomerEncryption == nil {
		o.KMSKeyName = b.Encryption.DefaultKMSKeyName
	}
	if b.DefaultEventBasedHold {
		o.EventBasedHold = true
	}
	b.RetentionPolicy.begin(o, now)
	o.sign()
	v := &version{o, content, upload, now}
	if err := s.saveObject(v); err != nil {
		return nil, errInternal(err)
	}
	over(o)
	if previous != nil {
		// The new object is there, so nothing may fail any more. What stays
		// of the old one in the directory is put right at the next start.
		if err := s.retireLocked(b, previous, now); err != nil {
			s.log.Warn("fakegcs: replace object", "bucket", o.Bucket, "object", o.Name, "err", err)
		}
	}
	b.at(o.Name).live = v
	return o, nil
}

func objectOf(v *version) *Object {
	if v == nil {
		return nil
	}
	return v.Object
}

// generationLocked makes a new generation number: microseconds, as the
// service's are, and larger than every one before.
func (s *store) generationLocked(now time.Time) int64 {
	s.lastGeneration = max(now.UnixMicro(), s.lastGeneration+1)
	return s.lastGeneration
}

// retireLocked takes the live generation v out of the way: it becomes
// noncurrent, or soft-deleted, or is gone, as the bucket is configured.
func (s *store) retireLocked(b *bucket, v *version, now time.Time) *apiError {
	g := b.objects[v.Name]
	if b.versioned() {
		o := v.clone()
		o.TimeDeleted = now
		kept := v.with(o)
		if err := s.saveObject(kept); err != nil {
			return errInternal(err)
		}
		g.live, g.old = nil, append(g.old, kept)
		return nil
	}
	if err := s.eraseLocked(b, v, now, b.softDeleteFor()); err != nil {
		return err
	}
	g.live = nil
	return nil
}

// eraseLocked deletes the generation v for good, or soft-deletes it when keep
// isn't 0. The caller takes it out of live or old.
func (s *store) eraseLocked(b *bucket, v *version, now time.Time, keep time.Duration) *apiError {
	if keep == 0 {
		if err := s.removeObject(v.Object); err != nil {
			return errInternal(err)
		}
		v.blob.Release()
		return nil
	}
	o := v.clone()
	o.SoftDeleteTime, o.HardDeleteTime = now, now.Add(keep)
	soft := v.with(o)
	if err := s.saveObject(soft); err != nil {
		return errInternal(err)
	}
	b.addSoft(soft)
	return nil
}

// expireLocked lets the soft-deleted objects of b go whose time has come.
func (s *store) expireLocked(b *bucket, now time.Time) {
	if b.expires.IsZero() || now.Before(b.expires) {
		return // a listing must not look at all objects for each page
	}
	b.expires = time.Time{}
	for _, name := range slices.Clone(b.names) {
		g := b.objects[name]
		was := g.soft
		g.soft = nil
		for _, v := range was {
			if now.Before(v.HardDeleteTime) || s.removeObject(v.Object) != nil {
				b.addSoft(v)
			} else {
				v.blob.Release()
			}
		}
		b.tidy(name)
	}
}

// deleteObject deletes one generation, or the live one when generation is 0:
// that is archived in a bucket with versioning.
func (s *store) deleteObject(bucketName, name string, generation int64, cond conditions) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, v, err := s.versionLocked(bucketName, name, generation)
	if err != nil {
		return err
	}
	now := s.now()
	if err := cond.check(v.Object); err != nil {
		return err
	}
	if generation == 0 {
		if err := b.mayRetire(v, now); err != nil {
			return err
		}
		if b.versioned() {
			return s.retireLocked(b, v, now)
		}
	} else if err := protected(v, now); err != nil {
		return err
	}
	return s.dropLocked(b, v, now, b.softDeleteFor())
}

// dropLocked erases one generation and takes it out of the bucket.
func (s *store) dropLocked(b *bucket, v *version, now time.Time, keep time.Duration) *apiError {
	if err := s.eraseLocked(b, v, now, keep); err != nil {
		return err
	}
	g := b.objects[v.Name]
	if g.live == v {
		g.live = nil
	}
	g.old = slices.DeleteFunc(g.old, func(o *version) bool { return o == v })
	b.tidy(v.Name)
	return nil
}

// find returns the generation of an object that a request may see, with a reference
// to its bytes that the caller releases.
func (s *store) find(bucketName, name string, generation int64) (*version, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, v, err := s.versionLocked(bucketName, name, generation)
	if err != nil {
		return nil, err
	}
	v.blob.Retain()
	return v, nil
}

// versionLocked finds a live or noncurrent generation; 0 is the live one.
func (s *store) versionLocked(bucketName, name string, generation int64) (*bucket, *version, *apiError) {
	b, err := s.bucketLocked(bucketName)
	if err != nil {
		return nil, nil, err
	}
	v := b.version(name, generation)
	if v == nil {
		return nil, nil, errNoObject(bucketName, name)
	}
	return b, v, nil
}

// errNoSoftDelete refuses what needs a soft delete policy, as
// https://github.com/kmoneil/zig-gcp/blob/main/src/storage/restore.zig has
// measured.
func errNoSoftDelete() *apiError { return invalid("bucket soft delete policy must be set.") }

// findSoftDeleted finds a soft-deleted generation. The caller releases the blob.
func (s *store) findSoftDeleted(bucketName, name string, generation int64) (*version, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(bucketName)
	if err != nil {
		return nil, err
	}
	if b.softDeleteFor() == 0 {
		return nil, errNoSoftDelete()
	}
	if generation == 0 {
		return nil, refuse(http.StatusBadRequest, "required", "You must specify a generation.")
	}
	s.expireLocked(b, s.now())
	if g := b.objects[name]; g != nil {
		for _, v := range g.soft {
			if v.Generation == generation {
				v.blob.Retain()
				return v, nil
			}
		}
	}
	return nil, errNoObject(bucketName, name)
}

// dropSources deletes what was composed, for good: deleteSourceObjects passes
// soft delete and versioning by. A source that has changed meanwhile stays.
func (s *store) dropSources(sources []*version, made *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[made.Bucket]
	for _, v := range sources {
		if b == nil || v.Generation == made.Generation {
			continue
		}
		current := b.version(v.Name, v.Generation)
		if current == nil || protected(current, s.now()) != nil {
			continue
		}
		if err := s.dropLocked(b, current, s.now(), 0); err != nil {
			s.log.Warn("fakegcs: delete source of compose", "object", v.Name, "err", err)
		}
	}
}
