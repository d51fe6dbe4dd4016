package fakegcs

import (
	"encoding/json"
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

// newIAMConfiguration is that of a new bucket.
var newIAMConfiguration = iamConfiguration{PublicAccessPrevention: "inherited"}

// lockedAfter is the time for which uniform access can be disabled.
const lockedAfter = 90 * 24 * time.Hour

// setIAM applies the value of a request.
func (r *bucketResource) setIAM(value json.RawMessage, merge bool) *apiError {
	var given struct {
		BucketPolicyOnly, UniformBucketLevelAccess *uniformAccess
		PublicAccessPrevention                     *string
	}
	if err := strictjson.Decode(value, &given, "iamConfiguration"); err != nil {
		return invalid("Invalid value for iamConfiguration: %v", err)
	}
	c := &r.IamConfiguration
	if !merge {
		*c = newIAMConfiguration
	}
	if p := given.PublicAccessPrevention; p != nil {
		c.PublicAccessPrevention = *p
	}
	for _, is := range []*uniformAccess{given.BucketPolicyOnly, given.UniformBucketLevelAccess} {
		if is != nil && is.Enabled != c.UniformBucketLevelAccess.Enabled {
			c.UniformBucketLevelAccess.Enabled = is.Enabled
		}
	}
	return nil
}

// completeIAM checks the configuration, and sets the time from which uniform access is locked. It stays while the
// access is enabled.
func (r *bucketResource) completeIAM(was *bucketResource, now time.Time) *apiError {
	c, uniform := &r.IamConfiguration, was.IamConfiguration.UniformBucketLevelAccess
	switch c.PublicAccessPrevention {
	case "enforced", "inherited":
	case "unspecified": // the older name
		c.PublicAccessPrevention = "inherited"
	default:
		return invalid("Invalid value for iamConfiguration: publicAccessPrevention: want enforced or inherited, not %q", c.PublicAccessPrevention)
	}
	if is := c.UniformBucketLevelAccess.Enabled; is != uniform.Enabled {
		uniform = uniformAccess{Enabled: is}
		if is {
			uniform.LockedTime = timestamp{now.Add(lockedAfter)}
		}
	}
	c.BucketPolicyOnly, c.UniformBucketLevelAccess = uniform, uniform
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
