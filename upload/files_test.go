package upload_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// jobs writes n files of a size and yields them as jobs for bkt/0, bkt/1 and so on.
func (w *world) jobs(n int, size int64) []upload.Job {
	w.t.Helper()
	old := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before virtual time begins
	var jobs []upload.Job
	for i := range n {
		path := filepath.Join(w.dir, fmt.Sprintf("file%d-%d", size, i))
		content := bytes.Clone(data(size))
		if size > 0 {
			content[0] = byte(i)
		}
		require.NoError(w.t, os.WriteFile(path, content, 0o600))
		require.NoError(w.t, os.Chtimes(path, old, old))
		jobs = append(jobs, upload.Job{Path: path, Size: size, ModTime: old, Spec: upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)}})
	}
	return jobs
}

// fileResult is one result of Files.
type fileResult struct {
	*upload.Result
	err error
	at  time.Duration // since the batch began
}

// files collects the outcomes of a batch, by object.
func files(ctx context.Context, up *upload.Uploader, jobs []upload.Job, opts *upload.BatchOptions) map[string]fileResult {
	got := map[string]fileResult{}
	start := time.Now()
	for r, err := range up.Files(ctx, slices.Values(jobs), opts) {
		got[r.Spec.Object] = fileResult{r, err, time.Since(start)}
	}
	return got
}

// ended returns how many outcomes have an error that wraps target; nil counts those
// without an error.
func ended(got map[string]fileResult, target error) (n int) {
	for _, o := range got {
		if target == nil && o.err == nil || target != nil && errors.Is(o.err, target) {
			n++
		}
	}
	return n
}

func status(code int, match faults.Match) faults.Fault {
	return faults.Fault{Match: match, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: code}}
}

// TestFiles checks that files of all sizes are uploaded, that a file that fails does
// not stop others, and that a large file is uploaded at the same time as the small
// ones.
func TestFiles(t *testing.T) {
	t.Parallel()
	count := 640
	if testing.Short() {
		count = 64
	}
	inBubble(t, &fakegcs.Options{Latency: 50 * time.Millisecond}, func(w *world) {
		jobs := w.jobs(count, 1000)
		large := w.jobs(1, 12*mib)[0]
		large.Spec.Object = "large"
		broken := upload.Job{Path: "no/such", Spec: upload.Spec{Bucket: "bkt", Object: "missing"}, Err: os.ErrNotExist}
		gone := upload.Job{Path: filepath.Join(w.dir, "gone"), Spec: upload.Spec{Bucket: "bkt", Object: "gone"}}
		all := append([]upload.Job{gone, large, broken}, jobs...)
		got := files(w.t.Context(), w.uploader(), all, nil)
		if len(got) != len(all) || ended(got, nil) != len(all)-2 || ended(got, os.ErrNotExist) != 2 {
			t.Errorf("%d outcomes, %d without an error, %d without a file; want %d, %d and 2", len(got), ended(got, nil), ended(got, os.ErrNotExist), len(all), len(all)-2)
		}
		for _, o := range got {
			if o.at > 1200*time.Millisecond { // at most 640 / 32 x 50 ms, and 3 requests of the large one meanwhile
				t.Errorf("%s ended after %v", o.Spec.Object, o.at)
			}
		}
		for i, job := range append([]upload.Job{large}, jobs...) {
			content, _ := os.ReadFile(job.Path)
			if w.wantObject(job.Spec.Object, content); i > 40 {
				break
			}
		}
		if r := got["large"].Result; r.Path != large.Path || r.Object == nil {
			t.Errorf("result = %+v", r)
		}
	})
}

// TestFilesInAnOutage checks that a batch ends when its budget is spent, and that it
// continues if other files succeed.
func TestFilesInAnOutage(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		w.addFaults(status(503, faults.Match{}))
		jobs := w.jobs(300, 10)
		start := time.Now()
		got := files(w.t.Context(), w.uploader(), jobs, nil)
		if ended(got, session.ErrRetriesExhausted) != 300 || ended(got, upload.ErrNotTried) < 200 {
			t.Errorf("%d failed, %d not tried", ended(got, session.ErrRetriesExhausted), ended(got, upload.ErrNotTried))
		}
		if took := time.Since(start); took > 3*time.Minute {
			t.Errorf("took %v", took)
		}

		// One object that always fails ends nothing.
		w.srv.ClearFaults()
		w.addFaults(status(503, faults.Match{Object: "7"}))
		got = files(w.t.Context(), w.uploader(), jobs, &upload.BatchOptions{Jobs: 2})
		if ended(got, nil) != 299 {
			t.Errorf("%d uploaded, want 299", ended(got, nil))
		}
	})
}

