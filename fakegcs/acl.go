package fakegcs

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gcsup/fakegcs/faults"
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

// aclRoles are the roles that a rule of the list can have.
func (l aclList) aclRoles() []string {
	if l.object == "" && !l.ofObjects {
		return []string{"READER", "WRITER", "OWNER"}
	}
	return objectRoles
}

// aclAPI processes the requests for access control lists.
type aclAPI struct{ *store }

func (a aclAPI) answer(q *request) *reply {
	rules, err := a.perform(q)
	if err != nil {
		return err.reply(false)
	}
	l, _ := q.aclList() // perform has parsed it
	var entries []any
	for _, r := range rules.list {
		entries = append(entries, rules.entry(q.base(), l, r))
	}
	switch q.op {
	case faults.OpACLDelete:
		return newReply(http.StatusNoContent)
	case faults.OpACLList:
		kind := "storage#objectAccessControls"
		if l.object == "" && !l.ofObjects {
			kind = "storage#bucketAccessControls"
		}
		return jsonReply(http.StatusOK, map[string]any{"kind": kind, "items": entries})
	}
	return jsonReply(http.StatusOK, entries[0])
}

// aclList returns the list that q names.
func (q *request) aclList() (aclList, *apiError) {
	l := aclList{bucket: q.bucket, object: q.object, ofObjects: q.rest[0] == defaultACL}
	if l.object == "" {
		return l, nil
	}
	var err *apiError
	l.generation, err = generationParam(q.query.Get("generation"))
	return l, err
}

// perform performs the operation of q, and returns the rules of the reply.
func (a aclAPI) perform(q *request) (aclRules, *apiError) {
	l, err := q.aclList()
	if err != nil {
		return aclRules{}, err
	}
	switch q.op {
	case faults.OpACLList:
		return a.rules(l)
	case faults.OpACLInsert:
		rule, err := readRule(q, "")
		if err != nil {
			return aclRules{}, err
		}
		return a.setRule(l, rule, true)
	}
	entity := q.rest[1]
	switch q.op {
	case faults.OpACLGet:
		all, err := a.rules(l)
		if err != nil {
			return aclRules{}, err
		}
		return all.only(entity)
	case faults.OpACLPatch:
		rule, err := readRule(q, entity)
		if err != nil {
			return aclRules{}, err
		}
		return a.setRule(l, rule, q.Method == http.MethodPut)
	}
	return aclRules{}, a.dropRule(l, entity)
}

// readRule reads a rule from the body of q. entity is that of the URL, or "".
func readRule(q *request, entity string) (ACLRule, *apiError) {
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
		return r, refuse(http.StatusBadRequest, "required", "Required parameter: entity")
	case r.Role == "":
		return r, refuse(http.StatusBadRequest, "required", "Required parameter: role")
	}
	return r, nil
}

// aclRules are rules of a list, with what their entries in a reply need.
type aclRules struct {
	list   []ACLRule
	object *Object // of which they are, or nil
	etag   string
}

// only returns the rule for an entity.
func (r aclRules) only(entity string) (aclRules, *apiError) {
	i := indexRule(r.list, entity)
	if i < 0 {
		return aclRules{}, refuse(http.StatusNotFound, "notFound", "The specified entity %s is not in the access control list.", entity)
	}
	r.list = r.list[i : i+1]
	return r, nil
}

func indexRule(list []ACLRule, entity string) int {
	return slices.IndexFunc(list, func(r ACLRule) bool { return r.Entity == entity })
}

// entry returns a rule as the service shows it.
func (r aclRules) entry(base string, l aclList, rule ACLRule) any {
	if r.object != nil {
		return r.object.entry(base, rule)
	}
	return bucketEntry(base, l.bucket, l.ofObjects, rule, r.etag)
}

// bucketEntry returns a rule of a list of a bucket as the service shows it.
// https://cloud.google.com/storage/docs/json_api/v1/bucketAccessControls
func bucketEntry(base, bucket string, ofObjects bool, rule ACLRule, etag string) bucketACLEntry {
	e := bucketACLEntry{aclEntity: newACLEntity(rule, etag)}
	if ofObjects {
		e.Kind = "storage#objectAccessControl"
		return e
	}
	e.Kind, e.Bucket, e.ID = "storage#bucketAccessControl", bucket, bucket+"/"+rule.Entity
	e.SelfLink = base + "/storage/v1/b/" + url.PathEscape(bucket) + "/acl/" + url.PathEscape(rule.Entity)
	return e
}

// bucketACLEntry is an entry of a list of a bucket.
type bucketACLEntry struct {
	Kind     string `json:"kind"`
	ID       string `json:"id,omitempty"`
	SelfLink string `json:"selfLink,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	aclEntity
}

// aclEntity is the part of an entry that all lists have.
type aclEntity struct {
	Entity string       `json:"entity"`
	Role   string       `json:"role"`
	Email  string       `json:"email,omitempty"`
	Domain string       `json:"domain,omitempty"`
	Team   *projectTeam `json:"projectTeam,omitempty"`
	Etag   string       `json:"etag"`
}

type projectTeam struct {
	ProjectNumber string `json:"projectNumber"`
	Team          string `json:"team"`
}

func newACLEntity(r ACLRule, etag string) aclEntity {
	e := aclEntity{Entity: r.Entity, Role: r.Role, Etag: etag}
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
	return e
}
