package upload_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

var removing = upload.CallOptions{RemoveSource: true}

// wantSource fails unless the source at path exists, or does not, as the result says.
func wantSource(t *testing.T, path string, removed bool, res *upload.Result) {
	t.Helper()
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) != removed {
		t.Errorf("%s: removed %v, want %v", filepath.Base(path), !removed, removed)
	}
	if res.SourceRemoved != removed {
		t.Errorf("SourceRemoved = %v, want %v (%v)", res.SourceRemoved, removed, res.SourceKept)
	}
}

// TestRemoveSource uploads a file in each way in which an object is made, and checks that the file is
// removed.
func TestRemoveSource(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size  int64
		gzip  bool
		with  func(*upload.Options)
		stats int64 // further requests for the metadata of the object: those of parts look before and after, too
	}{
		"empty":           {size: 0, with: func(*upload.Options) {}},
		"in one request":  {size: 1000, with: func(*upload.Options) {}},
		"compressed":      {size: 1000, gzip: true, with: func(*upload.Options) {}},
		"through session": {size: large, with: largeChunks},
		"not saved":       {size: large, with: func(o *upload.Options) { o.ChunkSize, o.Store = large-q, nil }},
		"in parts":        {size: 10 * mib, with: func(o *upload.Options) { o.Parallel = &upload.Parts{Connections: 2, MinPart: multipart.MinPart} }, stats: 2},
	} {
		if tt.size > mib && testing.Short() {
			continue
		}
		for _, racy := range []bool{false, true} { // see sourcefile.Settled
			inBubble(t, nil, func(w *world) {
				path := w.file(data(tt.size))
				if racy {
					require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(24*time.Hour)))
				}
				to := spec
				to.Gzip = tt.gzip
				seen := w.srv.Stats().Ops[faults.OpGet]
				res, err := withCall(w.uploader(tt.with), removing).File(w.t.Context(), path, to)
				if err != nil {
					w.t.Fatalf("%s: %v", name, err)
				}
				wantSource(w.t, path, true, res)
				if n := w.srv.Stats().Ops[faults.OpGet] - seen; n != tt.stats+1 {
					w.t.Errorf("%s: %d requests for the metadata of the object, want %d", name, n, tt.stats+1)
				}
				if !tt.gzip {
					w.wantObject("obj", data(tt.size))
				}
				w.wantSaved(0)
			})
		}
	}
}

// TestRemoveSourceOfBatch checks which files of a batch are removed, for each rule.
func TestRemoveSourceOfBatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule                  upload.Skip
		dryRun                bool
		same, other, uploaded bool // whether the file is removed whose object is the same, has other bytes, or does not exist
	}{
		{rule: upload.SkipNothing, same: true, other: true, uploaded: true},
		{rule: upload.SkipIdentical, same: true, other: true, uploaded: true},
		{rule: upload.SkipSameTime, same: true, other: true, uploaded: true},
		{rule: upload.SkipExisting, uploaded: true},
		{rule: upload.SkipIdentical, dryRun: true},
	} {
		for _, listed := range []bool{true, false} {
			inBubble(t, nil, func(w *world) {
				jobs := w.jobs(3, 1000)
				content := make([][]byte, len(jobs))
				for i, job := range jobs {
					content[i], _ = os.ReadFile(job.Path)
					old := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
					require.NoError(w.t, os.Chtimes(job.Path, old, old))
					jobs[i].ModTime = old
				}
				// The objects have the times of the files, so that SkipSameTime alone would skip both.
				for range w.uploader().Files(w.t.Context(), slices.Values(jobs[:2]), &upload.BatchOptions{Skip: upload.SkipSameTime}) {
				}
				info, err := os.Stat(jobs[1].Path)
				require.NoError(w.t, err)
				content[1] = flipped(content[1], 5)
				require.NoError(w.t, os.WriteFile(jobs[1].Path, content[1], 0o600))
				require.NoError(w.t, os.Chtimes(jobs[1].Path, info.ModTime(), info.ModTime()))
				opts := &upload.BatchOptions{Skip: tt.rule, DryRun: tt.dryRun}
				if listed {
					opts.Listing = &upload.Listing{Bucket: "bkt"}
				}
				want := map[string]bool{jobs[0].Path: tt.same, jobs[1].Path: tt.other, jobs[2].Path: tt.uploaded}
				for res, err := range withCall(w.uploader(), removing).Files(w.t.Context(), slices.Values(jobs), opts) {
					if err != nil || res.SourceKept != nil {
						w.t.Errorf("%v: %v, %v", tt.rule, err, res.SourceKept)
					}
					wantSource(w.t, res.Path, want[res.Path], res)
				}
				for i, job := range jobs {
					if want[job.Path] {
						w.wantObject(job.Spec.Object, content[i])
					}
				}
			})
		}
	}
}

