package fakegcs

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gcsup/fakegcs/faults"
)

// bucketAPI processes the requests for buckets.
type bucketAPI struct{ *store }

type bucketList struct {
	Kind          string        `json:"kind"`
	NextPageToken string        `json:"nextPageToken,omitempty"`
	Items         []shownBucket `json:"items,omitempty"`
}

// answer processes a request for a bucket, in both APIs.
func (a bucketAPI) answer(q *request) *reply {
	var (
		res bucketResource
		err *apiError
	)
	switch q.op {
	case faults.OpBucketList:
		return a.list(q)
	case faults.OpBucketInsert:
		res, err = a.insert(q)
	case faults.OpBucketGet:
		res, err = a.get(q)
	case faults.OpBucketPatch:
		res, err = a.patch(q)
	case faults.OpBucketLayout:
		return a.layout(q)
	case faults.OpBucketPermissions:
		return a.permissions(q)
	case faults.OpPolicyGet:
		return a.policy(q)
	case faults.OpPolicySet:
		return a.setPolicy(q)
	case faults.OpBucketLock:
		res, err = a.lock(q)
	case faults.OpBucketDelete:
		if err = a.delete(q); err == nil {
			return newReply(http.StatusNoContent)
		}
	}
	if err != nil {
		return err.reply(q.xml)
	}
	if q.xml {
		return newReply(http.StatusOK)
	}
	return jsonReply(http.StatusOK, q.bucketResource(res))
}

// shownBucket is a bucketResource in a reply. Its lists replace those of the resource.
type shownBucket struct {
	bucketResource
	ACL              []bucketACLEntry `json:"acl,omitempty"`
	DefaultObjectACL []bucketACLEntry `json:"defaultObjectAcl,omitempty"`
	Owner            *Owner           `json:"owner,omitempty"`
}

// bucketResource returns r for the reply to q, with its access control lists if q asks for them.
func (q *request) bucketResource(r bucketResource) shownBucket {
	shown := shownBucket{bucketResource: r}
	shown.SelfLink = q.base() + "/storage/v1/b/" + r.Name
	if q.query.Get("projection") != "full" || r.uniform() {
		return shown
	}
	for _, rule := range r.acl(false) {
		shown.ACL = append(shown.ACL, bucketEntry(q.base(), r.Name, false, rule, r.Etag))
	}
	for _, rule := range r.acl(true) {
		shown.DefaultObjectACL = append(shown.DefaultObjectACL, bucketEntry(q.base(), r.Name, true, rule, r.Etag))
	}
	shown.Owner = &Owner{"project-owners-0"}
	return shown
}

func (a bucketAPI) insert(q *request) (bucketResource, *apiError) {
	body, err := readMetadata(q.in)
	if err != nil {
		return bucketResource{}, err
	}
	if q.xml {
		return a.createBucket(q.bucket, nil)
	}
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return bucketResource{}, refuse(http.StatusBadRequest, "parseError", "Parse Error: %v", err)
	}
	if named.Name == "" {
		return bucketResource{}, refuse(http.StatusBadRequest, "required", "Required parameter: name")
	}
	if body, err = q.withPredefinedACLs(body); err != nil {
		return bucketResource{}, err
	}
	return a.createBucket(named.Name, body)
}

