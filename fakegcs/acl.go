package fakegcs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gcsup/fakegcs/internal/ops"
	"gcsup/fakegcs/internal/strictjson"
)

// The access control lists of buckets and objects, as their own resources. They are kept,
// and grant no access.
// https://cloud.google.com/storage/docs/access-control/lists

// The names of the lists in the paths of requests.
const (
	bucketACL  = "acl"              // of a bucket
	defaultACL = "defaultObjectAcl" // of the new objects of a bucket
	objectACL  = "acl"              // of an object, after its name
)

// aclList names one list.
type aclList struct {
	bucket     string
	object     string // "" for the lists of the bucket
	generation int64  // of the object; 0 is the live one
	ofObjects  bool   // the list for new objects of the bucket
}

// aclSchema has the kind of the entries of a list, and the roles that they can have.
type aclSchema struct {
	kind  string
	roles []string
}

var (
	objectACLs = aclSchema{"storage#objectAccessControl", []string{"READER", "OWNER"}}
	bucketACLs = aclSchema{"storage#bucketAccessControl", []string{"READER", "WRITER", "OWNER"}}
)

func (l aclList) schema() aclSchema {
	if l.object == "" && !l.ofObjects {
		return bucketACLs
	}
	return objectACLs
}

// aclEntry is an ACLRule in a reply of the service,
// https://cloud.google.com/storage/docs/json_api/v1/objectAccessControls,
// https://cloud.google.com/storage/docs/json_api/v1/bucketAccessControls.
type aclEntry struct {
	Kind       string       `json:"kind"`
	ID         string       `json:"id,omitempty"`
	SelfLink   string       `json:"selfLink,omitempty"`
	Bucket     string       `json:"bucket,omitempty"`
	Object     string       `json:"object,omitempty"`
	Generation int64        `json:"generation,omitempty,string"`
	Entity     string       `json:"entity"`
	Role       string       `json:"role"`
	Email      string       `json:"email,omitempty"`
	Domain     string       `json:"domain,omitempty"`
	Team       *projectTeam `json:"projectTeam,omitempty"`
	Etag       string       `json:"etag"`
}

type projectTeam struct {
	ProjectNumber string `json:"projectNumber"`
	Team          string `json:"team"`
}

// entries returns rules of the list as the service shows them.
func (l aclList) entries(base, etag string, rules []ACLRule) []aclEntry {
	var out []aclEntry
	for _, r := range rules {
		e := aclEntry{Kind: l.schema().kind, Entity: r.Entity, Role: r.Role, Etag: etag}
		if !l.ofObjects {
			e.Bucket, e.Object, e.Generation = l.bucket, l.object, l.generation
			id, path := l.bucket, url.PathEscape(l.bucket)
			if l.object != "" {
				id, path = fmt.Sprintf("%s/%s/%d", id, l.object, l.generation), path+"/o/"+linkEscape(l.object)
			}
			e.ID, e.SelfLink = id+"/"+r.Entity, base+"/storage/v1/b/"+path+"/acl/"+url.PathEscape(r.Entity)
		}
		switch kind, name, _ := strings.Cut(r.Entity, "-"); kind {
		case "user", "group":
			if strings.Contains(name, "@") {
				e.Email = name
			}
		case "domain":
			e.Domain = name
		case "project":
			team, number, _ := strings.Cut(name, "-")
			e.Team = &projectTeam{number, team}
		}
		out = append(out, e)
	}
	return out
}

// aclAPI processes the requests for access control lists.
type aclAPI struct{ *store }

func (a aclAPI) answer(q *request) *reply {
	l := aclList{bucket: q.bucket, object: q.object, ofObjects: q.rest[0] == defaultACL}
	entries, err := a.perform(q, l)
	switch {
	case err != nil:
		return err.reply(false)
	case q.op == ops.ACLDelete:
		return newReply(http.StatusNoContent)
	case q.op == ops.ACLList:
		return jsonReply(http.StatusOK, map[string]any{"kind": l.schema().kind + "s", "items": entries})
	}
	return jsonReply(http.StatusOK, entries[0])
}

// perform performs the operation of q, and returns the entries of the reply.
func (a aclAPI) perform(q *request, l aclList) (_ []aclEntry, err *apiError) {
	if l.object != "" {
		if l.generation, err = generationParam(q.query.Get("generation")); err != nil {
			return nil, err
		}
	}
	entity := ""
	if len(q.rest) > 1 {
		entity = q.rest[1]
	}
	var edit aclEdit
	switch q.op {
	case ops.ACLInsert, ops.ACLPatch:
		rule, err := readRule(q, entity, l.schema().roles)
		if err != nil {
			return nil, err
		}
		entity, edit = rule.Entity, setRule(rule, q.op == ops.ACLInsert || q.Method == http.MethodPut)
	case ops.ACLDelete:
		edit = l.dropRule(entity)
	}
	entries, err := a.access(l, q.base(), edit)
	if err != nil || q.op == ops.ACLDelete || q.op == ops.ACLList {
		return entries, err
	}
	i := slices.IndexFunc(entries, func(e aclEntry) bool { return e.Entity == entity })
	if i < 0 {
		return nil, errNoRule(entity)
	}
	return entries[i : i+1], nil
}

// readRule reads a rule from the body of q. entity is that of the URL, or "".
func readRule(q *request, entity string, roles []string) (ACLRule, *apiError) {
	body, refused := readMetadata(q.in)
	if refused != nil {
		return ACLRule{}, refused
	}
	var fields map[string]json.RawMessage
	var r ACLRule
	if err := strictjson.Decode(body, &fields); err == nil {
		_ = json.Unmarshal(fields["entity"], &r.Entity) // what is not text counts as missing
		_ = json.Unmarshal(fields["role"], &r.Role)
	}
	switch {
	case entity != "" && r.Entity != "" && r.Entity != entity:
		return r, invalid("Value '%s' in content does not agree with value '%s'.", r.Entity, entity)
	case entity != "":
		r.Entity = entity
	}
	switch {
	case r.Entity == "":
		return r, errRequired("entity")
	case r.Role == "":
		return r, errRequired("role")
	}
	return r, r.check(roles)
}
