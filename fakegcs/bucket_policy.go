package fakegcs

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"

	"gcsup/fakegcs/internal/strictjson"
)

// The IAM policy of a bucket. It is kept, and grants no access.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/setIamPolicy

// iamPolicy is the policy of a bucket.
type iamPolicy struct {
	Kind       string       `json:"kind"`
	ResourceID string       `json:"resourceId"`
	Version    int          `json:"version"`
	Etag       string       `json:"etag"`
	Bindings   []iamBinding `json:"bindings"`
	Changes    uint64       `json:"changes,omitempty"` // in the directory only; Etag is made of it
}

// iamBinding gives a role to members. Condition is kept as given.
type iamBinding struct {
	Role      string          `json:"role"`
	Members   []string        `json:"members"`
	Condition json.RawMessage `json:"condition,omitempty"`
}

// newBucketPolicy is the policy of a new bucket,
// https://cloud.google.com/storage/docs/access-control/iam#acls.
func newBucketPolicy() iamPolicy {
	return iamPolicy{Version: 1, Bindings: []iamBinding{
		{Role: "roles/storage.legacyBucketOwner", Members: []string{"projectEditor:0", "projectOwner:0"}},
		{Role: "roles/storage.legacyBucketReader", Members: []string{"projectViewer:0"}},
	}}
}

// shown returns p as the service shows that of a bucket. Its etag counts the changes, as the
// service's does: "CAE=" is 1.
func (p iamPolicy) shown(bucket string) iamPolicy {
	p.Kind, p.ResourceID = "storage#policy", "projects/_/buckets/"+bucket
	p.Etag = base64.StdEncoding.EncodeToString(binary.AppendUvarint([]byte{8}, p.Changes+1))
	p.Changes = 0
	return p
}

// checkPolicy returns an error if the bucket cannot have a policy. Conditions need uniform access and
// version 3, https://cloud.google.com/storage/docs/access-control/iam#conditions.
func (r *bucketResource) checkPolicy(is iamPolicy) *apiError {
	for _, binding := range is.Bindings {
		if err := r.checkPublic(binding.Members...); err != nil {
			return err
		}
		switch {
		case len(binding.Condition) == 0 || empty(binding.Condition):
		case !r.uniform():
			return refuse(http.StatusPreconditionFailed, "conditionNotMet", "To set IAM conditions on a bucket, you must first enable uniform bucket-level access on it.")
		case is.Version < 3:
			return invalid("The version of a policy with conditions must be at least 3, not %d.", is.Version)
		}
	}
	return nil
}

func (b *bucket) policy() iamPolicy {
	if b.Policy == nil {
		return newBucketPolicy()
	}
	return *b.Policy
}

func (a bucketAPI) policy(q *request) *reply {
	is, err := a.policyOf(q.bucket)
	if err != nil {
		return err.reply(false)
	}
	return jsonReply(http.StatusOK, is.shown(q.bucket))
}

func (a bucketAPI) setPolicy(q *request) *reply {
	body, err := readMetadata(q.in)
	if err != nil {
		return err.reply(false)
	}
	var given iamPolicy
	if err := strictjson.Decode(body, &given); err != nil {
		return invalid("Invalid policy: %v", err).reply(false)
	}
	is, err := a.replacePolicy(q.bucket, given)
	if err != nil {
		return err.reply(false)
	}
	return jsonReply(http.StatusOK, is.shown(q.bucket))
}

// policyOf returns the policy of a bucket.
func (s *store) policyOf(bucket string) (iamPolicy, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(bucket)
	if err != nil {
		return iamPolicy{}, err
	}
	return b.policy(), nil
}

// replacePolicy replaces the policy of a bucket. If given has an etag, it must be that of the
// policy.
func (s *store) replacePolicy(bucket string, given iamPolicy) (iamPolicy, *apiError) {
	for _, binding := range given.Bindings {
		if binding.Role == "" {
			return iamPolicy{}, invalid("A binding has no role.")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(bucket)
	if err == nil {
		err = b.checkPolicy(given)
	}
	if err != nil {
		return iamPolicy{}, err
	}
	was, kept := b.policy(), b.Policy
	if given.Etag != "" && given.Etag != was.shown(bucket).Etag {
		return iamPolicy{}, errCondition()
	}
	b.Policy = &iamPolicy{Version: max(given.Version, 1), Bindings: given.Bindings, Changes: was.Changes + 1}
	if err := s.saveBucket(b); err != nil {
		b.Policy = kept
		return iamPolicy{}, errInternal(err)
	}
	return *b.Policy, nil
}
