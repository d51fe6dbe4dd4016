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
	if !q.query.Has("predefinedAcl") && !q.query.Has("predefinedDefaultObjectAcl") {
		return body, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); len(body) > 0 && err != nil {
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
	all, err := json.Marshal(fields)
	if err != nil {
		return nil, errInternal(err)
	}
	return all, nil
}
