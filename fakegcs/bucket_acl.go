package fakegcs

import (
	"encoding/json"
	"net/http"
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

// withPredefinedACLs returns the body of a request that creates or changes a bucket with the
// access control lists that its query names.
func (q *request) withPredefinedACLs(body []byte) ([]byte, *apiError) {
	lists := map[string][]ACLRule{}
	for _, p := range []struct {
		param, field string
		known        map[string][]ACLRule
	}{
		{"predefinedAcl", "acl", predefinedBucketACLs},
		{"predefinedDefaultObjectAcl", "defaultObjectAcl", predefinedACLs},
	} {
		name := q.query.Get(p.param)
		if name == "" {
			continue
		}
		rules, ok := p.known[name]
		if !ok {
			return nil, invalid("Invalid value '%s'. Values must match a predefined ACL.", name)
		}
		lists[p.field] = append([]ACLRule{}, rules...) // not nil
	}
	if len(lists) == 0 {
		return body, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); len(body) > 0 && err != nil {
		return nil, refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
	}
	for field, rules := range lists {
		if raw := fields[field]; raw != nil && !empty(raw) {
			return nil, invalid("An ACL and a predefined ACL can't be given together.")
		}
		list, err := json.Marshal(rules)
		if err != nil {
			return nil, errInternal(err)
		}
		fields[field] = list
	}
	all, err := json.Marshal(fields)
	if err != nil {
		return nil, errInternal(err)
	}
	return all, nil
}
