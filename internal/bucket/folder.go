package bucket

import (
	"context"
	"net/http"
	"net/url"

	"gcsup/session"
)

// namespace is the hierarchical namespace of a bucket. The service leaves it out for a flat bucket.
type namespace struct {
	Enabled bool `json:"enabled"`
}

// Hierarchical returns whether a bucket has hierarchical namespace: it has folders, which exist while they are
// empty, too. It needs the permission storage.objects.list for the prefix only, which [ReadConfig] does not. The
// result is valid only if the status of the reply is 200.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/getStorageLayout
func Hierarchical(ctx context.Context, client *session.Client, bucket, prefix, userProject string) (bool, session.Reply) {
	var layout struct {
		Namespace namespace `json:"hierarchicalNamespace"`
	}
	q := url.Values{"prefix": {prefix}, "userProject": {userProject}}
	r := get(ctx, client, OpConfig, q, []string{"b", bucket, "storageLayout"}, &layout)
	return layout.Namespace.Enabled, r
}

// Folders returns the folders of an object, the outermost first. Each name ends in a slash.
func Folders(object string) (list []string) {
	for i := range object {
		if object[i] == '/' {
			list = append(list, object[:i+1])
		}
	}
	return list
}

// managedLevels is how deep managed folders can be nested.
// https://cloud.google.com/storage/docs/managed-folders
const managedLevels = 15

// ManageableFolders returns the folders of an object that can be managed folders, the outermost first.
func ManageableFolders(object string) []string {
	list := Folders(object)
	return list[:min(len(list), managedLevels)]
}

// FolderPermissions returns which of the permissions the caller has for a managed folder and its objects. No
// permission is necessary to ask. The list is valid only if the status of the reply is 200; 404 means that there is
// no such managed folder. https://cloud.google.com/storage/docs/json_api/v1/managedFolder/testIamPermissions
func FolderPermissions(ctx context.Context, client *session.Client, bucket, folder, userProject string, permissions ...string) ([]string, session.Reply) {
	return test(ctx, client, userProject, permissions, "b", bucket, "managedFolders", folder, "iam", "testPermissions")
}

// DeleteFolder deletes a folder that is empty, unless it is a managed folder, which has an IAM policy of its own: the
// service would delete both. It therefore asks first, each time, because a retry can come hours later. The name
// ends in a slash. It needs the permissions storage.managedFolders.get and storage.folders.delete. The reply is that of
// the last request: status 204 means success, and 409 that the folder is not empty. managed is valid only if its status
// is 200 or 204. https://cloud.google.com/storage/docs/json_api/v1/managedFolder/get
func DeleteFolder(ctx context.Context, client *session.Client, bucket, folder, userProject string) (managed bool, r session.Reply) {
	var resource struct{}
	q := url.Values{"fields": {"name"}, "userProject": {userProject}}
	r = get(ctx, client, OpManagedFolder, q, []string{"b", bucket, "managedFolders", folder}, &resource)
	if r.Status != http.StatusNotFound || !r.FromService {
		return true, r
	}
	q = url.Values{"userProject": {userProject}}
	return false, client.Do(ctx, request(OpDeleteFolder, http.MethodDelete, q, "b", bucket, "folders", folder))
}
