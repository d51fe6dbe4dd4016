package fakegcs

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// Folders exist in buckets with hierarchical namespace, also while they are empty. Managed folders have an
// IAM policy, and exist in any bucket with uniform access. The replies are those that
// https://github.com/kmoneil/zig-gcp/blob/main/src/storage/folders.zig and managed_folders.zig measured in 2026.
// https://cloud.google.com/storage/docs/json_api/v1/folders

// namespace is the hierarchical namespace of a bucket.
type namespace struct {
	Enabled bool `json:"enabled"`
}

// folders has the times when folders were created, by name. Each name ends in a slash.
type folders map[string]time.Time

// folderResource is a folder or a managed folder in a reply.
type folderResource struct {
	Kind           string    `json:"kind"`
	ID             string    `json:"id"`
	SelfLink       string    `json:"selfLink"`
	Name           string    `json:"name"`
	Bucket         string    `json:"bucket"`
	Metageneration int64     `json:"metageneration,string"`
	CreateTime     timestamp `json:"createTime"`
	UpdateTime     timestamp `json:"updateTime"`
}

// The collections of the API. They are also in the paths of requests.
const (
	plainFolders   = "folders"
	managedFolders = "managedFolders"
)

// parseFolder distinguishes the requests for folders: segs is the collection, a folder, and what is asked of it.
func (q *request) parseFolder(segs []string) {
	q.object, q.rest = "", segs
	managed := segs[0] == managedFolders
	choose := func(plain, of faults.Op) faults.Op {
		if managed {
			return of
		}
		return plain
	}
	switch {
	case len(segs) == 1:
		q.op = byMethod(q.Method, map[string]faults.Op{
			"GET": choose(ops.FolderList, ops.ManagedFolderList), "POST": choose(ops.FolderInsert, ops.ManagedFolderInsert),
		})
	case len(segs) == 2:
		q.op = byMethod(q.Method, map[string]faults.Op{
			"GET": choose(ops.FolderGet, faults.OpManagedFolderGet), "DELETE": choose(faults.OpFolderDelete, ops.ManagedFolderDelete),
		})
	case managed && len(segs) == 4 && segs[2] == "iam" && segs[3] == "testPermissions":
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpManagedFolderPermissions})
	}
	if len(segs) > 1 && q.op != ops.Unknown {
		q.object = folderName(segs[1])
	}
}

// folderName returns the name of a folder with its slash, which a request may leave out.
func folderName(name string) string { return strings.TrimSuffix(name, "/") + "/" }

// hierarchical reports whether the bucket has folders.
func (r *bucketResource) hierarchical() bool {
	return r.HierarchicalNamespace != nil && r.HierarchicalNamespace.Enabled
}

// checkNamespace returns an error if the bucket cannot have its namespace. was is nil for a new bucket.
// https://cloud.google.com/storage/docs/hns-overview#limitations
func (r *bucketResource) checkNamespace(was *bucketResource) *apiError {
	switch {
	case was != nil && was.hierarchical() != r.hierarchical():
		return invalid("Invalid value for hierarchicalNamespace: it can be set only when the bucket is created.")
	case r.hierarchical() && !r.uniform():
		return invalid("Invalid value for hierarchicalNamespace: it requires uniform bucket-level access.")
	case r.hierarchical() && r.Versioning != nil && r.Versioning.Enabled:
		return invalid("Invalid value for hierarchicalNamespace: such a bucket has no object versioning.")
	}
	return nil
}

// foldersAbove returns the folders of an object or a folder, the outermost first. Those of a folder include itself.
func foldersAbove(name string) (list []string) {
	for i, c := range name {
		if c == '/' {
			list = append(list, name[:i+1])
		}
	}
	return list
}

// with returns f with the folders of a list, and whether one was new. It does not change f.
func (f folders) with(list []string, now time.Time) (folders, bool) {
	var added folders
	for _, name := range list {
		if _, exists := f[name]; exists {
			continue
		}
		if added == nil {
			if added = maps.Clone(f); added == nil {
				added = folders{}
			}
		}
		added[name] = now
	}
	if added == nil {
		return f, false
	}
	return added, true
}

