package fakegcs_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gcsup/fakegcs"
)

var folderNames = regexp.MustCompile(`"name": "([^"]*)"`)

// foldersOf returns the names of the folders of a bucket, or of its managed folders.
func (w *world) foldersOf(bucket, collection, query string) string {
	w.T.Helper()
	a := w.do("GET", "/storage/v1/b/"+bucket+"/"+collection+query, nil)
	if a.StatusCode != 200 {
		w.T.Errorf("list the %s: %d %s", collection, a.StatusCode, a.body)
	}
	var names []string
	for _, m := range folderNames.FindAllStringSubmatch(a.body, -1) {
		names = append(names, m[1])
	}
	return strings.Join(names, " ")
}

// below is want for a path below those of all buckets.
func (w *world) below(status int, text, method, path, body string) {
	w.Helper()
	w.want(status, text, method, "/storage/v1/b/"+path, []byte(body))
}

// TestFolders checks that an object makes its folders, and that only empty ones can be deleted.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	folders := func(want string) {
		t.Helper()
		if got := w.foldersOf("tree", "folders", ""); got != want {
			t.Errorf("the folders are %q, want %q", got, want)
		}
	}
	w.createBucket(fakegcs.Bucket{Name: "tree", Hierarchical: true})
	w.below(200, `"hierarchicalNamespace": {`, "GET", "tree", "")
	w.below(200, `"enabled": true`, "GET", "tree/storageLayout", "")
	w.want(200, "", "PUT", "/tree/a/b/x", nil)
	folders("a/ a/b/")
	if got := w.foldersOf("tree", "folders", "?prefix=a%2Fb%2F"); got != "a/b/" {
		t.Errorf("below a/b/: %q", got)
	}
	if got := w.foldersOf("tree", "folders", "?pageSize=1"); got != "a/" {
		t.Errorf("the first page: %q", got)
	}
	w.below(200, `"id": "tree/a/b/"`, "GET", "tree/folders/a%2Fb%2F", "")
	w.below(409, "The folder you tried to delete is not empty.", "DELETE", "tree/folders/a%2Fb%2F", "")
	w.below(409, "The parent folder does not exist.", "POST", "tree/folders", `{"name":"c/d/"}`)
	w.below(200, `"name": "c/d/"`, "POST", "tree/folders?recursive=true", `{"name":"c/d"}`)
	w.below(409, "already exists", "POST", "tree/folders", `{"name":"c/d/"}`)
	folders("a/ a/b/ c/ c/d/")
	w.want(204, "", "DELETE", "/tree/a/b/x", nil)
	folders("a/ a/b/ c/ c/d/") // an empty folder stays
	w.below(409, "not empty", "DELETE", "tree/folders/a%2F", "")
	w.below(204, "", "DELETE", "tree/folders/a%2Fb%2F", "")
	w.below(204, "", "DELETE", "tree/folders/a%2F", "")
	w.below(404, "does not exist", "DELETE", "tree/folders/a%2F", "")
	w.below(404, "does not exist", "GET", "tree/folders/a%2F", "")
	w = w.again(dir)
	folders("c/ c/d/")

	w.below(409, "The bucket does not support hierarchical namespace.", "POST", "bkt/folders", `{"name":"a/"}`)
	w.below(400, "uniform", "POST", "?project=p", `{"name":"other","hierarchicalNamespace":{"enabled":true}}`)
	w.below(400, "only when", "PATCH", "tree", `{"hierarchicalNamespace":{"enabled":false}}`)
	w.below(400, "does not implement", "GET", "tree/folders?delimiter=%2F", "")
	w.below(400, "does not implement", "POST", "tree/folders/c%2F/renameTo/folders/e%2F", "")
}

// TestManagedFolders checks that a managed folder reports permissions, and is deleted with its folder.
func TestManagedFolders(t *testing.T) {
	w := newWorld(t, nil)
	for _, b := range []fakegcs.Bucket{{Name: "flat", UniformAccess: true}, {Name: "tree", Hierarchical: true}} {
		w.createBucket(b)
	}
	const ask = "/iam/testPermissions?permissions=storage.objects.create"
	name := url.PathEscape("team/a/")
	for _, bucket := range []string{"flat", "tree"} {
		w.below(404, "does not exist", "GET", bucket+"/managedFolders/"+name+ask, "")
		w.below(200, `"kind": "storage#managedFolder"`, "POST", bucket+"/managedFolders", `{"name":"team/a"}`)
		w.below(409, "The specified managed folder already exists.", "POST", bucket+"/managedFolders", `{"name":"team/a/"}`)
		w.below(200, "storage.objects.create", "GET", bucket+"/managedFolders/"+name+ask, "")
		if got := w.foldersOf(bucket, "managedFolders", "?prefix=team"); got != "team/a/" {
			t.Errorf("%s has the managed folders %q", bucket, got)
		}
	}
	if got := w.foldersOf("tree", "folders", ""); got != "team/ team/a/" {
		t.Errorf("the folders of a managed folder are %q", got)
	}
	w.want(200, "", "PUT", "/flat/team/a/x", nil)
	w.below(409, "The managed folder you tried to delete is not empty.", "DELETE", "flat/managedFolders/"+name, "")
	w.below(204, "", "DELETE", "flat/managedFolders/"+name+"?allowNonEmpty=true", "")
	w.below(204, "", "DELETE", "tree/folders/"+name, "")
	w.below(404, "", "GET", "tree/managedFolders/"+name, "")
	w.below(412, "Uniform bucket-level access", "POST", "bkt/managedFolders", `{"name":"team/"}`)
	w.below(400, "does not implement", "GET", "flat/managedFolders/"+name+"/iam", "")
}

// TestFoldersAsPrefixes checks that a listing with includeFoldersAsPrefixes has the folders without objects, too.
func TestFoldersAsPrefixes(t *testing.T) {
	w := newWorld(t, nil)
	prefixes := func(query, want string) {
		t.Helper()
		a := w.do("GET", "/storage/v1/b/flat/o?delimiter=/"+query, nil).json(w)
		if got := fmt.Sprint(a["prefixes"]); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	w.below(200, `"hierarchicalNamespace": {`, "POST", "?project=p", `{"name":"flat","hierarchicalNamespace":{"enabled":false},"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}`)
	for _, name := range []string{"a/b", "m/x/1"} {
		w.want(200, "", "PUT", "/flat/"+name, nil)
	}
	for _, name := range []string{"m", "m/y", "z"} {
		w.below(200, "", "POST", "flat/managedFolders", `{"name":"`+name+`"}`)
	}
	prefixes("", "[a/ m/]")
	prefixes("&includeFoldersAsPrefixes=true", "[a/ m/ z/]")
	prefixes("&includeFoldersAsPrefixes=true&prefix=m/", "[m/x/ m/y/]")
	next := w.do("GET", "/storage/v1/b/flat/o?delimiter=/&includeFoldersAsPrefixes=true&maxResults=2", nil).json(w)["nextPageToken"].(string)
	prefixes("&includeFoldersAsPrefixes=true&pageToken="+url.QueryEscape(next), "[z/]")
}
