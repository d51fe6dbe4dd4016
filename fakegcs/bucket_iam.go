package fakegcs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gcsup/fakegcs/internal/strictjson"
)

// iamConfiguration says whether the objects of a bucket have access control lists,
// https://cloud.google.com/storage/docs/uniform-bucket-level-access. The service shows uniform
// access under its older name, too, and accepts both.
type iamConfiguration struct {
	BucketPolicyOnly         uniformAccess `json:"bucketPolicyOnly"`
	UniformBucketLevelAccess uniformAccess `json:"uniformBucketLevelAccess"`
	PublicAccessPrevention   string        `json:"publicAccessPrevention"`
}

type uniformAccess struct {
	Enabled    bool      `json:"enabled"`
	LockedTime timestamp `json:"lockedTime,omitzero"` // from when it cannot be disabled; not enforced
}

// lockedAfter is the time for which uniform access can be disabled.
const lockedAfter = 90 * 24 * time.Hour

// newIAMConfiguration is that of a new bucket.
func newIAMConfiguration() iamConfiguration {
	return iamConfiguration{PublicAccessPrevention: "inherited"}
}

// change applies the fields of a create or patch body.
func (c *iamConfiguration) change(raw json.RawMessage, now time.Time) error {
	var given struct {
		BucketPolicyOnly, UniformBucketLevelAccess *uniformAccess
		PublicAccessPrevention                     *string
	}
	if err := strictjson.Decode(raw, &given, "iamConfiguration"); err != nil {
		return err
	}
	if p := given.PublicAccessPrevention; p != nil {
		switch *p {
		case "enforced", "inherited":
		case "unspecified": // the older name
			*p = "inherited"
		default:
			return fmt.Errorf("publicAccessPrevention: want enforced or inherited, not %q", *p)
		}
		c.PublicAccessPrevention = *p
	}
	for _, is := range []*uniformAccess{given.BucketPolicyOnly, given.UniformBucketLevelAccess} {
		if is == nil || is.Enabled == c.UniformBucketLevelAccess.Enabled {
			continue
		}
		c.UniformBucketLevelAccess = uniformAccess{Enabled: is.Enabled}
		if is.Enabled {
			c.UniformBucketLevelAccess.LockedTime = timestamp{now.Add(lockedAfter)}
		}
	}
	c.BucketPolicyOnly = c.UniformBucketLevelAccess
	return nil
}

// checkPublic returns an error if one of the entities or members is everyone and the bucket prevents public
// access, https://cloud.google.com/storage/docs/public-access-prevention.
func (r *bucketResource) checkPublic(entities ...string) *apiError {
	if r.IamConfiguration.PublicAccessPrevention != "enforced" {
		return nil
	}
	for _, e := range entities {
		if e == "allUsers" || e == "allAuthenticatedUsers" {
			return refuse(http.StatusPreconditionFailed, "conditionNotMet", "The member bindings allUsers and allAuthenticatedUsers are not allowed since public access prevention is enforced.")
		}
	}
	return nil
}

// checkPublicRules is checkPublic for the rules of an access control list.
func (r *bucketResource) checkPublicRules(list []ACLRule) *apiError {
	for _, rule := range list {
		if err := r.checkPublic(rule.Entity); err != nil {
			return err
		}
	}
	return nil
}

// uniform reports whether the bucket has no ACLs.
func (r *bucketResource) uniform() bool { return r.IamConfiguration.UniformBucketLevelAccess.Enabled }