// makeFoldersLocked creates the folders of a new object. The object exists, so that an error must not
// fail the request.
func (s *store) makeFoldersLocked(b *bucket, object string, now time.Time) {
	if !b.hierarchical() {
		return
	}
	var added bool
	if b.Folders, added = b.Folders.with(foldersAbove(object), now); !added {
		return
	}
	if err := s.saveBucket(b); err != nil {
		s.log.Warn("fakegcs: create folders", "bucket", b.Name, "object", object, "err", err)
	}
}

// isFolder reports whether a folder or a managed folder has this name.
func (b *bucket) isFolder(name string) bool {
	_, plain := b.Folders[name]
	_, managed := b.ManagedFolders[name]
	return plain || managed
}

// withFolders returns sorted names with those of the folders. It does not change names.
func (b *bucket) withFolders(names []string) []string {
	all := slices.AppendSeq(slices.Clone(names), maps.Keys(b.Folders))
	all = slices.AppendSeq(all, maps.Keys(b.ManagedFolders))
	slices.Sort(all)
	return slices.Compact(all)
}

// folderAPI processes the requests for folders and managed folders.
type folderAPI struct{ *store }

func (a folderAPI) answer(q *request) *reply {
	switch q.op {
	case faults.OpManagedFolderPermissions:
		if _, err := a.folder(q); err != nil {
			return err.reply(false)
		}
		return q.permissions()
	case ops.FolderList, ops.ManagedFolderList:
		return a.list(q)
	case faults.OpFolderDelete, ops.ManagedFolderDelete:
		if err := a.delete(q); err != nil {
			return err.reply(false)
		}
		return newReply(http.StatusNoContent)
	}
	do := a.folder
	if q.op == ops.FolderInsert || q.op == ops.ManagedFolderInsert {
		do = a.insert
	}
	f, err := do(q)
	if err != nil {
		return err.reply(false)
	}
	return jsonReply(http.StatusOK, f)
}

// managed reports whether the request is about managed folders.
func (q *request) managed() bool { return q.rest[0] == managedFolders }

// noun is what the service calls the folders of the request in its messages.
func (q *request) noun() string {
	if q.managed() {
		return "managed folder"
	}
	return "folder"
}

// foldersLocked returns the folders that a request is about, which may be replaced.
func (a folderAPI) foldersLocked(q *request) (*bucket, *folders, *apiError) {
	b, err := a.bucketLocked(q.bucket)
	switch {
	case err != nil:
		return nil, nil, err
	case !q.managed() && !b.hierarchical():
		return nil, nil, refuse(http.StatusConflict, "conflict", "The bucket does not support hierarchical namespace.")
	case q.managed() && !b.uniform():
		return nil, nil, refuse(http.StatusPreconditionFailed, "conditionNotMet", "Uniform bucket-level access is required to be enabled on the bucket in order to perform this operation. Read more at https://cloud.google.com/storage/docs/uniform-bucket-level-access")
	case q.managed():
		return b, &b.ManagedFolders, nil
	}
	return b, &b.Folders, nil
}

// shownFolder returns the resource of a folder for the reply to q.
func (q *request) shownFolder(name string, made time.Time) folderResource {
	kind := "storage#folder"
	if q.managed() {
		kind = "storage#managedFolder"
	}
	return folderResource{
		Kind: kind, ID: q.bucket + "/" + name, SelfLink: q.base() + "/storage/v1/b/" + q.bucket + "/" + q.rest[0] + "/" + url.PathEscape(name),
		Name: name, Bucket: q.bucket, Metageneration: 1, CreateTime: timestamp{made}, UpdateTime: timestamp{made},
	}
}

// folder returns the folder that a request names.
func (a folderAPI) folder(q *request) (folderResource, *apiError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, list, err := a.foldersLocked(q)
	if err != nil {
		return folderResource{}, err
	}
	made, exists := (*list)[q.object]
	if !exists {
		return folderResource{}, refuse(http.StatusNotFound, "notFound", "The specified %s does not exist.", q.noun())
	}
	return q.shownFolder(q.object, made), nil
}

