package upload_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/upload"
)

// folderOnly makes the transport of w that of a caller who has rights on the managed folder team/ only. It
// answers as IAM does, and notes which objects the caller tried to write.
func (w *world) folderOnly() (tried *[]string) {
	w.patchBucket(`{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}`)
	w.request("POST", "/storage/v1/b/bkt/managedFolders", `{"name":"team/"}`)
	plain := w.http.Transport
	tried = new([]string)
	w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		reply := func(status int, body string) (*http.Response, error) {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			header := http.Header{"Content-Type": {"application/json; charset=UTF-8"}, "X-Guploader-Uploadid": {"x"}}
			return &http.Response{StatusCode: status, Request: req, Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
		}
		const denied = `{"error":{"code":403,"message":"x does not have access","errors":[{"reason":"forbidden","message":"x does not have access"}]}}`
		path := req.URL.Path
		name := req.URL.Query().Get("name")
		if _, object, ok := strings.Cut(path, "/storage/v1/b/bkt/o/"); ok {
			name = object
		}
		if name != "" && req.Method != "GET" {
			w.mu.Lock()
			*tried = append(*tried, name)
			w.mu.Unlock()
		}
		switch {
		case path == "/storage/v1/b/bkt/iam/testPermissions":
			return reply(200, `{"kind":"storage#testIamPermissionsResponse"}`)
		case path == "/storage/v1/b/bkt", strings.HasSuffix(path, "/notificationConfigs"), strings.HasSuffix(path, "/storageLayout"),
			name != "" && !strings.HasPrefix(name, "team/"):
			return reply(403, denied)
		}
		return plain.RoundTrip(req)
	})}
	return tried
}

// all returns the names of all objects of bkt.
func (w *world) all(bucket string) (names []string) {
	w.t.Helper()
	list, err := w.srv.ListObjects(bucket, "")
	require.NoError(w.t, err)
	for _, o := range list {
		names = append(names, o.Name)
	}
	return names
}

// A caller with rights on a managed folder only sends a file in parts. The temporary objects are in that folder.
func TestPartsInManagedFolder(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	inBubble(t, nil, func(w *world) {
		tried := w.folderOnly()
		in := upload.Spec{Bucket: "bkt", Object: "team/a/b/obj", IfGenerationMatch: new(int64)}
		up := w.uploader(byParts)
		res, err := up.File(w.t.Context(), w.file(content), in)
		if err != nil || res.Parts == nil || res.Leftover != nil || w.saw(upload.Warning) != 0 {
			t.Fatalf("%+v, %v, %v; %d warnings", res.Parts, res.Leftover, err, w.saw(upload.Warning))
		}
		w.wantObject("team/a/b/obj", content)
		if got := w.all("bkt"); len(got) != 1 {
			t.Errorf("the objects are %q", got)
		}
		form := regexp.MustCompile(`^team/gcsup-parts-[0-9a-f]{20}-[A-Z2-7]{26}-\d{4}$`)
		parts := 0
		for _, name := range *tried {
			if name != in.Object && !form.MatchString(name) && !strings.HasSuffix(name, "/compose") {
				t.Errorf("it wrote %q", name)
			} else if name != in.Object {
				parts++
			}
		}
		if parts == 0 {
			t.Errorf("it wrote only %q", *tried)
		}

		// Each folder is asked for once.
		asked := 0
		for _, r := range w.srv.Requests() {
			if r.Op == faults.OpManagedFolderPermissions {
				asked++
			}
		}
		if in.Object = "team/c/obj"; asked != 1 {
			t.Errorf("%d requests for the permissions of folders", asked)
		}
		if res, err := up.File(w.t.Context(), w.file(content), in); err != nil || res.Parts == nil {
			t.Errorf("%+v, %v", res.Parts, err)
		}
		if n := len(slices.DeleteFunc(w.srv.Requests(), func(r fakegcs.Request) bool { return r.Op != faults.OpManagedFolderPermissions })); n != 1 {
			t.Errorf("%d requests for the permissions of folders after the second file", n)
		}
	})
}
