package fakegcs

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"gcsup/fakegcs/internal/blob"
	"gcsup/fakegcs/internal/disk"
)

// Only this file creates, replaces and deletes objects. Each change is written to
// the directory first, and made in memory afterwards, so that a failed write changes
// nothing. The caller of a method that ends in Locked has claimed the object, because mu
// is not locked while its record is written or removed.

// errNoBucket returns the service's error for a bucket that does not exist.
func errNoBucket() *apiError {
	return refuse(http.StatusNotFound, "noBucket", "The specified bucket does not exist.")
}

func errNoObject(bucket, name string) *apiError {
	return refuse(http.StatusNotFound, "notFound", "No such object: %s/%s", bucket, name)
}

// errInternal is the error for a failure of the server. If there is no space for bytes
// beyond the memory limit, or in the directory, the client can retry.
func errInternal(err error) *apiError {
	if errors.Is(err, blob.ErrSpill) {
		return refuse(http.StatusServiceUnavailable, "backendError", "The emulator has no space for these bytes: its memory limit is reached, and it cannot %v. Free space there, or raise the limit (--memory, Options.Memory).", err)
	}
	if disk.Full(err) {
		return refuse(http.StatusServiceUnavailable, "backendError", "The emulator has no space in its directory (--dir, Options.Dir): %v. Free space there.", err)
	}
	return refuse(http.StatusInternalServerError, "internalError", "%v", err)
}

// publish makes an object from the bytes in content, if the preconditions hold. It
// becomes the live generation of its name atomically. o has the metadata of the
// uploader, the size and the checksums. It becomes the object, so that the caller must not
// use it afterwards. Unless publish fails, the object adopts the caller's reference to
// content.
func (s *store) publish(o *Object, content *blob.Blob, cond conditions) (*Object, *apiError) {
	return s.publishUpload(o, content, cond, "", func(*Object) {})
}

// publishUpload is publish for the session or multipart upload with the ID upload.
// After it has written the object's record, it calls over, which finishes or removes
// the record of the upload. No request can delete the object before that. If the
// server is killed in between, at least one of the two records remains.
func (s *store) publishUpload(o *Object, content *blob.Blob, cond conditions, upload string, over func(*Object)) (*Object, *apiError) {
	defer s.claim(o.Bucket, o.Name)()
	s.mu.Lock()
	defer s.unlock()
	return s.publishLocked(o, content, cond, upload, over)
}

func (s *store) publishLocked(o *Object, content *blob.Blob, cond conditions, upload string, over func(*Object)) (*Object, *apiError) {
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
		if err := b.checkRetire(previous, now); err != nil {
			return nil, err
		}
	}
	o.Generation = s.generationLocked(now)
	o.Metageneration = 1
	o.TimeCreated, o.Updated, o.TimeFinalized, o.TimeStorageClassUpdated = now, now, now, now
	if o.StorageClass == "" {
		o.StorageClass = b.StorageClass
	}
	if b.Encryption != nil && o.KMSKeyName == "" && o.CustomerEncryption == nil {
		o.KMSKeyName = b.Encryption.DefaultKMSKeyName
	}
	if b.DefaultEventBasedHold {
		o.EventBasedHold = true
	}
	b.RetentionPolicy.begin(o, now)
	if err := b.own(o); err != nil {
		return nil, err
	}
	o.sign()
	v := &version{o, content, upload, now}
	if err := s.saveObjectLocked(v); err != nil {
		return nil, errInternal(err)
	}
	s.overLocked(func() { over(o) })
	if previous != nil {
		// The new object exists, so that an error must not fail the request. The
		// next start repairs the directory.
		if err := s.retireLocked(b, previous, now); err != nil {
			s.log.Warn("fakegcs: replace object", "bucket", o.Bucket, "object", o.Name, "err", err)
		}
	}
	b.at(o.Name).live = v
	s.makeFoldersLocked(b, o.Name, now)
	return o, nil
}

// overLocked calls over. It unlocks mu meanwhile if over may write to the directory.
func (s *store) overLocked(over func()) {
	if s.disk != nil {
		s.mu.Unlock()
		defer s.mu.Lock()
	}
	over()
}

func objectOf(v *version) *Object {
	if v == nil {
		return nil
	}
	return v.Object
}

// replaceLocked replaces the generation v by changed, which has other metadata, and gives it
// a new metageneration. It returns changed.
func (s *store) replaceLocked(b *bucket, v, changed *version, now time.Time) (*version, *apiError) {
	changed.Metageneration++
	changed.Updated = now
	changed.sign()
	if err := s.saveObjectLocked(changed); err != nil {
		return nil, errInternal(err)
	}
	g := b.objects[v.Name]
	if g.live == v {
		g.live = changed
	} else if i := slices.Index(g.old, v); i >= 0 {
		g.old[i] = changed
	}
	return changed, nil
}

// bucketChanged gives b, whose resource was was, a new metageneration and saves it. If that
// fails, b stays as it was. The caller holds s.mu.
func (s *store) bucketChanged(b *bucket, was bucketResource) (bucketResource, *apiError) {
	b.Metageneration++
	b.Updated = timestamp{s.now()}
	b.sign()
	if err := s.saveBucket(b); err != nil {
		b.bucketResource = was
		return bucketResource{}, errInternal(err)
	}
	return b.bucketResource, nil
}

