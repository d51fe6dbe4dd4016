package fakegcs

import (
	"encoding/json"
	"net/http"
	"sync"

	"gcsup/fakegcs/internal/blob"
)

// store has the buckets and their objects. Its methods that end in Locked need mu.
type store struct {
	*core
	claims         claims
	mu             sync.Mutex // guards the fields below and all buckets
	buckets        map[string]*bucket
	lastGeneration int64
	dropped        []*blob.Blob // of generations that no longer exist; unlock releases them
}

// unlock unlocks mu, and then releases the bytes of the generations that were deleted,
// because no other request may wait until a large file is removed.
func (s *store) unlock() {
	dropped := s.dropped
	s.dropped = nil
	s.mu.Unlock()
	for _, b := range dropped {
		b.Release()
	}
}

// bucketLocked finds a bucket, or creates it if the options allow that.
func (s *store) bucketLocked(name string) (*bucket, *apiError) {
	if b := s.buckets[name]; b != nil {
		return b, nil
	}
	if !s.opts.CreateBuckets {
		return nil, errNoBucket()
	}
	return s.addBucketLocked(name, nil, "")
}

// createBucket creates a bucket with the fields of a request, for a principal, who is "" if unknown.
func (s *store) createBucket(name string, fields map[string]json.RawMessage, principal string) (bucketResource, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[name] != nil {
		return bucketResource{}, refuse(http.StatusConflict, "bucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded and you already own it.")
	}
	b, err := s.addBucketLocked(name, fields, principal)
	if err != nil {
		return bucketResource{}, err
	}
	return b.bucketResource, nil
}

// addBucketLocked creates a bucket. The name must not exist.
func (s *store) addBucketLocked(name string, fields map[string]json.RawMessage, principal string) (*bucket, *apiError) {
	if err := checkBucketName(name); err != nil {
		return nil, err
	}
	b := newBucket(name, s.now())
	b.Creator = principal
	if err := b.configure(fields, false, nil, s.now()); err != nil {
		return nil, err
	}
	if err := s.saveBucket(b); err != nil {
		return nil, errInternal(err)
	}
	s.buckets[name] = b
	return b, nil
}

// hasBucket returns an error if a bucket does not exist.
func (s *store) hasBucket(name string) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.bucketLocked(name)
	return err
}

// defaultClass returns the default storage class of a bucket.
func (s *store) defaultClass(name string) (string, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(name)
	if err != nil {
		return "", err
	}
	return b.StorageClass, nil
}

// requesterPays reports whether the requester pays for one of the buckets, and the principal, who is "" if unknown,
// did not create it.
func (s *store) requesterPays(principal string, names ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if b := s.buckets[name]; b != nil && b.Billing != nil && b.Billing.RequesterPays && (principal == "" || principal != b.Creator) {
			return true
		}
	}
	return false
}

func (s *store) saveBucket(b *bucket) error { return s.disk.SaveBucket(b.Name, b.bucketRecord) }

// saveRecord saves b, whose record was was. If that fails, b stays as it was.
func (s *store) saveRecord(b *bucket, was bucketRecord) *apiError {
	if err := s.saveBucket(b); err != nil {
		b.bucketRecord = was
		return errInternal(err)
	}
	return nil
}

// saveObjectLocked writes the record of a generation to the directory, if there is one.
// Like [store.removeObjectLocked], it unlocks mu meanwhile: the caller has claimed the
// object, and other requests must not wait for the file system.
func (s *store) saveObjectLocked(v *version) error {
	if s.disk == nil {
		return nil
	}
	r := objectRecord{Object: v.Object, Blob: v.blob.ID(), Upload: v.upload, Retained: v.retained}
	for _, p := range v.blob.Pieces() {
		r.Pieces = append(r.Pieces, piece{p.ID(), p.Size()})
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.disk.SaveObject(v.Bucket, v.Name, v.Generation, r)
}

// removeObjectLocked removes the record of a generation.
func (s *store) removeObjectLocked(o *Object) error {
	if s.disk == nil {
		return nil
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.disk.RemoveObject(o.Bucket, o.Name, o.Generation)
}
