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
	b, err := s.bucketLocked(name)
	if err != nil {
		return bucketResource{}, err
	}
	return b.bucketResource, cond.check(&Object{Metageneration: b.Metageneration})
}

// patchBucket changes fields of a bucket. With replace, their values are replaced. Otherwise objects such as the
// labels are merged.
func (s *store) patchBucket(name string, fields map[string]json.RawMessage, cond conditions, replace bool) (bucketResource, *apiError) {
	defer s.claimBuckets()()
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(name)
	if err != nil {
		return bucketResource{}, err
	}
	if err := cond.check(&Object{Metageneration: b.Metageneration}); err != nil {
		return bucketResource{}, err
	}
	if len(fields) == 0 { // not even the metageneration changes
		return b.bucketResource, nil
	}
	was := b.bucketResource
	if err := b.configure(fields, !replace, &was, s.now()); err != nil {
		b.bucketResource = was
		return bucketResource{}, err
	}
	res, err := s.bucketChanged(b, was)
	if err == nil && was.RetentionPolicy.period() != b.RetentionPolicy.period() {
		b.retain()
	}
	return res, err
}

// lockRetention makes the retention policy of a bucket permanent.
func (s *store) lockRetention(name string, cond conditions) (bucketResource, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(name)
	if err != nil {
		return bucketResource{}, err
	}
	if err := cond.check(&Object{Metageneration: b.Metageneration}); err != nil {
		return bucketResource{}, err
	}
	switch p := b.RetentionPolicy; {
	case p == nil:
		return bucketResource{}, invalid("The bucket has no retention policy to lock.")
	case p.IsLocked:
		return b.bucketResource, nil
	}
	was := b.bucketResource
	locked := *b.RetentionPolicy
	locked.IsLocked = true
	b.RetentionPolicy = &locked
	return s.bucketChanged(b, was)
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
