package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cloudtest"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// world is a server with the bucket bkt, in virtual time, and a directory.
type world struct {
	t    *testing.T
	dir  string
	srv  *fakegcs.Server
	http *http.Client
}

func inBubble(t *testing.T, opts *fakegcs.Options, f func(w *world)) {
	t.Helper()
	dir := filepath.Join(testsize.DiskDir(t), "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	synctest.Test(t, func(t *testing.T) {
		if opts == nil {
			opts = &fakegcs.Options{}
		}
		opts.NoMD5, opts.NoIdempotencyTokens = true, true
		srv, tr, stop := cloudtest.Serve(t, opts)
		defer stop()
		f(&world{t: t, dir: dir, srv: srv, http: &http.Client{Transport: tr}})
	})
}

// write makes files. Each has its name as content.
func (w *world) write(names ...string) {
	w.t.Helper()
	for _, name := range names {
		path := filepath.Join(w.dir, filepath.FromSlash(name))
		require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(w.t, os.WriteFile(path, []byte(name), 0o600))
	}
}

// do makes a request to the server. The path may have a query.
func (w *world) do(method, path, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	reply := httptest.NewRecorder()
	w.srv.ServeHTTP(reply, httptest.NewRequest(method, "http://gcs.test"+path, strings.NewReader(body)))
	if reply.Code >= 300 {
		w.t.Fatal(method, path, reply.Code, reply.Body)
	}
	return reply
}

// put makes objects. Each has its name as content, unless it ends in a slash.
func (w *world) put(names ...string) {
	w.t.Helper()
	for _, name := range names {
		content := strings.TrimPrefix(name, "p/")
		if strings.HasSuffix(name, "/") {
			content = ""
		}
		w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name="+url.QueryEscape(name), content)
	}
}

// uploader returns an uploader to the server.
func (w *world) uploader() *upload.Uploader {
	w.t.Helper()
	u, err := upload.New(w.http, &upload.Options{Endpoint: "http://gcs.test"})
	require.NoError(w.t, err)
	return u
}

// mirror returns a mirror of the directory to gs://bkt/PREFIX.
func (w *world) mirror(prefix string, opts *mirror.Options) *mirror.Mirror {
	w.t.Helper()
	m, err := mirror.New(w.dir, upload.Spec{Bucket: "bkt", Object: prefix}, opts)
	require.NoError(w.t, err)
	return m
}

// addFaults adds faults to the server.
func (w *world) addFaults(plan ...faults.Fault) {
	w.t.Helper()
	require.NoError(w.t, w.srv.AddFaults(plan...))
}

// objects returns the names of all objects.
func (w *world) objects() string {
	w.t.Helper()
	var names []string
	for o, err := range w.uploader().List(w.t.Context(), upload.Listing{Bucket: "bkt"}) {
		require.NoError(w.t, err)
		names = append(names, o.Name)
	}
	return strings.Join(names, " ")
}

// wantObjects checks the names of all objects.
func (w *world) wantObjects(want string) {
	w.t.Helper()
	if got := w.objects(); got != want {
		w.t.Errorf("objects %s, want %s", got, want)
	}
}

// run runs a mirror of the directory to gs://bkt/p, which deletes objects. It returns the outcomes in the
// order of their text, and the last error.
func (w *world) run(ctx context.Context, opts *mirror.Options) (string, error) {
	w.t.Helper()
	var deleting mirror.Options
	if opts != nil {
		deleting = *opts
	}
	deleting.Delete = true
	return w.outcomes(ctx, w.mirror("p", &deleting))
}

// wantRun runs a mirror as run does, and checks the outcomes and the objects. A nil error means success.
func (w *world) wantRun(opts *mirror.Options, want, objects string, wantErr error) {
	w.t.Helper()
	got, err := w.run(w.t.Context(), opts)
	if got != want {
		w.t.Errorf("got  %s\nwant %s", got, want)
	}
	if !errors.Is(err, wantErr) || err != nil && wantErr == nil {
		w.t.Errorf("error %v, want %v", err, wantErr)
	}
	w.wantObjects(objects)
}