// meddler calls before with each request, before it is sent.
type meddler struct {
	http.RoundTripper
	before func(*http.Request)
}

func (m meddler) RoundTrip(req *http.Request) (*http.Response, error) {
	m.before(req)
	return m.RoundTripper.RoundTrip(req)
}

// TestRemoveSourceChanged changes the source when its last byte was read, and checks that a
// source with other bytes stays, although its object exists. Package source has other changes.
func TestRemoveSourceChanged(t *testing.T) {
	t.Parallel()
	content := data(1000)
	for name, tt := range map[string]struct {
		change func(t *testing.T, path string, was fs.FileInfo)
		want   error // nil if the source is removed
	}{
		"other bytes with the old time": {func(t *testing.T, path string, was fs.FileInfo) {
			if err := errors.Join(os.WriteFile(path, flipped(content, 7), 0o600), os.Chtimes(path, was.ModTime(), was.ModTime())); err != nil {
				t.Error(err)
			}
		}, session.ErrSourceChanged},
		"moved away": {func(t *testing.T, path string, _ fs.FileInfo) {
			if err := os.Rename(path, path+".old"); err != nil {
				t.Error(err)
			}
		}, fs.ErrNotExist},
		"other permissions": {func(t *testing.T, path string, _ fs.FileInfo) {
			if err := os.Chmod(path, 0o640); err != nil {
				t.Error(err)
			}
		}, nil},
	} {
		for _, zip := range []bool{false, true} {
			inBubble(t, nil, func(w *world) {
				path := w.file(content)
				was, err := os.Stat(path)
				require.NoError(w.t, err)
				w.http.Transport = meddler{w.http.Transport, func(req *http.Request) {
					if req.Method == http.MethodPost { // all bytes are in memory
						tt.change(w.t, path, was)
					}
				}}
				to := spec
				to.Gzip = zip
				res, err := withCall(w.uploader(), removing).File(w.t.Context(), path, to)
				if err != nil || res.Object == nil {
					w.t.Fatalf("%s: %v", name, err)
				}
				if !errors.Is(res.SourceKept, tt.want) || (res.SourceKept == nil) != (tt.want == nil) {
					w.t.Errorf("%s: SourceKept = %v, want %v", name, res.SourceKept, tt.want)
				}
				if _, err := os.Stat(path); name != "moved away" && (err == nil) != (tt.want != nil) {
					w.t.Errorf("%s: the file exists: %v", name, err == nil)
				}
				if res.SourceRemoved != (tt.want == nil) {
					w.t.Errorf("%s: SourceRemoved = %v", name, res.SourceRemoved)
				}
			})
		}
	}
}

// TestRemoveSourceOfMissingObject checks that the source stays if another client deletes or replaces the object:
// after it was found, or after the reply to the last request was lost and before the status query. The reply to
// that query describes the object nevertheless.
func TestRemoveSourceOfMissingObject(t *testing.T) {
	t.Parallel()
	content := data(large)
	for _, found := range []bool{true, false} {
		for _, replaced := range []bool{false, true} {
			inBubble(t, nil, func(w *world) {
				path := w.file(content)
				call, theirs := removing, []byte("other")
				if found {
					w.done(w.uploader(largeChunks).File(w.t.Context(), path, spec))
					call.Skip, theirs = upload.SkipIdentical, content
				} else {
					w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Times: 1, Do: faults.Action{Effect: faults.EffectLoseReply}})
				}
				plain, requests, done := w.http.Transport, 0, false
				other, err := upload.New(&http.Client{Transport: plain}, &upload.Options{Endpoint: "http://gcs.test"})
				require.NoError(w.t, err)
				w.http.Transport = meddler{plain, func(*http.Request) {
					requests++
					if _, made := w.srv.Object("bkt", "obj"); !made || done || requests == 1 {
						return
					}
					done = true
					if replaced {
						_, err = other.Bytes(context.Background(), theirs, spec)
					} else {
						err = deleteObject(plain)
					}
					if err != nil {
						w.t.Error(err)
					}
				}}
				res, err := withCall(w.uploader(largeChunks), call).File(w.t.Context(), path, spec)
				if err != nil || !done || res.Skipped != call.Skip {
					w.t.Fatalf("meddled %v, skipped %v, %v", done, res.Skipped, err)
				}
				wantSource(w.t, path, false, res)
				if !errors.Is(res.SourceKept, session.ErrOutcomeUnknown) {
					w.t.Errorf("found %v, replaced %v: SourceKept = %v", found, replaced, res.SourceKept)
				}
			})
		}
	}
}