func (a bucketAPI) get(q *request) (bucketResource, *apiError) {
	cond, err := q.conditions()
	if err != nil {
		return bucketResource{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.bucketLocked(q.bucket)
	if err != nil {
		return bucketResource{}, err
	}
	return b.bucketResource, cond.check(&Object{Metageneration: b.Metageneration})
}

func (a bucketAPI) patch(q *request) (bucketResource, *apiError) {
	cond, err := q.conditions()
	if err != nil {
		return bucketResource{}, err
	}
	body, err := readMetadata(q.in)
	if err == nil {
		body, err = q.withPredefinedACLs(body)
	}
	if err != nil {
		return bucketResource{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.bucketLocked(q.bucket)
	if err != nil {
		return bucketResource{}, err
	}
	if err := cond.check(&Object{Metageneration: b.Metageneration}); err != nil {
		return bucketResource{}, err
	}
	was := b.bucketResource
	err = b.configure(body, a.now())
	if err == nil && emptyPatch(body) { // not even the metageneration changes
		return was, nil
	}
	if err == nil {
		err = was.RetentionPolicy.checkChange(b.RetentionPolicy)
	}
	if err != nil {
		b.bucketResource = was
		return bucketResource{}, err
	}
	res, err := a.bucketChanged(b, was)
	if err == nil && was.RetentionPolicy.period() != b.RetentionPolicy.period() {
		b.retain()
	}
	return res, err
}

// lock makes the retention policy of a bucket permanent: it can only be extended.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/lockRetentionPolicy
func (a bucketAPI) lock(q *request) (bucketResource, *apiError) {
	cond, err := q.conditions()
	if err != nil {
		return bucketResource{}, err
	}
	if cond.Metageneration == nil {
		return bucketResource{}, refuse(http.StatusBadRequest, "required", "Required parameter: ifMetagenerationMatch")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.bucketLocked(q.bucket)
	if err != nil {
		return bucketResource{}, err
	}
	if err := cond.check(&Object{Metageneration: b.Metageneration}); err != nil {
		return bucketResource{}, err
	}
	switch p := b.RetentionPolicy; {
	case p == nil:
		return bucketResource{}, invalid("The bucket has no retention policy to lock.")
	case p.IsLocked:
		return b.bucketResource, nil
	}
	was := b.bucketResource
	locked := *b.RetentionPolicy
	locked.IsLocked = true
	b.RetentionPolicy = &locked
	return a.bucketChanged(b, was)
}

func emptyPatch(body []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(body, &fields) == nil && len(fields) == 0
}

func (a bucketAPI) delete(q *request) *apiError {
	cond, err := q.conditions()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.buckets[q.bucket]
	if b == nil {
		return errNoBucket()
	}
	if err := cond.check(&Object{Metageneration: b.Metageneration}); err != nil {
		return err
	}
	for _, g := range b.objects {
		if g.live != nil || len(g.old) > 0 {
			return refuse(http.StatusConflict, "bucketNotEmpty", "The bucket you tried to delete is not empty.")
		}
	}
	if err := a.disk.RemoveBucket(b.Name); err != nil {
		return errInternal(err)
	}
	for _, g := range b.objects {
		for _, v := range g.soft {
			v.blob.Release()
		}
	}
	delete(a.buckets, b.Name)
	return nil
}

func (a bucketAPI) list(q *request) *reply {
	l, err := q.listQuery()
	if err != nil {
		return err.reply(q.xml)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := bucketList{Kind: "storage#buckets"}
	for _, name := range slices.Sorted(maps.Keys(a.buckets)) {
		if !strings.HasPrefix(name, l.prefix) || name <= l.after {
			continue
		}
		if len(out.Items) == l.limit {
			out.NextPageToken = pageToken(out.Items[l.limit-1].Name)
			break
		}
		out.Items = append(out.Items, q.bucketResource(a.buckets[name].bucketResource))
	}
	if q.xml {
		return xmlBuckets(out)
	}
	return jsonReply(http.StatusOK, out)
}

// layout returns the storage layout of a bucket, which is always flat. gcloud
// requests it before it moves an object.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/getStorageLayout
func (a bucketAPI) layout(q *request) *reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.bucketLocked(q.bucket)
	if err != nil {
		return err.reply(q.xml)
	}
	var res struct {
		Kind                  string `json:"kind"`
		Bucket                string `json:"bucket"`
		Location              string `json:"location"`
		LocationType          string `json:"locationType"`
		HierarchicalNamespace struct {
			Enabled bool `json:"enabled"`
		} `json:"hierarchicalNamespace"`
	}
	res.Kind, res.Bucket, res.Location, res.LocationType = "storage#storageLayout", b.Name, b.Location, b.LocationType
	return jsonReply(http.StatusOK, res)
}

// permissions returns the permissions of the caller among those that q names: all of
// them, because the server has no access control.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions
func (a bucketAPI) permissions(q *request) *reply {
	if err := a.hasBucket(q.bucket); err != nil {
		return err.reply(q.xml)
	}
	asked := q.query["permissions"]
	if len(asked) == 0 {
		return refuse(http.StatusBadRequest, "required", "Required parameter: permissions").reply(q.xml)
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