// outcomes runs a mirror. It returns the outcomes in the order of their text, and the last error.
func (w *world) outcomes(ctx context.Context, m *mirror.Mirror) (string, error) {
	w.t.Helper()
	var texts []string
	var last error
	for o, err := range m.Run(ctx, w.uploader()) {
		if o.Result == nil && o.Object == nil {
			last = err
			break
		}
		texts = append(texts, outcomeText(o, err))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", "), last
}

// outcomeText describes an outcome.
func outcomeText(o mirror.Outcome, err error) string {
	entry, isEntry := errors.AsType[*tree.EntryError](err)
	switch {
	case isEntry:
		return "skip " + o.Result.Spec.Object + " " + string(entry.Kind)
	case o.Kind == mirror.Upload && err != nil:
		return "fail " + o.Result.Spec.Object
	case o.Kind == mirror.Upload && o.Result.Planned:
		return "would upload " + o.Result.Spec.Object
	case o.Kind == mirror.Upload && o.Result.Skipped != upload.SkipNothing:
		return "keep " + o.Result.Spec.Object
	case o.Kind == mirror.Upload:
		return "upload " + o.Result.Spec.Object
	case o.Kind == mirror.Protect:
		return "protect " + o.Object.Name + " " + o.Reason.String()
	case o.Planned:
		return "would delete " + o.Object.Name
	case errors.Is(err, session.ErrPrecondition):
		return "changed " + o.Object.Name
	case errors.Is(err, session.ErrPermission):
		return "denied " + o.Object.Name
	case errors.Is(err, upload.ErrNotTried):
		return "not tried " + o.Object.Name
	case err != nil:
		return "not deleted " + o.Object.Name
	}
	return "delete " + o.Object.Name
}

// A runCase is a directory, a prefix, and the outcome of a run.
type runCase struct {
	name    string
	files   string
	objects string
	other   func(w *world)
	opts    *mirror.Options
	want    string
	left    string
	err     error
}

// all allows any number of deletions.
var all = &mirror.Options{MaxDelete: mirror.Percent(100)}

// unixRuns are the cases that need links, FIFOs, or names that Windows does not allow.
var unixRuns []runCase