func (a folderAPI) insert(q *request) (folderResource, *apiError) {
	body, err := readMetadata(q.in)
	if err != nil {
		return folderResource{}, err
	}
	var given struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(body, &given); err != nil {
		return folderResource{}, invalid("Invalid %s: %v", q.noun(), err)
	}
	if strings.Trim(given.Name, "/") == "" {
		return folderResource{}, errRequired("name")
	}
	name, now := folderName(given.Name), a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	b, list, err := a.foldersLocked(q)
	if err != nil {
		return folderResource{}, err
	}
	if _, exists := (*list)[name]; exists {
		return folderResource{}, refuse(http.StatusConflict, "conflict", "The specified %s already exists.", q.noun())
	}
	above := foldersAbove(name)
	if len(above) > 1 && !q.managed() && !q.flag("recursive") {
		if _, exists := b.Folders[above[len(above)-2]]; !exists {
			return folderResource{}, refuse(http.StatusConflict, "conflict", "The parent folder does not exist.")
		}
	}
	was := b.bucketRecord
	if b.hierarchical() { // a managed folder has its folders, too
		b.Folders, _ = b.Folders.with(above, now)
	}
	if q.managed() {
		b.ManagedFolders, _ = b.ManagedFolders.with([]string{name}, now)
	}
	return q.shownFolder(name, now), a.saveRecord(b, was)
}

// delete deletes a folder, with the managed folder of its name, or a managed folder.
func (a folderAPI) delete(q *request) *apiError {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, list, err := a.foldersLocked(q)
	if err != nil {
		return err
	}
	if _, exists := (*list)[q.object]; !exists {
		return refuse(http.StatusNotFound, "notFound", "The specified %s does not exist.", q.noun())
	}
	if !(q.managed() && q.flag("allowNonEmpty")) && !b.emptyFolder(q.object, *list) {
		return refuse(http.StatusConflict, "conflict", "The %s you tried to delete is not empty.", q.noun())
	}
	was := b.bucketRecord
	if !q.managed() {
		b.Folders = maps.Clone(b.Folders)
		delete(b.Folders, q.object)
	}
	b.ManagedFolders = maps.Clone(b.ManagedFolders)
	delete(b.ManagedFolders, q.object)
	return a.saveRecord(b, was)
}

// emptyFolder reports whether there is no object and no other folder of the list in a folder.
func (b *bucket) emptyFolder(name string, list folders) bool {
	for other := range list {
		if other != name && strings.HasPrefix(other, name) {
			return false
		}
	}
	objects := b.sortedNames()
	i, _ := slices.BinarySearch(objects, name)
	for ; i < len(objects) && strings.HasPrefix(objects[i], name); i++ {
		if g := b.objects[objects[i]]; g.live != nil || len(g.old) > 0 {
			return false
		}
	}
	return true
}

func (a folderAPI) list(q *request) *reply {
	prefix, limit, after := q.query.Get("prefix"), 1000, ""
	if size := q.query.Get("pageSize"); size != "" {
		n, err := strconv.Atoi(size)
		if err != nil || n < 0 {
			return invalid("Invalid value for pageSize: '%s'.", size).reply(false)
		}
		if n > 0 {
			limit = min(n, limit)
		}
	}
	if token := q.query.Get("pageToken"); token != "" {
		var ok bool
		if after, ok = parsePageToken(token); !ok {
			return invalid("Invalid page token '%s'.", token).reply(false)
		}
	}
	if !q.managed() && prefix != "" && !strings.HasSuffix(prefix, "/") {
		return invalid("The prefix must end with '/'.").reply(false)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, list, err := a.foldersLocked(q)
	if err != nil {
		return err.reply(false)
	}
	var page struct {
		Kind          string           `json:"kind"`
		NextPageToken string           `json:"nextPageToken,omitempty"`
		Items         []folderResource `json:"items,omitempty"`
	}
	page.Kind = "storage#" + q.rest[0]
	for _, name := range slices.Sorted(maps.Keys(*list)) {
		if !strings.HasPrefix(name, prefix) || name <= after {
			continue
		}
		if len(page.Items) == limit {
			page.NextPageToken = pageToken(page.Items[limit-1].Name)
			break
		}
		page.Items = append(page.Items, q.shownFolder(name, (*list)[name]))
	}
	return jsonReply(http.StatusOK, page)
}
