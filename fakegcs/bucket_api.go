package fakegcs

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

type bucketList struct {
	Kind          string           `json:"kind"`
	NextPageToken string           `json:"nextPageToken,omitempty"`
	Items         []bucketResource `json:"items,omitempty"`
}

// CreateBucket creates a bucket. It fails when the name is not valid or taken.
func (s *Server) CreateBucket(name string) error {
	if _, err := s.createBucket(name, nil); err != nil {
		return err
	}
	return nil
}

// defaultClass returns the storage class that objects of a bucket get.
func (s *Server) defaultClass(name string) (string, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(name)
	if err != nil {
		return "", err
	}
	return b.StorageClass, nil
}

func (s *Server) createBucket(name string, body []byte) (bucketResource, *apiError) {
	if err := checkBucketName(name); err != nil {
		return bucketResource{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[name] != nil {
		return bucketResource{}, refuse(http.StatusConflict, "bucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded and you already own it.")
	}
	b := newBucket(name, s.now())
	if len(bytes.TrimSpace(body)) > 0 {
		if err := b.configure(body, s.now()); err != nil {
			return bucketResource{}, err
		}
	}
	if err := s.saveBucket(b); err != nil {
		return bucketResource{}, errInternal(err)
	}
	s.buckets[name] = b
	return b.bucketResource, nil
}

// onBuckets does the bucket operations of both APIs.
func (s *Server) onBuckets(q *request) *reply {
	var (
		res bucketResource
		err *apiError
	)
	switch q.op {
	case OpBucketList:
		return s.listBuckets(q)
	case OpBucketInsert:
		res, err = s.insertBucket(q)
	case OpBucketGet:
		res, err = s.getBucket(q)
	case OpBucketPatch:
		res, err = s.patchBucket(q)
	case OpBucketDelete:
		if err = s.deleteBucket(q); err == nil {
			return newReply(http.StatusNoContent)
		}
	}
	if err != nil {
		return err.reply(q.xml)
	}
	if q.xml {
		return newReply(http.StatusOK)
	}
	res.SelfLink = q.base() + "/storage/v1/b/" + res.Name
	return jsonReply(http.StatusOK, res)
}

func (s *Server) insertBucket(q *request) (bucketResource, *apiError) {
	body, err := readMetadata(q.in)
	if err != nil {
		return bucketResource{}, err
	}
	if q.xml {
		return s.createBucket(q.bucket, nil)
	}
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return bucketResource{}, refuse(http.StatusBadRequest, "parseError", "Parse Error: %v", err)
	}
	if named.Name == "" {
		return bucketResource{}, refuse(http.StatusBadRequest, "required", "Required parameter: name")
	}
	return s.createBucket(named.Name, body)
}

func (s *Server) getBucket(q *request) (bucketResource, *apiError) {
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return bucketResource{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(q.bucket)
	if err != nil {
		return bucketResource{}, err
	}
	return b.bucketResource, cond.check(&Object{Metageneration: b.Metageneration})
}

func (s *Server) patchBucket(q *request) (bucketResource, *apiError) {
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return bucketResource{}, err
	}
	body, err := readMetadata(q.in)
	if err != nil {
		return bucketResource{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(q.bucket)
	if err != nil {
		return bucketResource{}, err
	}
	if err := cond.check(&Object{Metageneration: b.Metageneration}); err != nil {
		return bucketResource{}, err
	}
	was := b.bucketResource
	err = b.configure(body, s.now())
	if err == nil && emptyPatch(body) { // not even the metageneration changes
		return was, nil
	}
	if err == nil {
		b.Metageneration++
		b.Updated = s.now()
		b.sign()
		if saveErr := s.saveBucket(b); saveErr != nil {
			err = errInternal(saveErr)
		}
	}
	if err != nil {
		b.bucketResource = was
		return bucketResource{}, err
	}
	if was.RetentionPolicy.period() != b.RetentionPolicy.period() {
		b.retain()
	}
	return b.bucketResource, nil
}

func emptyPatch(body []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(body, &fields) == nil && len(fields) == 0
}

func (s *Server) deleteBucket(q *request) *apiError {
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[q.bucket]
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
			v.blob.Release()
		}
	}
	delete(s.buckets, b.Name)
	return nil
}

func (s *Server) listBuckets(q *request) *reply {
	l, err := q.listQuery()
	if err != nil {
		return err.reply(q.xml)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := bucketList{Kind: "storage#buckets"}
	for _, name := range slices.Sorted(maps.Keys(s.buckets)) {
		if !strings.HasPrefix(name, l.prefix) || name <= l.after {
			continue
		}
		if len(out.Items) == l.limit {
			out.NextPageToken = pageToken(out.Items[l.limit-1].Name)
			break
		}
		out.Items = append(out.Items, s.buckets[name].bucketResource)
	}
	if q.xml {
		return xmlBuckets(out)
	}
	return jsonReply(http.StatusOK, out)
}