func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range append([]runCase{
		{name: "equal", files: "a b/c", objects: "p/a p/b/c", want: "keep p/a, keep p/b/c", left: "p/a p/b/c"},
		{name: "upload and delete", files: "a b/c d", objects: "p/a p/x", want: "delete p/x, keep p/a, upload p/b/c, upload p/d", left: "p/a p/b/c p/d"},
		{name: "only below the prefix", files: "a", objects: "o/x p p.x p/x pq/x q", opts: all, want: "delete p/x, upload p/a", left: "o/x p p.x p/a pq/x q"},
		{name: "empty directory", objects: "p/a p/b", opts: all, left: "p/a p/b", err: mirror.ErrNoFiles},
		{name: "empty directory and prefix"},
		{name: "too many", files: "a", objects: "p/a p/b p/c", want: "keep p/a", left: "p/a p/b p/c", err: mirror.ErrTooManyDeletions},
		{name: "as many as allowed", files: "a b", objects: "p/a p/b p/c p/d", want: "delete p/c, delete p/d, keep p/a, keep p/b", left: "p/a p/b"},
		{name: "number", files: "a b c d", objects: "p/x", opts: &mirror.Options{MaxDelete: mirror.Objects(0)}, want: "upload p/a, upload p/b, upload p/c, upload p/d", left: "p/a p/b p/c p/d p/x", err: mirror.ErrTooManyDeletions},
		{name: "dry run", files: "a b", objects: "p/b p/x", opts: &mirror.Options{Batch: upload.BatchOptions{DryRun: true}}, want: "keep p/b, would delete p/x, would upload p/a", left: "p/b p/x"},
		{name: "dry run with too many", files: "a", objects: "p/b p/x", opts: &mirror.Options{Batch: upload.BatchOptions{DryRun: true}}, want: "would delete p/b, would delete p/x, would upload p/a", left: "p/b p/x", err: mirror.ErrTooManyDeletions},
		{
			name: "excluded", files: "a tmp/x b.bak", objects: "p/a p/tmp/x p/tmp/y p/c.bak p/d", opts: &mirror.Options{Tree: tree.Options{Exclude: []string{"tmp/", "*.bak"}}},
			want: "delete p/d, keep p/a, protect p/c.bak excluded, protect p/tmp/x excluded, protect p/tmp/y excluded", left: "p/a p/c.bak p/tmp/x p/tmp/y",
		},
		{
			name: "not included", files: "a.txt b", objects: "p/a.txt p/b p/c.txt", opts: &mirror.Options{Tree: tree.Options{Include: []string{"*.txt"}}},
			want: "delete p/c.txt, keep p/a.txt, protect p/b excluded", left: "p/a.txt p/b",
		},
		{
			name: "excluded and deleted", files: "a tmp/x", objects: "p/a p/tmp/x p/tmp/y", opts: &mirror.Options{DeleteExcluded: true, MaxDelete: mirror.Percent(100), Tree: tree.Options{Exclude: []string{"tmp/"}}},
			want: "delete p/tmp/x, delete p/tmp/y, keep p/a", left: "p/a",
		},
		{
			name: "outside the limits", files: "a large", objects: "p/a p/large", opts: &mirror.Options{Tree: tree.Options{MaxSize: new(int64(2))}},
			want: "keep p/a, protect p/large skipped, skip p/large left_out", left: "p/a p/large",
		},
		{
			name: "own objects", files: "a b c d e", objects: "p/ p/s/ p/x p/up.gcsup p/b.gcsup-clock p/state/x", opts: &mirror.Options{Reserved: []string{"p/state/"}},
			want: "delete p/x, protect p/ folder, protect p/b.gcsup-clock saved_upload, protect p/s/ folder, protect p/state/x saved_upload, protect p/up.gcsup saved_upload, upload p/a, upload p/b, upload p/c, upload p/d, upload p/e",
			left: "p/ p/a p/b p/b.gcsup-clock p/c p/d p/e p/s/ p/state/x p/up.gcsup",
		},
		{
			name: "holds", files: "a b c d e f", objects: "p/a p/u p/v p/w p/x p/y", opts: all,
			other: func(w *world) {
				for _, name := range []string{"u", "v", "w", "x"} {
					w.do("PATCH", "/storage/v1/b/bkt/o/p%2F"+name, `{"temporaryHold":true}`)
				}
			},
			want: "delete p/y, denied p/u, denied p/v, denied p/w, denied p/x, keep p/a, upload p/b, upload p/c, upload p/d, upload p/e, upload p/f",
			left: "p/a p/b p/c p/d p/e p/f p/u p/v p/w p/x",
		},
	}, unixRuns...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				if c.files != "" {
					w.write(strings.Split(c.files, " ")...)
				}
				w.put(strings.Fields(c.objects)...)
				if c.other != nil {
					c.other(w)
				}
				w.wantRun(c.opts, c.want, c.left, c.err)
			})
		})
	}
}

// TestWholeBucket checks that the temporary objects of other uploads survive.
func TestWholeBucket(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a")
		w.put("gcsup-parts/x/1", "gcsup-partsx", "b")
		got, err := w.outcomes(w.t.Context(), w.mirror("", &mirror.Options{Delete: true, MaxDelete: mirror.Objects(2)}))
		if got != "delete b, delete gcsup-partsx, protect gcsup-parts/x/1 temporary, upload a" || err != nil {
			t.Errorf("got %s (%v)", got, err)
		}
		w.wantObjects("a gcsup-parts/x/1")
	})
}

