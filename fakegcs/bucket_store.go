package fakegcs

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// resourceOf returns the metadata of a bucket.
func (s *store) resourceOf(name string, cond conditions) (bucketResource, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeLocked(name, cond, func(*bucket) (bool, *apiError) { return false, nil })
}

// changeLocked changes the metadata of a bucket if cond holds, and returns it. After an error, the bucket stays as it
// was.
func (s *store) changeLocked(name string, cond conditions, change func(*bucket) (changed bool, err *apiError)) (bucketResource, *apiError) {
	b, err := s.bucketLocked(name)
	if err == nil {
		err = cond.check(&Object{Metageneration: b.Metageneration})
	}
	if err != nil {
		return bucketResource{}, err
	}
	was := b.bucketResource
	changed, err := change(b)
	switch {
	case err != nil:
		b.bucketResource = was
		return bucketResource{}, err
	case changed:
		return s.bucketChanged(b, was)
	}
	return was, nil
}

// patchBucket changes fields of a bucket. With replace, their values are replaced. Otherwise objects such as the
// labels are merged. Without fields, not even the metageneration changes.
func (s *store) patchBucket(name string, fields map[string]json.RawMessage, cond conditions, replace bool) (bucketResource, *apiError) {
	defer s.claimBuckets()()
	s.mu.Lock()
	defer s.mu.Unlock()
	var was *retentionPolicy
	res, err := s.changeLocked(name, cond, func(b *bucket) (bool, *apiError) {
		before := b.bucketResource
		was = before.RetentionPolicy
		return len(fields) > 0, b.configure(fields, !replace, &before, s.now())
	})
	if err == nil && was.period() != res.RetentionPolicy.period() {
		s.buckets[name].retain()
	}
	return res, err
}

// lockRetention makes the retention policy of a bucket permanent: it can only be extended.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/lockRetentionPolicy
func (s *store) lockRetention(name string, cond conditions) (bucketResource, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeLocked(name, cond, func(b *bucket) (bool, *apiError) {
		if b.RetentionPolicy == nil {
			return false, invalid("The bucket has no retention policy to lock.")
		}
		locked := *b.RetentionPolicy
		locked.IsLocked = true
		changed := locked != *b.RetentionPolicy
		b.RetentionPolicy = &locked
		return changed, nil
	})
}

// deleteBucket deletes a bucket that has no live or noncurrent object.
func (s *store) deleteBucket(name string, cond conditions) *apiError {
	defer s.claimBuckets()()
	s.mu.Lock()
	defer s.unlock()
	b := s.buckets[name]
	if b == nil {
		return errNoBucket()
	}
	if err := cond.check(&Object{Metageneration: b.Metageneration}); err != nil {
		return err
	}
	for _, g := range b.objects {
		if g.live != nil || len(g.old) > 0 {
			return refuse(http.StatusConflict, "bucketNotEmpty", "The bucket you tried to delete is not empty.")
		}
	}
	if err := s.disk.RemoveBucket(b.Name); err != nil {
		return errInternal(err)
	}
	for _, g := range b.objects {
		for _, v := range g.soft {
			s.dropped = append(s.dropped, v.blob)
		}
	}
	delete(s.buckets, b.Name)
	return nil
}

// listBuckets returns the buckets that l selects, and whether there are more of them.
func (s *store) listBuckets(l listQuery) (list []bucketResource, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.buckets)) {
		if !strings.HasPrefix(name, l.prefix) || name <= l.after {
			continue
		}
		if len(list) == l.limit {
			return list, true
		}
		list = append(list, s.buckets[name].bucketResource)
	}
	return list, false
}
