package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/mirror"
)

// hierarchical replaces the bucket by one with hierarchical namespace.
func (w *world) hierarchical() {
	w.t.Helper()
	w.do("DELETE", "/storage/v1/b/bkt", "")
	require.NoError(w.t, w.srv.CreateBucket(fakegcs.Bucket{Name: "bkt", Hierarchical: true}))
}

// wantFolders checks the names of all folders.
func (w *world) wantFolders(want string) {
	w.t.Helper()
	w.srv.ClearFaults()
	var names []string
	for _, m := range regexp.MustCompile(`"name": "([^"]*)"`).FindAllStringSubmatch(w.do("GET", "/storage/v1/b/bkt/folders", "").Body.String(), -1) {
		names = append(names, m[1])
	}
	if got := strings.Join(names, " "); got != want {
		w.t.Errorf("folders %s, want %s", got, want)
	}
}

// requests counts the requests of some operations.
func (w *world) requests(ops ...faults.Op) (n int) {
	for _, r := range w.srv.Requests() {
		if slices.Contains(ops, r.Op) {
			n++
		}
	}
	return n
}

// TestFolders checks that a run deletes the folders that it emptied, and no others: not the prefix, not a folder that was
// empty before, and no managed folder.
func TestFolders(t *testing.T) {
	t.Parallel()
	const (
		files   = "a w/keep"
		objects = "o/x p/a p/w/keep p/w/v/gone p/x/1 p/x/y/2 p/x/y/3 p/z/m/1"
		left    = "o/x p/a p/w/keep"
		deleted = "delete p/w/v/gone, delete p/x/1, delete p/x/y/2, delete p/x/y/3, delete p/z/m/1, keep p/a, keep p/w/keep"
	)
	status := func(op faults.Op, code int, times int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Times: times, Do: faults.Action{Effect: faults.EffectStatus, Status: code}}
	}
	for _, c := range []struct {
		name    string
		plan    []faults.Fault
		folders string
		wantErr error // of the folders that are left
		names   string
	}{
		{name: "success", folders: "o/ p/ p/e/ p/w/ p/z/ p/z/m/"},
		{name: "a reply is lost", plan: []faults.Fault{{Match: faults.Match{Op: faults.OpFolderDelete}, Do: faults.Action{Effect: faults.EffectLoseReply}}}, folders: "o/ p/ p/e/ p/w/ p/z/ p/z/m/"},
		{name: "a failure of the service", plan: []faults.Fault{status(faults.OpFolderDelete, 503, 3), status(faults.OpManagedFolderGet, 503, 2), status(faults.OpBucketLayout, 503, 1)}, folders: "o/ p/ p/e/ p/w/ p/z/ p/z/m/"},
		{name: "a managed folder is not found by a proxy", plan: []faults.Fault{{Match: faults.Match{Op: faults.OpManagedFolderGet}, Do: faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>not here</html>"}}}, folders: "o/ p/ p/e/ p/w/ p/z/ p/z/m/"},
		{name: "folders may not be deleted", plan: []faults.Fault{status(faults.OpFolderDelete, 403, -1)}, folders: "o/ p/ p/e/ p/w/ p/w/v/ p/x/ p/x/y/ p/z/ p/z/m/", wantErr: session.ErrPermission, names: "p/w/v/ p/x/y/"},
		{name: "managed folders may not be read", plan: []faults.Fault{status(faults.OpManagedFolderGet, 403, -1)}, folders: "o/ p/ p/e/ p/w/ p/w/v/ p/x/ p/x/y/ p/z/ p/z/m/", wantErr: session.ErrPermission, names: "p/w/v/ p/x/y/ p/z/m/"},
		{name: "the layout may not be read", plan: []faults.Fault{status(faults.OpBucketLayout, 403, -1)}, folders: "o/ p/ p/e/ p/w/ p/w/v/ p/x/ p/x/y/ p/z/ p/z/m/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				w.hierarchical()
				w.write(strings.Split(files, " ")...)
				w.put(strings.Fields(objects)...)
				w.do("POST", "/storage/v1/b/bkt/folders", `{"name":"p/e/"}`)
				w.do("POST", "/storage/v1/b/bkt/managedFolders", `{"name":"p/z/m/"}`)
				w.addFaults(c.plan...)
				var reports []mirror.FoldersLeft
				w.wantRun(&mirror.Options{MaxDelete: mirror.Percent(100), FoldersLeft: func(l mirror.FoldersLeft) { reports = append(reports, l) }}, deleted, left, nil)
				w.wantFolders(c.folders)
				switch {
				case c.wantErr == nil && len(reports) != 0, c.wantErr != nil && len(reports) != 1:
					t.Errorf("the folders that are left were reported %d times", len(reports))
				case c.wantErr != nil:
					got := reports[0]
					slices.Sort(got.Names)
					if strings.Join(got.Names, " ") != c.names || int(got.Count) != len(got.Names) || !errors.Is(got.Err, c.wantErr) {
						t.Errorf("%+v is left, want %s", got, c.names)
					}
				}
			})
		})
	}
}