// TestWithoutDelete checks that nothing is deleted without the option, also without the permission
// to list objects.
func TestWithoutDelete(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a", "b")
		w.put("p/a", "p/x")
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpList}, Times: 1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		got, err := w.outcomes(w.t.Context(), w.mirror("p", &mirror.Options{DeleteExcluded: true}))
		if got != "keep p/a, upload p/b" || err != nil {
			t.Errorf("got %s (%v)", got, err)
		}
		w.wantObjects("p/a p/b p/x")
	})
}

// TestFaults checks deletions whose requests fail or whose replies are lost.
func TestFaults(t *testing.T) {
	t.Parallel()
	onDelete := faults.Match{Op: faults.OpDelete}
	html := faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>not here</html>"}
	status := func(code int) faults.Action { return faults.Action{Effect: faults.EffectStatus, Status: code} }
	const deleted, uploaded = "delete p/x, delete p/y, keep p/a, keep p/b", "p/a p/b"
	for _, c := range []struct {
		name  string
		fault faults.Fault
		want  string
		left  string
		err   error
	}{
		{"503", faults.Fault{Match: onDelete, Times: 3, Do: status(503)}, deleted, uploaded, nil},
		{"429", faults.Fault{Match: onDelete, Times: 3, Do: status(429)}, deleted, uploaded, nil},
		{"reply lost", faults.Fault{Match: onDelete, Times: 2, Do: faults.Action{Effect: faults.EffectLoseReply}}, deleted, uploaded, nil},
		{"404 of a proxy", faults.Fault{Match: onDelete, Times: 2, Do: html}, deleted, uploaded, nil},
		{"upload refused", faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: status(400)}, "fail p/c, keep p/a, keep p/b", "p/a p/b p/x p/y", mirror.ErrIncomplete},
		{"down", faults.Fault{Match: onDelete, Times: 1000, Do: status(503)}, "keep p/a, keep p/b, not deleted p/x, not deleted p/y", "p/a p/b p/x p/y", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				w.write("a", "b")
				w.put("p/a", "p/b", "p/x", "p/y")
				if c.name == "upload refused" {
					w.write("c")
				}
				w.addFaults(c.fault)
				w.wantRun(nil, c.want, c.left, c.err)
			})
		})
	}
}

// TestReplaced checks that an object is kept if another client replaces it after it was
// listed, even if the reply to the deletion of the old one was lost.
func TestReplaced(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a", "b")
		w.put("p/a", "p/b", "p/x")
		replace := true
		opts := &mirror.Options{Prepare: func(j *upload.Job) {
			if replace && j.Spec.Object == "p/b" { // the only page was read
				replace = false
				w.put("p/x")
			}
		}}
		w.wantRun(opts, "changed p/x, keep p/a, keep p/b", "p/a p/b p/x", nil)
	})
}

// TestGoneMeanwhile checks that a deletion succeeds if another client was faster, and that a file that
// vanishes after the walk protects its object.
func TestGoneMeanwhile(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a", "b", "c")
		w.put("p/a", "p/b", "p/x", "p/y")
		opts := &mirror.Options{Prepare: func(j *upload.Job) {
			if j.Spec.Object == "p/c" {
				w.do("DELETE", "/storage/v1/b/bkt/o/p%2Fx", "")
				_ = os.Remove(j.Path)
			}
		}}
		w.wantRun(opts, "delete p/x, delete p/y, keep p/a, keep p/b, skip p/c vanished", "p/a p/b", nil)
	})
}

// TestAppeared checks that an object is kept if its file is made after the directory was read.
func TestAppeared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opts mirror.Options
		want string
	}{
		{mirror.Options{}, "delete p/y, keep p/a, keep p/b, keep p/c, protect p/new appeared, protect p/sub/new appeared"},
		{mirror.Options{DeleteExcluded: true, Tree: tree.Options{Exclude: []string{"new"}}}, "delete p/new, delete p/sub/new, delete p/y, keep p/a, keep p/b, keep p/c"},
	} {
		inBubble(t, nil, func(w *world) {
			w.write("a", "b", "c", "Y/x")
			w.put("p/a", "p/b", "p/c", "p/Y/x", "p/new", "p/sub/new", "p/y")
			c.opts.Prepare = func(j *upload.Job) {
				if j.Spec.Object == "p/a" {
					w.write("new", "sub/new", "y/x")
				}
			}
			got, err := w.run(w.t.Context(), &c.opts)
			if got = strings.Replace(got, "keep p/Y/x, ", "", 1); got != c.want || err != nil {
				t.Errorf("%s (%v)\nwant %s", got, err, c.want)
			}
		})
	}
}