// deleteObject deletes the object of spec.
func deleteObject(through http.RoundTripper) error {
	req, err := http.NewRequest(http.MethodDelete, "http://gcs.test/storage/v1/b/bkt/o/obj", nil)
	if err != nil {
		return err
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// TestRemoveSourceCanceled checks that the source stays if the call is canceled while the
// metadata of the object is read.
func TestRemoveSourceCanceled(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(1000))
		ctx, cancel := context.WithCancel(w.t.Context())
		plain := w.http.Transport
		w.http.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := plain.RoundTrip(req)
			if req.Method == http.MethodGet && err == nil {
				resp.Body = afterClose{resp.Body, cancel}
			}
			return resp, err
		})
		res, err := withCall(w.uploader(), removing).File(ctx, path, spec)
		if err != nil || ctx.Err() == nil {
			w.t.Fatalf("canceled %v, %v", ctx.Err(), err)
		}
		wantSource(w.t, path, false, res)
		if !errors.Is(res.SourceKept, context.Canceled) {
			w.t.Errorf("SourceKept = %v", res.SourceKept)
		}
	})
}

// afterClose is the body of a reply. It calls done when it is closed.
type afterClose struct {
	io.ReadCloser
	done func()
}

func (b afterClose) Close() error {
	b.done()
	return b.ReadCloser.Close()
}

// TestRemoveSourceAfterResume checks that a file is removed by the call that resumes its upload,
// and not by one that fails.
func TestRemoveSourceAfterResume(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(large))
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut, From: 2 * mib, To: 2*mib + 1}, Times: 1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		up := withCall(w.uploader(resumable), removing)
		res, err := up.File(w.t.Context(), path, spec)
		if err == nil || !res.Resumable {
			w.t.Fatalf("not interrupted: %v", err)
		}
		wantSource(w.t, path, false, res)
		if res, err = up.Resume(w.t.Context(), res.ID); err != nil || !res.Resumed {
			w.t.Fatalf("not resumed: %v", err)
		}
		wantSource(w.t, path, true, res)
		w.wantObject("obj", data(large))
	})
}

// TestRemoveSourceOfCleanup resumes an upload in parts of which only the cleanup is left. The source
// stays, and the Result has the reason.
func TestRemoveSourceOfCleanup(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpDelete}, Times: 8, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		path := w.file(data(10 * mib))
		up := w.uploader(func(o *upload.Options) {
			o.Parallel = &upload.Parts{Connections: 2, MinPart: mib, Join: upload.ByCompose}
		})
		res, err := up.File(w.t.Context(), path, spec)
		if err != nil || res.Leftover == nil {
			w.t.Fatalf("%v, leftover %v", err, res.Leftover)
		}
		if res, err = withCall(up, removing).Resume(w.t.Context(), res.ID); err != nil {
			w.t.Fatal(err)
		}
		wantSource(w.t, path, false, res)
		if !errors.Is(res.SourceKept, session.ErrOutcomeUnknown) {
			w.t.Errorf("SourceKept = %v", res.SourceKept)
		}
	})
}

// TestRemoveSourceRefusesLinks checks that nothing is sent of a file that is a symbolic link.
func TestRemoveSourceRefusesLinks(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(1000))
		link := path + ".link"
		if err := os.Symlink(path, link); err != nil {
			w.t.Skip(err)
		}
		res, err := withCall(w.uploader(), removing).File(w.t.Context(), link, spec)
		if !errors.Is(err, chunk.ErrNotRegular) {
			w.t.Errorf("%v, want ErrNotRegular", err)
		}
		wantSource(w.t, link, false, res)
		if trace := w.trace(); trace != "" {
			w.t.Errorf("requests:\n%s", trace)
		}
	})
}

