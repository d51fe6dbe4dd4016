package fakegcs

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"

	"gcsup/fakegcs/internal/ops"
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

// checkPolicy returns an error if the bucket cannot have a policy, or has another one than it replaces. Conditions need uniform access and
// version 3, https://cloud.google.com/storage/docs/access-control/iam#conditions.
func (b *bucket) checkPolicy(is iamPolicy) *apiError {
	for _, binding := range is.Bindings {
		if err := b.checkPublic(binding.Members...); err != nil {
			return err
		}
		switch {
		case len(binding.Condition) == 0 || empty(binding.Condition):
		case !b.uniform():
			return refuse(http.StatusPreconditionFailed, "conditionNotMet", "To set IAM conditions on a bucket, you must first enable uniform bucket-level access on it.")
		case is.Version < 3:
			return invalid("The version of a policy with conditions must be at least 3, not %d.", is.Version)
		}
	}
	if is.Etag != "" && is.Etag != b.policy().shown(b.Name).Etag {
		return errCondition()
	}
	return nil
}

func (b *bucket) policy() iamPolicy {
	if b.Policy == nil {
		return newBucketPolicy()
	}
	return *b.Policy
}

// answerPolicy returns the policy of a bucket, after it has replaced it if q asks for that. If the new one has an
// etag, it must be that of the policy.
func (a bucketAPI) answerPolicy(q *request) *reply {
	var given iamPolicy
	if q.op == ops.PolicySet {
		err := q.decode("policy", &given)
		if err == nil && slices.ContainsFunc(given.Bindings, func(b iamBinding) bool { return b.Role == "" }) {
			err = invalid("A binding has no role.")
		}
		if err != nil {
			return err.reply(false)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.bucketLocked(q.bucket)
	if err == nil && q.op == ops.PolicySet {
		if err = b.checkPolicy(given); err == nil {
			was := b.bucketRecord
			b.Policy = &iamPolicy{Version: max(given.Version, 1), Bindings: given.Bindings, Changes: b.policy().Changes + 1}
			err = a.saveRecord(b, was)
		}
	}
	if err != nil {
		return err.reply(false)
	}
	return jsonReply(http.StatusOK, b.policy().shown(q.bucket))
}