// TestInterrupted checks that an interrupted run deletes nothing.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a", "b", "c")
		w.put("p/x")
		ctx, cancel := context.WithCancel(w.t.Context())
		opts := &mirror.Options{MaxDelete: mirror.Objects(1), Prepare: func(j *upload.Job) {
			if j.Spec.Object == "p/b" {
				cancel()
			}
		}}
		if _, err := w.run(ctx, opts); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := w.objects(); !strings.Contains(got, "p/x") {
			t.Errorf("objects %s", got)
		}
	})
}

// TestListingFails checks that nothing is deleted if a page of the listing cannot be read.
func TestListingFails(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a")
		for i := range 1100 {
			w.put(fmt.Sprintf("p/%04d", i))
		}
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpList}, Skip: 1, Times: 1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		if got, err := w.run(w.t.Context(), all); !errors.Is(err, session.ErrPermission) || strings.Contains(got, "delete") {
			t.Error(got, err)
		}
		if n := len(strings.Fields(w.objects())); n < 1100 {
			t.Errorf("%d objects", n)
		}
	})
}

func TestPlan(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a", "b", "c/d")
		w.put("p/a", "p/b", "p/x", "p/s/")
		w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=p%2Fb", "other size")
		var got []string
		for a, err := range w.mirror("p/", nil).Plan(w.t.Context(), w.uploader()) {
			require.NoError(t, err)
			name := a.Job.Spec.Object
			if a.Kind == mirror.Delete || a.Kind == mirror.Protect {
				name = a.Object.Name
			}
			got = append(got, a.Kind.String()+" "+name)
		}
		if want := "compare p/a, upload p/b, upload p/c/d, protect p/s/, delete p/x"; strings.Join(got, ", ") != want {
			t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.write("a", "b", "c")
		w.put("p/a", "p/x", "p/s/")
		w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=p%2Fb", "B")
		var got []string
		for o, err := range w.mirror("p/", nil).Check(w.t.Context(), w.uploader()) {
			switch {
			case err != nil:
				t.Fatal(err)
			case o.Kind == mirror.Upload:
				got = append(got, o.Result.Spec.Object+" "+o.Result.Difference.String())
			default:
				got = append(got, o.Object.Name+" "+o.Kind.String())
			}
		}
		slices.Sort(got)
		if want := "p/a equal, p/b content differs, p/c missing, p/s/ protect, p/x delete"; strings.Join(got, ", ") != want {
			t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
		}
		w.wantObjects("p/a p/b p/s/ p/x")
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	spec := upload.Spec{Bucket: "bkt"}
	guarded := spec
	guarded.IfGenerationMatch = new(int64)
	for _, c := range []struct {
		name string
		dir  string
		spec upload.Spec
		opts mirror.Options
	}{
		{"file", file, spec, mirror.Options{}},
		{"missing", dir + "/x", spec, mirror.Options{}},
		{"rule", dir, spec, mirror.Options{Batch: upload.BatchOptions{Skip: upload.SkipExisting}}},
		{"shard", dir, spec, mirror.Options{Tree: tree.Options{Shard: tree.Shard{Index: 0, Count: 2}}}},
		{"listing", dir, spec, mirror.Options{Batch: upload.BatchOptions{Listing: &upload.Listing{}}}},
		{"precondition", dir, guarded, mirror.Options{}},
		{"pattern", dir, spec, mirror.Options{Tree: tree.Options{Exclude: []string{"["}}}},
	} {
		if _, err := mirror.New(c.dir, c.spec, &c.opts); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}