// TestBudgetOfABatch checks how long a batch retries without the service. Each of its
// uploads has the retries of one file of the total size, for which the sizes are read once: they
// may be those of a walk of a tree. The breaker may block the uploads for
// twice as long as these retries can wait. It does not block a file that is alone.
func TestBudgetOfABatch(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const n = 64
	var passes atomic.Int64
	sizes := func(yield func(int64) bool) {
		passes.Add(1)
		for range n {
			if !yield(mib) {
				return
			}
		}
	}
	for _, tt := range []struct {
		name        string
		size        int64
		sizes       func(yield func(int64) bool)
		first, last time.Duration // when uploads end
	}{
		// 10 retries for 64 MiB wait for 1, 2, 4, 8, 16 s, each and up to 1 s more, and
		// five times 32 s.
		{"one file", n * mib, nil, 191 * time.Second, 196 * time.Second},
		{"a tree", mib, sizes, 2 * 196 * time.Second, 2*196*time.Second + 32*time.Second},
		// 32 MiB were started: 8 retries, of at most 132 s.
		{"files without sizes", mib, nil, 2 * 132 * time.Second, 2*132*time.Second + 32*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
				jobs := w.jobs(int(n*mib/tt.size), tt.size)
				got := files(w.t.Context(), w.uploader(withoutStore), jobs, &upload.BatchOptions{Jobs: 32, Sizes: tt.sizes})
				if failed := ended(got, session.ErrRetriesExhausted); failed != len(jobs) {
					t.Errorf("%d of %d files ended with ErrRetriesExhausted", failed, len(jobs))
				}
				first, last := time.Duration(math.MaxInt64), time.Duration(0)
				for _, o := range got {
					first, last = min(first, o.at), max(last, o.at)
				}
				if first < tt.first || last > tt.last {
					t.Errorf("ended after %v to %v, want %v to %v", first, last, tt.first, tt.last)
				}
			})
		})
	}
	if n := passes.Load(); n != 1 {
		t.Errorf("the sizes were read %d times", n)
	}
}

// TestFilesSkipIfListed checks that a refused listing costs no request for each file, only the comparison.
func TestFilesSkipIfListed(t *testing.T) {
	t.Parallel()
	list := faults.Match{Op: faults.OpList}
	for _, c := range []struct {
		bucket        string
		listing       int // the status of a reply that is no listing
		ifListed      bool
		skipped, gets int
		warnings      int
		err           error
	}{
		{"bkt", 0, true, 3, 0, 0, nil},
		{"bkt", http.StatusForbidden, false, 3, 3, 1, nil},
		{"bkt", http.StatusForbidden, true, 0, 0, 1, nil},
		{"missing", 0, true, 0, 0, 0, session.ErrNotFound},
	} {
		t.Run(fmt.Sprintf("%s, status %d, %v", c.bucket, c.listing, c.ifListed), func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				up, jobs := w.uploader(), w.jobs(3, 1000)
				files(w.t.Context(), up, jobs, nil)
				if c.listing != 0 {
					w.addFaults(status(c.listing, list))
				}
				for i := range jobs {
					jobs[i].Spec.Bucket = c.bucket
				}
				opts := &upload.BatchOptions{Jobs: 1, Skip: upload.SkipIdentical, SkipIfListed: c.ifListed, Listing: &upload.Listing{Bucket: c.bucket}}
				got := files(w.t.Context(), up, jobs, opts)
				skipped := 0
				for _, o := range got {
					if o.Skipped == upload.SkipIdentical {
						skipped++
					}
				}
				synctest.Wait() // the server counts a request when it ends, after the reply
				gets, warnings := int(w.srv.Stats().Ops[faults.OpGet]), w.saw(upload.Warning)
				if skipped != c.skipped || gets != c.gets || warnings != c.warnings || len(got) != 3 || c.err == nil && ended(got, nil) != 3 || c.err != nil && ended(got, c.err) == 0 {
					t.Errorf("%d skipped, %d requests for objects, %d warnings, %d of %d files without an error; want %+v", skipped, gets, warnings, ended(got, nil), len(got), c)
				}
			})
		})
	}
}