// roundTrip is a function as a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestFolderManagedMeanwhile checks that a folder is kept that becomes a managed folder while its deletion is retried.
func TestFolderManagedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, effect := range []faults.Action{{Effect: faults.EffectStatus, Status: 503}, {Effect: faults.EffectReset}} {
		t.Run(string(effect.Effect), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				w.hierarchical()
				w.write("a")
				w.put("p/a", "p/x/1")
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFolderDelete}, Do: effect})
				plain, managed := w.http.Transport, false
				w.http.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
					resp, err := plain.RoundTrip(req)
					if req.Method == "DELETE" && strings.Contains(req.URL.Path, "/folders/") && !managed {
						managed = true
						w.do("POST", "/storage/v1/b/bkt/managedFolders", `{"name":"p/x/"}`)
					}
					return resp, err
				})
				w.wantRun(all, "delete p/x/1, keep p/a", "p/a", nil)
				if w.wantFolders("p/ p/x/"); !managed {
					t.Error("the folder was not deleted")
				}
			})
		})
	}
}

// TestFoldersOfServiceDown checks that a service that does not delete objects is not waited for a second time.
func TestFoldersOfServiceDown(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.hierarchical()
		w.write("a")
		w.put("p/a", "p/x/1", "p/y/1")
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpDelete}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		var reports []mirror.FoldersLeft
		opts := &mirror.Options{Delete: true, MaxDelete: mirror.Percent(100), FoldersLeft: func(l mirror.FoldersLeft) { reports = append(reports, l) }}
		for range w.mirror("p", opts).Run(w.t.Context(), w.uploader()) {
		}
		if len(reports) != 1 || reports[0].Count != 0 || !errors.Is(reports[0].Err, session.ErrRetriesExhausted) {
			t.Errorf("the folders that are left: %+v", reports)
		}
		if n := w.requests(faults.OpBucketLayout); n != 0 {
			t.Errorf("%d requests about folders", n)
		}
	})
}

// TestFoldersOfInterruptedRun checks that an interruption between the deletions of folders is reported, because the next run keeps
// the others.
func TestFoldersOfInterruptedRun(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.hierarchical()
		w.write("a")
		w.put("p/a", "p/x/1", "p/y/1")
		ctx, cancel := context.WithCancelCause(w.t.Context())
		stopped := errors.New("stopped")
		plain := w.http.Transport
		w.http.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/managedFolders/") {
				cancel(stopped)
			}
			return plain.RoundTrip(req)
		})
		var reports []mirror.FoldersLeft
		_, err := w.run(ctx, &mirror.Options{MaxDelete: mirror.Percent(100), FoldersLeft: func(l mirror.FoldersLeft) { reports = append(reports, l) }})
		if !errors.Is(err, context.Canceled) || len(reports) != 1 || reports[0].Count != 0 || reports[0].Err != stopped {
			t.Errorf("%v; the folders that are left: %+v", err, reports)
		}
	})
}

// TestManyFolders checks that a large tree leaves no folders.
func TestManyFolders(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.hierarchical()
		w.write("a")
		w.put("p/a")
		for i := range 200 {
			w.put(fmt.Sprintf("p/%d/%d/%d/x", i%7, i%20, i))
		}
		_, err := w.run(w.t.Context(), all)
		require.NoError(t, err)
		w.wantObjects("p/a")
		w.wantFolders("p/")
	})
}

// TestFoldersOfFlatBucket checks that a bucket without folders costs one request, and only if there could be one.
func TestFoldersOfFlatBucket(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a", "b")
		w.put("p/a", "p/b", "p/x")
		w.wantRun(nil, "delete p/x, keep p/a, keep p/b", "p/a p/b", nil)
		if n := w.requests(faults.OpBucketLayout); n != 0 {
			t.Errorf("%d requests for the layout", n)
		}
		w.put("p/x/y/z")
		w.wantRun(nil, "delete p/x/y/z, keep p/a, keep p/b", "p/a p/b", nil)
		if n := w.requests(faults.OpBucketLayout, faults.OpManagedFolderGet, faults.OpFolderDelete); n != 1 {
			t.Errorf("%d requests about folders", n)
		}
	})
}

// TestDeleteFoldersInterrupted checks that an interruption ends DeleteFolders, and that a loop may end early.
func TestDeleteFoldersInterrupted(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.hierarchical()
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("%02d/", i))
			w.do("POST", "/storage/v1/b/bkt/folders", fmt.Sprintf(`{"name":%q}`, names[i]))
		}
		n := 0
		for _, err := range w.uploader().DeleteFolders(w.t.Context(), upload.Listing{Bucket: "bkt"}, slices.Values(names)) {
			if n++; err != nil || n == 3 {
				break
			}
		}
		if n != 3 {
			t.Errorf("%d folders", n)
		}
	})
}
