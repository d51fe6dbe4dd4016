package upload_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
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
	if err != nil {
		w.t.Fatal(err)
	}
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

// A folder that lacks a permission, or cannot be asked, gets no temporary objects.
func TestPartsWithoutManagedFolder(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	for _, test := range []struct {
		name string
		do   faults.Action
		want string
	}{
		{"may not delete", faults.Action{Effect: faults.EffectStatus, Status: 200, ContentType: "application/json", Body: `{"permissions":["storage.objects.create"]}`}, "storage.objects.delete is missing"},
		{"cannot be asked", faults.Action{Effect: faults.EffectStatus, Status: 404}, "storage.objects.delete is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				w.folderOnly()
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpManagedFolderPermissions}, Times: -1, Do: test.do})
				in := upload.Spec{Bucket: "bkt", Object: "team/obj", IfGenerationMatch: new(int64)}
				res, err := w.uploader(byParts).File(w.t.Context(), w.file(content), in)
				if err != nil || res.Parts != nil || w.saw(upload.Warning) != 1 {
					t.Errorf("%+v, %v; %d warnings", res.Parts, err, w.saw(upload.Warning))
				}
				w.mu.Lock()
				for _, e := range w.events {
					if e.Kind == upload.Warning && !strings.Contains(e.Cause, test.want) {
						t.Errorf("the warning is %q, want %q", e.Cause, test.want)
					}
				}
				w.mu.Unlock()
				w.wantObject("team/obj", content)
			})
		})
	}
}

// In a bucket with hierarchical namespace, temporary objects leave no folders: after a success, and after a canceled
// upload. It does not matter whether the caller may read the settings of the bucket.
func TestPartsInHierarchicalBucket(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	for _, settings := range []string{"readable", "not readable"} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				if err := w.srv.CreateBucket(fakegcs.Bucket{Name: "tree", Hierarchical: true}); err != nil {
					t.Fatal(err)
				}
				if settings != "readable" {
					w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpBucketGet}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
				}
				up := w.uploader(byParts)
				in := upload.Spec{Bucket: "tree", Object: "a/obj"}
				path := w.file(content)
				res, err := up.File(w.t.Context(), path, in)
				if err != nil || res.Parts == nil {
					t.Fatalf("%+v, %v", res.Parts, err)
				}
				w.wantFolders("a/")

				// A second file is interrupted, and its upload is canceled.
				ctx, cancel := context.WithCancelCause(w.t.Context())
				stopped := errors.New("stopped")
				plain := w.http.Transport
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					resp, err := plain.RoundTrip(req)
					w.mu.Lock()
					defer w.mu.Unlock()
					if strings.HasPrefix(req.URL.Query().Get("name"), "gcsup-parts-") && req.Method == "PUT" && err == nil && resp.StatusCode == 200 && resp.Header.Get("X-Http-Status-Code-Override") == "" {
						cancel(stopped) // there is a temporary object
					}
					return resp, err
				})}
				up = w.uploader(byParts)
				in.Object = "b/obj"
				res, err = up.File(ctx, path, in)
				if err == nil || len(w.all("tree")) < 2 {
					t.Fatalf("%v; the objects are %q", err, w.all("tree"))
				}
				if err := up.Cancel(w.t.Context(), res.ID); err != nil {
					t.Fatal(err)
				}
				if got := w.all("tree"); !slices.Equal(got, []string{"a/obj"}) {
					t.Errorf("the objects are %q", got)
				}
				w.wantFolders("a/")
			})
		})
	}
}

// wantFolders fails unless the bucket tree has these folders.
func (w *world) wantFolders(want string) {
	w.t.Helper()
	w.srv.ClearFaults()
	var names []string
	for _, m := range regexp.MustCompile(`"name": "([^"]*)"`).FindAllStringSubmatch(w.request("GET", "/storage/v1/b/tree/folders", ""), -1) {
		names = append(names, m[1])
	}
	if got := strings.Join(names, " "); got != want {
		w.t.Errorf("the folders are %q, want %q", got, want)
	}
}
