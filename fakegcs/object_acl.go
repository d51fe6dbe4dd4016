package fakegcs

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// ACLRule gives an entity a role for an object,
// https://cloud.google.com/storage/docs/access-control/lists.
type ACLRule struct {
	Entity string `json:"entity"`
	Role   string `json:"role"` // "READER" or "OWNER"
}

// Owner is the owner of an object.
type Owner struct {
	Entity string `json:"entity"`
}

// objectOwner uploads all objects, because the server does not know its callers.
const objectOwner = "user-owner@example.com"

// maxACL is the maximum number of rules of an object,
// https://cloud.google.com/storage/quotas#objects.
const maxACL = 100

// newBucketACL has the rules of a new bucket,
// https://cloud.google.com/storage/docs/access-control/lists#default.
var newBucketACL = []ACLRule{{"project-owners-" + projectNumber, "OWNER"}, {"project-editors-" + projectNumber, "OWNER"}, {"project-viewers-" + projectNumber, "READER"}}

// predefinedACLs has the rules of
// https://cloud.google.com/storage/docs/access-control/lists#predefined-acl, without
// that of the owner.
var predefinedACLs = map[string][]ACLRule{
	"private":                {},
	"projectPrivate":         newBucketACL,
	"authenticatedRead":      {{"allAuthenticatedUsers", "READER"}},
	"publicRead":             {{"allUsers", "READER"}},
	"bucketOwnerRead":        {{"project-owners-" + projectNumber, "READER"}},
	"bucketOwnerFullControl": {{"project-owners-" + projectNumber, "OWNER"}},
}

// parseACL parses the acl of a resource. Of each rule only entity and role can be written.
func parseACL(raw json.RawMessage, roles []string) ([]ACLRule, *apiError) {
	var rules []ACLRule
	if err := json.Unmarshal(raw, &rules); err != nil {
		return nil, refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
	}
	if len(rules) == 0 {
		return nil, nil
	}
	for _, r := range rules {
		if err := r.check(roles); err != nil {
			return nil, err
		}
	}
	return rules, checkCount(len(rules))
}

func checkCount(rules int) *apiError {
	if rules > maxACL {
		return invalid("The ACL has %d entries, at most %d are allowed.", rules, maxACL)
	}
	return nil
}

// check returns an error if r does not give an entity one of the roles.
func (r ACLRule) check(roles []string) *apiError {
	if !slices.Contains(roles, r.Role) {
		return invalid("Invalid value for role: '%s'. It must be one of %s.", r.Role, strings.Join(roles, ", "))
	}
	kind, name, _ := strings.Cut(r.Entity, "-")
	if r.Entity != "allUsers" && r.Entity != "allAuthenticatedUsers" &&
		(!slices.Contains([]string{"user", "group", "domain", "project"}, kind) || name == "") {
		return invalid("Unknown ACL entity: '%s'.", r.Entity)
	}
	return nil
}

// grant completes the ACL of o: it has the rules of the predefined ACL, or those that
// were given, and the owner of the object.
func (o *Object) grant(predefined string) *apiError {
	given := o.ACL
	if predefined != "" {
		rules, known := predefinedACLs[predefined]
		switch {
		case !known:
			return invalid("Invalid value '%s'. Values must match a predefined ACL.", predefined)
		case len(given) > 0:
			return invalid("An ACL and a predefined ACL can't be given together.")
		}
		given = rules
	}
	if given == nil {
		return nil
	}
	o.ACL = []ACLRule{{objectOwner, "OWNER"}}
	for _, r := range given {
		if r.Entity != objectOwner {
			o.ACL = append(o.ACL, r)
		}
	}
	return nil
}

// own sets the owner and the ACL of a new object of b.
func (b *bucket) own(o *Object) *apiError {
	switch {
	case !b.uniform():
		o.Owner = &Owner{objectOwner}
		if o.ACL == nil && b.DefaultObjectACL != nil {
			o.ACL = b.DefaultObjectACL
			return o.grant("")
		}
		return b.checkPublicRules(o.ACL)
	case o.ACL != nil:
		return errUniform("insert", "an object")
	}
	o.Owner = nil
	return nil
}

// errUniform is the error for an ACL of a bucket or an object in a bucket without ACLs.
func errUniform(verb, what string) *apiError {
	return invalid("Cannot %s legacy ACL for %s when uniform bucket-level access is enabled. Read more at https://cloud.google.com/storage/docs/uniform-bucket-level-access", verb, what)
}

// checkACL returns an error if o has an ACL and its bucket has no ACLs.
func (s *store) checkACL(o *Object) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(o.Bucket)
	if err != nil {
		return err
	}
	return b.own(o.clone())
}

// rules returns the ACL of o. The default is that of a new bucket, projectPrivate.
func (o *Object) rules() []ACLRule {
	c := *o
	if c.ACL == nil {
		_ = c.grant("projectPrivate") // a known name
	}
	return c.ACL
}

// entries returns the ACL of o as the service shows it.
func (o *Object) entries(base string) []aclEntry {
	return aclList{bucket: o.Bucket, object: o.Name, generation: o.Generation}.entries(base, o.Etag, o.rules())
}

// projected adds the ACL and the owner of o to r if the request asks for them.
func (q *request) projected(r objectResource, o *Object) objectResource {
	if q.query.Get("projection") == "full" && o.Owner != nil {
		r.ACL, r.Owner = o.entries(q.base()), o.Owner
	}
	return r
}

// checkProjection refuses an unknown projection.
func (q *request) checkProjection() *apiError {
	switch p := q.query.Get("projection"); p {
	case "", "full", "noAcl":
		return nil
	default:
		return invalid("Invalid value for projection: '%s'. It must be full or noAcl.", p)
	}
}
