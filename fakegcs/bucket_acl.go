package fakegcs

import (
	"encoding/json"
	"net/http"
	"time"
)

// predefinedBucketACLs has the rules of the predefined lists of buckets,
// https://cloud.google.com/storage/docs/access-control/lists#predefined-acl.
var predefinedBucketACLs = map[string][]ACLRule{
	"private":           {{"project-owners-" + projectNumber, "OWNER"}},
	"projectPrivate":    newBucketACL,
	"authenticatedRead": {{"project-owners-" + projectNumber, "OWNER"}, {"allAuthenticatedUsers", "READER"}},
	"publicRead":        {{"project-owners-" + projectNumber, "OWNER"}, {"allUsers", "READER"}},
	"publicReadWrite":   {{"project-owners-" + projectNumber, "OWNER"}, {"allUsers", "WRITER"}},
}

// bucketFields reads the body of q, which creates or changes a bucket. It has the access control lists that the query
// names, too.
func (q *request) bucketFields() (map[string]json.RawMessage, *apiError) {
	body, refused := readMetadata(q.in)
	if refused != nil {
		return nil, refused
	}
	var fields map[string]json.RawMessage
	predefined := q.query.Has("predefinedAcl") || q.query.Has("predefinedDefaultObjectAcl")
	if err := json.Unmarshal(body, &fields); err != nil && (len(body) > 0 || !predefined) {
		return nil, refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for _, p := range []struct {
		name, field string
		known       map[string][]ACLRule
	}{
		{q.query.Get("predefinedAcl"), bucketACL, predefinedBucketACLs},
		{q.query.Get("predefinedDefaultObjectAcl"), defaultACL, predefinedACLs},
	} {
		rules, known := p.known[p.name]
		switch raw := fields[p.field]; {
		case p.name == "":
			continue
		case !known:
			return nil, invalid("Invalid value '%s'. Values must match a predefined ACL.", p.name)
		case raw != nil && !empty(raw):
			return nil, invalid("An ACL and a predefined ACL can't be given together.")
		}
		fields[p.field], _ = json.Marshal(append([]ACLRule{}, rules...)) // not null
	}
	return fields, nil
}

// keepACL returns the setting of an access control list.
func keepACL(name string, roles []string, field func(*bucketResource) *[]ACLRule) setting {
	return setting{name, func(r *bucketResource, value json.RawMessage, _ bool) *apiError {
		rules, err := parseACL(value, roles)
		if rules == nil && name == defaultACL && string(value) != "null" {
			rules = []ACLRule{} // only the owner
		}
		*field(r) = rules
		return err
	}, func(r, _ *bucketResource, _ time.Time) *apiError {
		switch rules := *field(r); {
		case len(rules) == 0:
			return nil
		case r.uniform():
			return errUniform("update", "a bucket")
		default:
			return r.checkPublicRules(rules)
		}
	}}
}
