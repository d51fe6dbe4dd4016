package fakegcs

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"gcsup/fakegcs/internal/strictjson"
)

// setting is a field of a bucket that requests can set. Creation, PATCH and PUT use the same settings.
type setting struct {
	name string
	// set sets the field of r to a value. With merge, the value changes members of the object that the field has.
	set func(r *bucketResource, value json.RawMessage, merge bool) *apiError
	// complete checks the field of r after set, and sets what only the server sets. was is the bucket before the
	// request.
	complete func(r, was *bucketResource, now time.Time) *apiError
}

// bucketSettings has all settings, in their order: the access control lists depend on iamConfiguration.
var bucketSettings = []setting{
	keep("location", func(r *bucketResource) *string { return &r.Location }, (*bucketResource).completeLocation),
	keep("customPlacementConfig", func(r *bucketResource) **placement { return &r.CustomPlacement }, nil),
	keep("storageClass", func(r *bucketResource) *string { return &r.StorageClass }, (*bucketResource).completeClass),
	keep("rpo", func(r *bucketResource) *string { return &r.RPO }, (*bucketResource).completeRPO),
	keep("autoclass", func(r *bucketResource) **autoclass { return &r.Autoclass }, (*bucketResource).completeAutoclass),
	keep("hierarchicalNamespace", func(r *bucketResource) **namespace { return &r.HierarchicalNamespace }, nil),
	keep("versioning", func(r *bucketResource) **versioning { return &r.Versioning }, nil),
	keep("softDeletePolicy", func(r *bucketResource) **softDeletePolicy { return &r.SoftDeletePolicy }, (*bucketResource).completeSoftDelete),
	keep("retentionPolicy", func(r *bucketResource) **retentionPolicy { return &r.RetentionPolicy }, (*bucketResource).completeRetention),
	keep("objectRetention", func(r *bucketResource) **objectRetention { return &r.ObjectRetention }, (*bucketResource).completeObjectRetention),
	keep("defaultEventBasedHold", func(r *bucketResource) *bool { return &r.DefaultEventBasedHold }, nil),
	keep("labels", func(r *bucketResource) *map[string]string { return &r.Labels }, nil),
	keep("lifecycle", func(r *bucketResource) **lifecycle { return &r.Lifecycle }, (*bucketResource).completeLifecycle),
	keep("cors", func(r *bucketResource) *[]corsRule { return &r.CORS }, (*bucketResource).completeCORS),
	keep("website", func(r *bucketResource) **website { return &r.Website }, nil),
	keep("billing", func(r *bucketResource) **billing { return &r.Billing }, nil),
	keep("logging", func(r *bucketResource) **logging { return &r.Logging }, nil),
	keep("encryption", func(r *bucketResource) **encryption { return &r.Encryption }, nil),
	{"iamConfiguration", (*bucketResource).setIAM, (*bucketResource).completeIAM},
	keepACL(bucketACL, bucketACLs.roles, func(r *bucketResource) *[]ACLRule { return &r.ACL }),
	keepACL(defaultACL, objectACLs.roles, func(r *bucketResource) *[]ACLRule { return &r.DefaultObjectACL }),
}

// keep returns the setting of a field whose value is kept as the request has it.
func keep[T any](name string, field func(*bucketResource) *T, complete func(r, was *bucketResource, now time.Time) *apiError) setting {
	return setting{name, func(r *bucketResource, value json.RawMessage, merge bool) *apiError {
		var given, old, is T
		if merge {
			old = *field(r)
		}
		err := strictjson.Decode(value, &given, name)
		if err == nil {
			err = strictjson.Decode(merged(old, value), &is, name)
		}
		if err != nil {
			return invalid("Invalid value for %s: %v", name, err)
		}
		*field(r) = is
		return nil
	}, complete}
}

// merged returns the JSON of old after a patch: its members are replaced, or removed by null. It is null if no member
// is left. A patch that is no object replaces old.
func merged(old any, patch json.RawMessage) json.RawMessage {
	var is, changes map[string]json.RawMessage
	if json.Unmarshal(patch, &changes) != nil || changes == nil {
		return patch
	}
	data, _ := json.Marshal(old) // a type of this package
	_ = json.Unmarshal(data, &is)
	all := map[string]json.RawMessage{}
	maps.Copy(all, is)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	if len(all) == 0 {
		return json.RawMessage("null")
	}
	data, _ = json.Marshal(all)
	return data
}

// configure sets fields of a bucket. With merge, those that are objects are merged. It refuses fields that the server
// does not keep. was is r before the request, and nil for a new bucket. After an error, r must not be used.
func (r *bucketResource) configure(fields map[string]json.RawMessage, merge bool, was *bucketResource, now time.Time) *apiError {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.ContainsFunc(bucketSettings, func(s setting) bool { return s.name == name }) {
			if err := unkept("bucket", name, fields[name], bucketOutput, bucketMissing); err != nil {
				return err
			}
		}
	}
	before := *r
	for _, s := range bucketSettings {
		value, given := fields[s.name]
		if !given {
			continue
		}
		if err := s.set(r, value, merge); err != nil {
			return err
		}
		if s.complete != nil {
			if err := s.complete(r, &before, now); err != nil {
				return err
			}
		}
	}
	if err := r.checkNamespace(was); err != nil {
		return err
	}
	if err := r.checkAutoclass(); err != nil {
		return err
	}
	return r.locate(was)
}

func (r *bucketResource) completeLocation(was *bucketResource, _ time.Time) *apiError {
	r.Location = cmp.Or(strings.ToUpper(r.Location), was.Location)
	return nil
}

func (r *bucketResource) completeClass(was *bucketResource, _ time.Time) *apiError {
	class, err := storageClass(r.StorageClass)
	r.StorageClass = cmp.Or(class, was.StorageClass)
	return err
}

func (r *bucketResource) completeRPO(*bucketResource, time.Time) *apiError {
	if r.RPO != "" && r.RPO != "DEFAULT" && r.RPO != "ASYNC_TURBO" {
		return invalid("Invalid rpo '%s'. It must be DEFAULT or ASYNC_TURBO.", r.RPO)
	}
	return nil
}

// completeSoftDelete sets the time of the policy. It stays if the duration does.
func (r *bucketResource) completeSoftDelete(was *bucketResource, now time.Time) *apiError {
	switch is := r.SoftDeletePolicy; {
	case is == nil:
	case was.SoftDeletePolicy != nil && was.SoftDeletePolicy.RetentionDurationSeconds == is.RetentionDurationSeconds:
		is.EffectiveTime = was.SoftDeletePolicy.EffectiveTime
	default:
		is.EffectiveTime = timestamp{now}
	}
	return nil
}

func (r *bucketResource) completeObjectRetention(was *bucketResource, _ time.Time) *apiError {
	switch is := r.ObjectRetention; {
	case is == nil: // it cannot be disabled
		r.ObjectRetention = was.ObjectRetention
	case is.Mode != "Enabled":
		return invalid("Invalid mode of objectRetention: '%s'. It must be Enabled.", is.Mode)
	}
	return nil
}