// TestDisposeOfSource checks that Dispose replaces the removal, and is called only for a file whose
// bytes are those of the object.
func TestDisposeOfSource(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(1000))
		refuse := errors.New("refused")
		var asked []string
		dispose := func(_ *os.Root, path string, info fs.FileInfo, unchanged func() error) error {
			asked = append(asked, path)
			if info.Size() != 1000 {
				w.t.Errorf("the file has %d bytes", info.Size())
			}
			return refuse
		}
		up := withCall(w.uploader(), upload.CallOptions{Dispose: dispose})
		res, err := up.File(w.t.Context(), path, spec)
		require.NoError(w.t, err)
		if wantSource(w.t, path, false, res); !errors.Is(res.SourceKept, refuse) {
			w.t.Errorf("SourceKept = %v", res.SourceKept)
		}
		refuse = os.Rename(path, path+".moved")
		if res, err = up.File(w.t.Context(), path, spec); err == nil {
			w.t.Errorf("a missing file was uploaded: %+v", res)
		}
		require.NoError(w.t, os.Rename(path+".moved", path))
		if res, err = up.File(w.t.Context(), path, spec); err != nil || !res.SourceRemoved || len(asked) != 2 {
			w.t.Errorf("%+v, %v, asked %q", res, err, asked)
		}
	})
}

// TestRemoveSourceBelow checks that a file is neither sent nor removed if a directory above it was replaced by a link
// after it was listed, and that a link above Job.Below is followed.
func TestRemoveSourceBelow(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		base := w.t.TempDir()
		for _, dir := range []string{"source/sub", "outside"} {
			require.NoError(w.t, os.MkdirAll(filepath.Join(base, dir), 0o700))
		}
		write := func(name string) string {
			path := filepath.Join(base, filepath.FromSlash(name))
			require.NoError(w.t, os.WriteFile(path, data(1000), 0o600))
			return path
		}
		outside, kept := write("outside/file"), write("source/sub/kept")
		if err := errors.Join(os.Symlink("../outside", filepath.Join(base, "source", "link")), os.Symlink("source", filepath.Join(base, "named"))); err != nil {
			w.t.Skip(err)
		}
		source, named := filepath.Join(base, "source"), filepath.Join(base, "named")
		jobs := []upload.Job{
			{Path: filepath.Join(source, "link", "file"), Below: source, Spec: spec},
			{Path: filepath.Join(named, "sub", "kept"), Below: named, Spec: spec},
		}
		removed := map[string]error{}
		for res, err := range withCall(w.uploader(), removing).Files(w.t.Context(), slices.Values(jobs), nil) {
			removed[res.Path] = err
			if res.SourceRemoved != (err == nil) {
				w.t.Errorf("%s: %+v, %v", res.Path, res, err)
			}
		}
		w.wantError(removed[jobs[0].Path], chunk.ErrNotRegular)
		if err := removed[jobs[1].Path]; err != nil {
			w.t.Errorf("below a link: %v", err)
		}
		w.done(os.Stat(outside))
		w.fails(fs.ErrNotExist)(os.Stat(kept))
	})
}

// TestRemoveSourceUnreadable checks that nothing is sent again if the object cannot be read: it could not be compared, and
// the source would stay. Without RemoveSource the file is sent, because the rule only saves work.
func TestRemoveSourceUnreadable(t *testing.T) {
	t.Parallel()
	for _, remove := range []bool{true, false} {
		inBubble(t, nil, func(w *world) {
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpGet}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusForbidden}})
			path := w.file(data(1000))
			_, err := withCall(w.uploader(), upload.CallOptions{RemoveSource: remove, Skip: upload.SkipIdentical}).File(w.t.Context(), path, spec)
			if sent := w.srv.Stats().Ops[faults.OpInsert]; errors.Is(err, session.ErrPermission) != remove || (sent == 0) != remove {
				w.t.Errorf("removal %v: %d requests, %v", remove, sent, err)
			}
		})
	}
}

// TestUnsaved checks that a call that saves nothing neither uses the store nor sends a file in parts.
func TestUnsaved(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		up := w.uploader(func(o *upload.Options) {
			o.Store = hook(o.Store, failAfter(0, errFull), "Save")
			o.Parallel = &upload.Parts{Connections: 3, MinPart: 1 << 20}
		})
		content := data(10 * mib)
		path := w.file(content)
		w.fails(syscall.ENOSPC)(up.File(w.t.Context(), path, spec))
		res, err := withCall(up, upload.CallOptions{Unsaved: true}).File(w.t.Context(), path, spec)
		if err != nil || res.Parts != nil || res.ID != "" {
			w.t.Errorf("%+v, %v", res, err)
		}
		w.wantObject(spec.Object, content)
	})
}