// generationLocked returns a new generation number: microseconds, as in the service,
// and larger than all earlier ones.
func (s *store) generationLocked(now time.Time) int64 {
	s.lastGeneration = max(now.UnixMicro(), s.lastGeneration+1)
	return s.lastGeneration
}

// retireLocked makes the live generation v noncurrent, soft-deletes it or deletes it,
// depending on the bucket's configuration.
func (s *store) retireLocked(b *bucket, v *version, now time.Time) *apiError {
	g := b.objects[v.Name]
	if b.versioned() {
		o := v.clone()
		o.TimeDeleted = now
		kept := v.with(o)
		if err := s.saveObjectLocked(kept); err != nil {
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

// eraseLocked soft-deletes the generation v for the time keep, or deletes it if keep
// is 0. The caller removes it from live or old.
func (s *store) eraseLocked(b *bucket, v *version, now time.Time, keep time.Duration) *apiError {
	if keep == 0 {
		if err := s.removeObjectLocked(v.Object); err != nil {
			return errInternal(err)
		}
		s.dropped = append(s.dropped, v.blob)
		return nil
	}
	o := v.clone()
	o.SoftDeleteTime, o.HardDeleteTime = now, now.Add(keep)
	soft := v.with(o)
	if err := s.saveObjectLocked(soft); err != nil {
		return errInternal(err)
	}
	b.addSoft(soft)
	return nil
}

// expireLocked deletes the soft-deleted objects of b whose time has passed. It needs no
// claims: no request changes a soft-deleted generation, and mu stays locked.
func (s *store) expireLocked(b *bucket, now time.Time) {
	if b.expires.IsZero() || now.Before(b.expires) {
		return // so that a listing does not visit all objects for each page
	}
	b.expires = time.Time{}
	for _, name := range slices.Clone(b.sortedNames()) {
		g := b.objects[name]
		was := g.soft
		g.soft = nil
		for _, v := range was {
			if now.Before(v.HardDeleteTime) || s.disk.RemoveObject(v.Bucket, v.Name, v.Generation) != nil {
				b.addSoft(v)
			} else {
				s.dropped = append(s.dropped, v.blob)
			}
		}
		b.tidy(name)
	}
}

// deleteObject deletes one generation. Generation 0 is the live one, which is
// archived in a bucket with versioning.
func (s *store) deleteObject(bucketName, name string, generation int64, cond conditions) *apiError {
	defer s.claim(bucketName, name)()
	s.mu.Lock()
	defer s.unlock()
	b, v, err := s.versionLocked(bucketName, name, generation)
	if err != nil {
		return err
	}
	now := s.now()
	if err := cond.check(v.Object); err != nil {
		return err
	}
	if generation == 0 {
		if err := b.checkRetire(v, now); err != nil {
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

// dropLocked erases one generation and removes it from the bucket.
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

// find returns a live or noncurrent generation; 0 is the live one. The caller
// releases the blob.
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

// errNoSoftDelete is the error for a request that needs a soft delete policy, as
// measured by https://github.com/kmoneil/zig-gcp/blob/main/src/storage/restore.zig.
func errNoSoftDelete() *apiError { return invalid("bucket soft delete policy must be set.") }

// live returns the live generation of an object, or nil.
func (s *store) live(bucket, name string) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[bucket]; b != nil {
		return objectOf(b.live(name))
	}
	return nil
}

// liveObjects returns the live objects of a bucket whose names begin with prefix, in the
// order of their names.
func (s *store) liveObjects(bucket, prefix string) ([]*Object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil {
		return nil, errNoBucket()
	}
	var list []*Object
	for _, name := range b.sortedNames() {
		if v := b.live(name); v != nil && strings.HasPrefix(name, prefix) {
			list = append(list, v.Object)
		}
	}
	return list, nil
}

// findSoftDeleted finds a soft-deleted generation. The caller releases the blob.
func (s *store) findSoftDeleted(bucketName, name string, generation int64) (*version, *apiError) {
	s.mu.Lock()
	defer s.unlock()
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

// dropSources permanently deletes the sources of the composed object made.
// deleteSourceObjects ignores soft delete and versioning. A source that was changed
// meanwhile is kept.
func (s *store) dropSources(sources []*version, made *Object) {
	for _, v := range sources {
		if v.Generation == made.Generation {
			continue
		}
		if err := s.dropSource(made.Bucket, v); err != nil {
			s.log.Warn("fakegcs: delete source of compose", "object", v.Name, "err", err)
		}
	}
}

func (s *store) dropSource(bucket string, v *version) *apiError {
	defer s.claim(bucket, v.Name)()
	s.mu.Lock()
	defer s.unlock()
	b := s.buckets[bucket]
	if b == nil {
		return nil
	}
	current := b.version(v.Name, v.Generation)
	if current == nil || protected(current, s.now()) != nil {
		return nil
	}
	return s.dropLocked(b, current, s.now(), 0)
}