func lookUp(t *testing.T, w *world, spec upload.Spec) *session.Object {
	t.Helper()
	client, err := session.NewClient(w.http, "http://gcs.test")
	require.NoError(t, err)
	r := client.Stat(w.t.Context(), spec)
	if r.Object == nil {
		t.Fatalf("stat %s: %d, %v", spec.URL(), r.Status, r.Err)
	}
	return r.Object
}

func TestSkipString(t *testing.T) {
	for s := upload.SkipNothing; s <= upload.SkipSameTime; s++ {
		if strings.Contains(s.String(), "Skip(") {
			t.Errorf("%d has no name", int(s))
		}
	}
}

// TestFilesJobs checks that Jobs limits small and large files together.
func TestFilesJobs(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{Latency: time.Second}, func(w *world) {
		large := w.jobs(2, 9*mib)
		for i := range large {
			large[i].Spec.Object = fmt.Sprint("large", i)
		}
		start := time.Now()
		got := files(w.t.Context(), w.uploader(), append(large, w.jobs(4, 10)...), &upload.BatchOptions{Jobs: 1})
		if took := time.Since(start); ended(got, nil) != 6 || took < 10*time.Second { // 2 x 3 and 4 requests
			t.Errorf("%d uploaded in %v", ended(got, nil), took)
		}
	})
}

// portal makes requests fail because of an untrusted certificate, as in the network
// of a hotel, while it is on.
type portal struct {
	http.RoundTripper
	on atomic.Bool
}

func (p *portal) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.on.Load() {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, x509.UnknownAuthorityError{}
	}
	return p.RoundTripper.RoundTrip(req)
}

// TestFilesInAnOfflineMinute checks that an error which would end the first upload,
// because its endpoint may be wrong, is retried after the service was reached. In an
// earlier version it ended all files of the bucket.
func TestFilesInAnOfflineMinute(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, rule := range []upload.Skip{upload.SkipNothing, upload.SkipIdentical} {
		inBubble(t, nil, func(w *world) {
			network := &portal{RoundTripper: w.http.Transport}
			w.http.Transport = network
			jobs := w.jobs(100, 10)
			n, failed := 0, 0
			for _, err := range w.uploader().Files(w.t.Context(), slices.Values(jobs), &upload.BatchOptions{Jobs: 2, Skip: rule}) {
				if n++; n == 10 {
					network.on.Store(true)
					time.AfterFunc(20*time.Second, func() { network.on.Store(false) })
				}
				if err != nil {
					failed++
					t.Errorf("%v: %v", rule, err)
				}
				if failed == 3 {
					break
				}
			}
			network.on.Store(true)
			w.fails(session.ErrNotFound)(w.uploader().File(w.t.Context(), jobs[0].Path, spec))
		})
	}
}

// TestFilesBesideALargeOne checks that a large file that progresses shows that the
// service can be reached: by commits, and by the bytes of one long request. In an
// earlier version, failures of others ended all remaining files.
func TestFilesBesideALargeOne(t *testing.T) {
	t.Parallel()
	skipShort(t)
	// 16 MiB, which count as progress, are sent long before the first small file has
	// used up its minute.
	for _, chunkSize := range []int64{8 * mib, 0}[:testsize.Full(2, 1)] {
		inBubble(t, &fakegcs.Options{Rate: 1 << 20, Discard: true, NoMD5: true}, func(w *world) {
			w.addFaults(status(503, faults.Match{Op: faults.OpInsert}))
			path := w.file(nil)
			require.NoError(t, os.Truncate(path, 128*mib))
			jobs := append([]upload.Job{{Path: path, Spec: spec}}, w.jobs(40, 10)...)
			up := w.uploader(func(o *upload.Options) {
				o.ChunkSize, o.RetryFor, o.Breaker = chunkSize, time.Minute, backoff.NoBreaker
			})
			got := files(w.t.Context(), up, jobs, &upload.BatchOptions{Jobs: 21})
			if ended(got, nil) != 1 || ended(got, session.ErrRetriesExhausted) != 40 || ended(got, upload.ErrNotTried) != 0 {
				t.Errorf("requests of %d: %d uploaded, %d failed, %d not tried; large file after %v: %v", chunkSize,
					ended(got, nil), ended(got, session.ErrRetriesExhausted), ended(got, upload.ErrNotTried), got["obj"].at, got["obj"].err)
			}
		})
	}
}

