package fakegcs

import (
	"encoding/json"
	"net/http"
	"strings"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// bucketAPI processes the requests for buckets.
type bucketAPI struct {
	*store
	tokens *tokens
}

type bucketList struct {
	Kind          string        `json:"kind"`
	NextPageToken string        `json:"nextPageToken,omitempty"`
	Items         []shownBucket `json:"items,omitempty"`
}

// answer processes a request for a bucket, in both APIs.
func (a bucketAPI) answer(q *request) *reply {
	switch q.op {
	case ops.BucketList:
		return a.list(q)
	case faults.OpBucketLayout:
		return a.layout(q)
	case faults.OpBucketPermissions:
		return a.permissions(q)
	case ops.PolicyGet, ops.PolicySet:
		return a.answerPolicy(q)
	}
	res, err := a.perform(q)
	switch {
	case err != nil:
		return err.reply(q.xml)
	case q.op == ops.BucketDelete:
		return newReply(http.StatusNoContent)
	case q.xml:
		return newReply(http.StatusOK)
	}
	return jsonReply(http.StatusOK, q.bucketResource(res)).set("Etag", res.Etag)
}

// perform performs an operation on one bucket, and returns what the reply shows.
func (a bucketAPI) perform(q *request) (bucketResource, *apiError) {
	if q.op == ops.BucketInsert {
		return a.insert(q, a.tokens.principal(q.Header))
	}
	cond, err := q.conditions()
	if err != nil {
		return bucketResource{}, err
	}
	switch q.op {
	case ops.BucketPatch:
		fields, err := q.bucketFields()
		if err != nil {
			return bucketResource{}, err
		}
		return a.patchBucket(q.bucket, fields, cond, q.Method == http.MethodPut)
	case ops.BucketLock:
		if cond.Metageneration == nil {
			return bucketResource{}, errRequired("ifMetagenerationMatch")
		}
		return a.lockRetention(q.bucket, cond)
	case ops.BucketDelete:
		return bucketResource{}, a.deleteBucket(q.bucket, cond)
	}
	return a.resourceOf(q.bucket, cond)
}

// shownBucket is a bucketResource in a reply. Its lists replace those of the resource.
type shownBucket struct {
	bucketResource
	ACL              []aclEntry `json:"acl,omitempty"`
	DefaultObjectACL []aclEntry `json:"defaultObjectAcl,omitempty"`
	Owner            *Owner     `json:"owner,omitempty"`
}

// showsACL reports whether the reply to a request for a bucket has its access control lists: if the request
// asks for them or sets them.
func (q *request) showsACL() bool {
	return q.query.Get("projection") == "full" || q.query.Get("projection") == "" && (q.query.Has("predefinedAcl") || q.query.Has("predefinedDefaultObjectAcl"))
}

// bucketResource returns r for the reply to q, with its access control lists if q asks for them.
func (q *request) bucketResource(r bucketResource) shownBucket {
	shown := shownBucket{bucketResource: r}
	shown.SelfLink = q.base() + "/storage/v1/b/" + r.Name
	if r.RPO == "" && r.LocationType == "dual-region" {
		shown.RPO = "DEFAULT"
	}
	if !q.showsACL() || r.uniform() {
		return shown
	}
	shown.ACL = aclList{bucket: r.Name}.entries(q.base(), r.Etag, r.acl(false))
	shown.DefaultObjectACL = aclList{bucket: r.Name, ofObjects: true}.entries(q.base(), r.Etag, r.acl(true))
	shown.Owner = &Owner{"project-owners-" + projectNumber}
	return shown
}

// insert creates a bucket for a principal, who is "" if unknown.
func (a bucketAPI) insert(q *request, principal string) (bucketResource, *apiError) {
	if q.xml {
		if _, err := readMetadata(q.in); err != nil {
			return bucketResource{}, err
		}
		return a.createBucket(q.bucket, nil, principal)
	}
	fields, err := q.bucketFields()
	if err != nil {
		return bucketResource{}, err
	}
	var name string
	if err := json.Unmarshal(fields["name"], &name); err != nil && fields["name"] != nil {
		return bucketResource{}, refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
	}
	if name == "" {
		return bucketResource{}, errRequired("name")
	}
	if q.flag("enableObjectRetention") && fields["objectRetention"] == nil {
		fields["objectRetention"] = json.RawMessage(`{"mode":"Enabled"}`)
	}
	return a.createBucket(name, fields, principal)
}

func (a bucketAPI) list(q *request) *reply {
	l, err := q.listQuery()
	if err != nil {
		return err.reply(q.xml)
	}
	found, more := a.listBuckets(l)
	out := bucketList{Kind: "storage#buckets"}
	for _, r := range found {
		out.Items = append(out.Items, q.bucketResource(r))
	}
	if more {
		out.NextPageToken = pageToken(found[len(found)-1].Name)
	}
	if q.xml {
		return xmlBuckets(out)
	}
	return jsonReply(http.StatusOK, out)
}

// layout returns the storage layout of a bucket. That of a flat bucket has no namespace, as measured by
// https://github.com/kmoneil/zig-gcp/blob/main/src/storage/folders.zig. gcloud requests the layout before it
// moves an object.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/getStorageLayout
func (a bucketAPI) layout(q *request) *reply {
	b, err := a.resourceOf(q.bucket, conditions{})
	if err != nil {
		return err.reply(q.xml)
	}
	var res struct {
		Kind                  string     `json:"kind"`
		Bucket                string     `json:"bucket"`
		Location              string     `json:"location"`
		LocationType          string     `json:"locationType"`
		HierarchicalNamespace *namespace `json:"hierarchicalNamespace,omitempty"`
	}
	res.HierarchicalNamespace = b.HierarchicalNamespace
	res.Kind, res.Bucket, res.Location, res.LocationType = "storage#storageLayout", b.Name, b.Location, b.LocationType
	return jsonReply(http.StatusOK, res)
}

// permissions returns the permissions of the caller for a bucket.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions
func (a bucketAPI) permissions(q *request) *reply {
	if err := a.hasBucket(q.bucket); err != nil {
		return err.reply(q.xml)
	}
	return q.permissions()
}

// permissions returns the permissions of the caller among those that q names: all of
// them, because the server has no access control.
func (q *request) permissions() *reply {
	asked := q.query["permissions"]
	if len(asked) == 0 {
		return errRequired("permissions").reply(q.xml)
	}
	for _, name := range asked {
		if !strings.HasPrefix(name, "storage.") || strings.Contains(name, "*") {
			return invalid("Invalid permission: '%s'.", name).reply(q.xml)
		}
	}
	return jsonReply(http.StatusOK, struct {
		Kind        string   `json:"kind"`
		Permissions []string `json:"permissions"`
	}{"storage#testIamPermissionsResponse", asked})
}