// TestFilesRacySource checks that the identity of a racy file, whose times are not in
// the past, has no change time. A manifest then compares the bytes. An earlier
// version left out a file that changed in the same tick.
func TestFilesRacySource(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		jobs := w.jobs(2, 10)
		later := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		require.NoError(t, os.Chtimes(jobs[1].Path, later, later))
		w.letPass(jobs[0].Path)
		for _, skipped := range []upload.Skip{upload.SkipNothing, upload.SkipIdentical} {
			got := files(w.t.Context(), w.uploader(), jobs, &upload.BatchOptions{Skip: upload.SkipIdentical})
			for i, job := range jobs {
				want, err := sourcefile.StatIdentity(job.Path)
				if i == 1 {
					want.ChangeTimeNS = 0
				}
				if o := got[job.Spec.Object]; err != nil || o.err != nil || o.Skipped != skipped || o.Source != want {
					t.Errorf("file %d: skipped %v, error %v, identity %+v, want %v and %+v", i, o.Skipped, o.err, o.Source, skipped, want)
				}
			}
		}
	})
}

// TestFilesResumeSameTime checks that a batch that writes modification times resumes
// a large file, and that it detects a changed one. An earlier version reported the
// new time as another option, even with --if-source-changed=restart.
func TestFilesResumeSameTime(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, &fakegcs.Options{Rate: 1 << 20}, func(w *world) {
		all := w.jobs(4, 12*mib)
		opts := &upload.BatchOptions{Skip: upload.SkipSameTime}
		restart := func(o *upload.Options) { o.RestartChanged = true }
		for i, tt := range []struct {
			with    func(*upload.Options)
			changed bool
			want    error
			resumed bool
		}{
			{func(*upload.Options) {}, false, nil, true},
			{func(*upload.Options) {}, true, session.ErrSourceChanged, false},
			{restart, true, nil, false},
			{func(*upload.Options) {}, false, nil, true},
		} {
			jobs, name := all[i:i+1], fmt.Sprint(i)
			if i == 3 { // just modified: without the time at first, with it at the end
				jobs[0].ModTime = time.Now()
				require.NoError(t, os.Chtimes(jobs[0].Path, jobs[0].ModTime, jobs[0].ModTime))
			}
			ctx, cancel := context.WithTimeout(w.t.Context(), 8*time.Second)
			if got := files(ctx, w.uploader(restart), jobs, opts)[name]; !got.Resumable {
				t.Fatal(got.err)
			}
			cancel()
			if tt.changed {
				jobs[0].ModTime = jobs[0].ModTime.Add(time.Hour)
				require.NoError(t, os.Chtimes(jobs[0].Path, jobs[0].ModTime, jobs[0].ModTime))
			}
			got := files(w.t.Context(), w.uploader(tt.with), jobs, opts)[name]
			if !errors.Is(got.err, tt.want) || got.Resumed != tt.resumed {
				t.Errorf("changed %v: resumed %v, error %v, want %v", tt.changed, got.Resumed, got.err, tt.want)
			}
			if got.err == nil && i < 3 {
				if o := lookUp(t, w, jobs[0].Spec); !o.FileModTime.Equal(jobs[0].ModTime) {
					t.Errorf("the object has the time %v, want %v", o.FileModTime, jobs[0].ModTime)
				}
			}
		}
	})
}

// TestFilesResumeForgottenMetadata checks that a batch that writes modification
// times or POSIX attributes, and that got no other metadata, resumes an upload that
// has some. Both were taken for other metadata of the caller's.
func TestFilesResumeForgottenMetadata(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for i, opts := range []*upload.BatchOptions{{Skip: upload.SkipSameTime}, {PreservePOSIX: true}, {Skip: upload.SkipSameTime, PreservePOSIX: true}} {
		inBubble(t, &fakegcs.Options{Rate: 1 << 20}, func(w *world) {
			jobs := w.jobs(1, 12*mib)
			forgetful := jobs[0]
			jobs[0].Spec.Metadata = map[string]string{"k": "v"}
			ctx, cancel := context.WithTimeout(w.t.Context(), 8*time.Second)
			defer cancel()
			first := &upload.BatchOptions{PreservePOSIX: opts.PreservePOSIX}
			if got := files(ctx, w.uploader(), jobs, first)["0"]; !got.Resumable {
				t.Fatal(got.err)
			}
			got := files(w.t.Context(), w.uploader(), []upload.Job{forgetful}, opts)["0"]
			if got.err != nil || !got.Resumed || got.Object.Metadata["k"] != "v" {
				t.Errorf("options %d: resumed %v, %+v, %v", i, got.Resumed, got.Object, got.err)
			}
		})
	}
}
