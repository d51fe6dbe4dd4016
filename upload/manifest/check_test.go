package manifest

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cloudtest"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// bucketWorld is a server with the buckets bkt and two, in virtual time, and a manifest.
type bucketWorld struct {
	t    *testing.T
	srv  *fakegcs.Server
	up   *upload.Uploader
	path string
}

func withBuckets(t *testing.T, f func(w *bucketWorld)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest")
	synctest.Test(t, func(t *testing.T) {
		srv, tr, stop := cloudtest.Serve(t, &fakegcs.Options{NoMD5: true})
		defer stop()
		require.NoError(t, srv.CreateBucket(fakegcs.Bucket{Name: "two"}))
		up, err := upload.New(&http.Client{Transport: tr}, &upload.Options{Endpoint: "http://gcs.test"})
		require.NoError(t, err)
		f(&bucketWorld{t: t, srv: srv, up: up, path: path})
	})
}

// put makes an object, and returns its record.
func (w *bucketWorld) put(bucket, name, content string) Record {
	w.t.Helper()
	o, err := w.srv.PutObject(fakegcs.Object{Bucket: bucket, Name: name}, strings.NewReader(content))
	require.NoError(w.t, err)
	return Record{
		Status: Done, Path: "/src/" + name, Bucket: bucket, Object: name,
		Source:     chunk.Identity{Size: int64(len(content)), Inode: 1},
		Generation: o.Generation, HasCRC32C: true, CRC32C: crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli)),
	}
}

// record appends records of an endpoint to the manifest.
func (w *bucketWorld) record(endpoint string, records ...Record) {
	w.t.Helper()
	m, err := Open(w.path, endpoint)
	require.NoError(w.t, err)
	record(w.t, m, records...)
	require.NoError(w.t, m.Close())
}

// compare returns the comparisons in a few words.
func (w *bucketWorld) compare(c *Check) (lines []string) {
	w.t.Helper()
	c.Path = w.path
	for r, err := range c.Compare(w.t.Context(), w.up) {
		switch {
		case err != nil:
			w.t.Fatal(err)
		case r.Record.Status == "":
			lines = append(lines, "extra "+r.Object.Bucket+"/"+r.Object.Name)
		default:
			line := fmt.Sprintf("%v: %v", r.Difference, r.Record.Bucket+"/"+r.Record.Object)
			if r.Object != nil && (r.Object.Bucket != r.Record.Bucket || r.Object.Name != r.Record.Object) {
				w.t.Errorf("%s: the object is %s/%s", line, r.Object.Bucket, r.Object.Name)
			}
			if r.Object != nil && r.Object.Generation != r.Record.Generation {
				line += ", another generation"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestCheck(t *testing.T) {
	t.Parallel()
	withBuckets(t, func(w *bucketWorld) {
		same := w.put("bkt", "a/same", "12345")
		again := w.put("bkt", "a/again", "12345")
		w.put("bkt", "a/again", "12345")
		bytes := w.put("bkt", "a/bytes", "12345")
		w.put("bkt", "a/bytes", "1234x")
		size := w.put("bkt", "a/size", "12345")
		size.Source.Size = 6 // the object is the recorded one, and never had the bytes of the file
		missing := w.put("bkt", "a/missing", "12345")
		require.NoError(t, w.srv.DeleteObject("bkt", "a/missing"))
		failed := w.put("bkt", "a/failed", "1")
		failed.Status, failed.CRC32C, failed.Reason = Failed, 7, "503"
		failedAway := failed
		failedAway.Object = "a/failed-away"
		skipped := w.put("bkt", "a/skipped", "12345")
		skipped.Status, skipped.Source.Size = Skipped, 1 // the object existed, and is not that of the file
		skippedOther := skipped
		skippedOther.Object, skippedOther.CRC32C = "a/skipped-other", 7
		w.put("bkt", "a/skipped-other", "12345")
		unknown := w.put("bkt", "a/unknown", "12345")
		unknown.Status, unknown.HasCRC32C, unknown.Generation = Skipped, false, 0
		unknownAway := unknown
		unknownAway.Object = "a/unknown-away"
		socket := Record{Status: Skipped, Path: "/src/socket", Bucket: "bkt", Object: "a/socket", Reason: "a socket"}
		unverified := w.put("bkt", "a/unverified", "12345")
		unverified.HasCRC32C = false
		unverifiedAgain := w.put("bkt", "a/unverified-again", "12345")
		unverifiedAgain.HasCRC32C, unverifiedAgain.Generation = false, 1
		before := w.put("bkt", "a/retried", "x")
		before.Status = Failed
		retried := w.put("bkt", "a/retried", "12345")
		two := w.put("two", "b", "12345")
		const temporary = "a/gcsup-parts-0123456789abcdef0123-ABCDEFGHIJKLMNOPQRSTUVWXYZ-0000"
		for _, name := range []string{"a/extra", "a/folder/", temporary, "a/saved.gcsup", "aa", "a"} {
			w.put("bkt", name, "")
		}
		w.put("two", "bb", "x")
		elsewhere := missing
		elsewhere.Object = "nowhere"

		w.record("http://gcs.test", before, two, unverified, unverifiedAgain, socket, unknown, unknownAway)
		w.record("http://gcs.test", skipped, skippedOther, failed, failedAway)
		w.record("http://emulator", elsewhere, same)
		w.record("", same)
		w.record("http://gcs.test", again, bytes, size, missing, retried)
		text, err := os.ReadFile(w.path)
		require.NoError(t, err)
		text = append(text, "{\"v\":1,damaged\n{\"v\":1,\"status\":\"unfinished line"...)
		require.NoError(t, os.WriteFile(w.path, text, 0o400)) // another process writes to it, and this one may not
		want := []string{
			"equal: bkt/a/again, another generation", "content differs: bkt/a/bytes, another generation",
			"equal: bkt/a/failed", "missing: bkt/a/failed-away", "missing: bkt/a/missing", "equal: bkt/a/retried",
			"equal: bkt/a/same",
			"size differs: bkt/a/size", "equal: bkt/a/skipped", "content differs: bkt/a/skipped-other, another generation",
			"equal: bkt/a/socket", "equal: bkt/a/unknown, another generation", "missing: bkt/a/unknown-away",
			"equal: bkt/a/unverified", "checksum missing: bkt/a/unverified-again, another generation",
			"equal: two/b",
		}
		c := &Check{}
		if got := w.compare(c); !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if c.Damaged != 1 || !reflect.DeepEqual(c.Elsewhere, map[string]int64{"http://emulator": 2}) {
			t.Errorf("%d damaged lines, records elsewhere: %v", c.Damaged, c.Elsewhere)
		}
		want = slices.Insert(want, 2, "extra bkt/a/extra")
		want = append(want, "extra two/bb")
		c.Extra = true
		if got := w.compare(c); !reflect.DeepEqual(got, want) {
			t.Errorf("with extra: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if after, err := os.ReadFile(w.path); err != nil || string(after) != string(text) {
			t.Errorf("the manifest changed, or %v", err)
		}
		if left, err := filepath.Glob(w.path + "*"); err != nil || len(left) != 1 {
			t.Errorf("files: %q, %v", left, err)
		}
	})
}

// TestCheckRandom compares random buckets with random records, against a map.
func TestCheckRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		withBuckets(t, func(w *bucketWorld) {
			want := map[string]string{}
			prefix := []string{"", "p/", "päth/é"}[rng.IntN(3)]
			for i := range 60 {
				bucket := []string{"bkt", "two"}[rng.IntN(2)]
				name := fmt.Sprintf("%s%x", prefix, rng.IntN(300))
				key := bucket + "/" + name
				if want[key] != "" {
					continue
				}
				r := w.put(bucket, name, fmt.Sprint(1000+i))
				recorded := true
				switch rng.IntN(4) {
				case 0:
					want[key] = "equal"
				case 1:
					want[key] = "content differs"
					r.CRC32C++
				case 2:
					want[key] = "missing"
					require.NoError(t, w.srv.DeleteObject(bucket, name))
				case 3:
					want[key], recorded = "extra", false
				}
				if recorded {
					w.record("http://gcs.test", r)
				}
			}
			got := map[string]string{}
			c := Check{Path: w.path, Extra: true}
			last := ""
			recorded := map[string]bool{} // buckets
			for r, err := range c.Compare(w.t.Context(), w.up) {
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				key, what := r.Record.Bucket+"/"+r.Record.Object, r.Difference.String()
				if r.Record.Status == "" {
					key, what = r.Object.Bucket+"/"+r.Object.Name, "extra"
				} else {
					recorded[r.Record.Bucket] = true
				}
				if got[key] != "" || key <= last {
					t.Fatalf("seed %d: %s after %s", seed, key, last)
				}
				got[key], last = what, key
			}
			for key, what := range want {
				if what == "extra" && !recorded[key[:3]] {
					delete(want, key) // nothing of the bucket is recorded
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d: got %v\nwant %v", seed, got, want)
			}
		})
	}
}

// TestCheckLists checks that there is one listing of the longest common prefix in each bucket, and that a bucket that
// cannot be listed does not keep others from being compared.
func TestCheckLists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names []string
		extra bool
		want  string
	}{
		{[]string{"a/b/c1", "a/b/c2"}, false, "prefix=a%2Fb%2Fc&"},
		{[]string{"a/b/c1", "a/b/c2"}, true, "prefix=a%2Fb%2F&"},
		{[]string{"one"}, false, "prefix=one&"},
		{[]string{"one"}, true, ""},
		{[]string{"é", "è"}, false, ""}, // their first byte is the same
		{[]string{"aé", "aè", "ab"}, false, "prefix=a&"},
	} {
		withBuckets(t, func(w *bucketWorld) {
			for _, name := range c.names {
				absent := Record{Status: Done, Path: name, Bucket: "absent", Object: name}
				w.record("", w.put("bkt", name, "x"), absent, w.put("two", name, "x"))
			}
			check := Check{Path: w.path, Extra: c.extra}
			compared, failed := 0, 0
			for r, err := range check.Compare(w.t.Context(), w.up) {
				switch {
				case err == nil && r.Difference == upload.ObjectEqual && r.Record.Bucket != "absent":
					compared++
				case r.Record.Bucket == "absent" && errors.Is(err, session.ErrNotFound):
					failed++
				default:
					t.Errorf("%+v, %v", r, err)
				}
			}
			if compared != 2*len(c.names) || failed != 1 {
				t.Errorf("%q: %d compared, %d failed", c.names, compared, failed)
			}
			synctest.Wait()
			lists := 0
			for _, r := range w.srv.Requests() {
				if r.Op != faults.OpList {
					t.Errorf("a request %s %s", r.Method, r.Path)
				}
				if r.Bucket == "bkt" {
					lists++
					if !strings.Contains(r.Path+"&", c.want) || c.want == "" && strings.Contains(r.Path, "prefix=") {
						t.Errorf("%q: %s", c.names, r.Path)
					}
				}
			}
			if lists != 1 {
				t.Errorf("%q: %d listings", c.names, lists)
			}
		})
	}
}

// TestCheckErrors checks what ends an iteration.
func TestCheckErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"notes\n":             ErrFormat,
		"{\"v\":2,\"x\":1}\n": ErrVersion,
		"{\"v\":1,\"x\":1}\n{\"v\":2,\"x\":1}\n{\"v\":1,\"x\":1}\n": ErrVersion,
		"missing":   fs.ErrNotExist,
		"directory": ErrFormat,
		"":          nil,
	} {
		withBuckets(t, func(w *bucketWorld) {
			switch text {
			case "missing":
			case "directory":
				require.NoError(t, os.Mkdir(w.path, 0o700))
			default:
				require.NoError(t, os.WriteFile(w.path, []byte(text), 0o600))
			}
			n := 0
			c := Check{Path: w.path}
			for r, err := range c.Compare(w.t.Context(), w.up) {
				n++
				if !errors.Is(err, want) || !reflect.DeepEqual(r, Comparison{}) || !strings.Contains(err.Error(), w.path) {
					t.Errorf("%q: %+v, %v", text, r, err)
				}
			}
			if (n == 1) != (want != nil) {
				t.Errorf("%q: %d pairs", text, n)
			}
		})
	}
}

// TestSkipLookedUp checks that a finished job whose object is not the recorded one is not left out.
func TestSkipLookedUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
	m := open(t, filepath.Join(t.TempDir(), "manifest"))
	source, err := m.identity(path)
	require.NoError(t, err)
	done := Record{Status: Done, Path: path, Source: source, Bucket: "bkt", Object: "a"}
	done.Generation, done.HasCRC32C, done.CRC32C = 5, true, 7
	record(t, m, done)
	m = reopen(t, m)
	for _, c := range []struct {
		listed bool
		object *session.Object
		want   int // jobs that remain
	}{
		{false, nil, 0},
		{true, nil, 1},
		{true, &session.Object{Size: 5, HasCRC32C: true, CRC32C: 7, Generation: 6}, 0},
		{true, &session.Object{Size: 5, HasCRC32C: true, CRC32C: 8, Generation: 6}, 1},
		{true, &session.Object{Size: 4, HasCRC32C: true, CRC32C: 7, Generation: 5}, 1},
		{true, &session.Object{Size: 5, Generation: 6}, 1},
		{true, &session.Object{Size: 5, Generation: 5}, 0},
	} {
		job := upload.Job{Path: path, Spec: upload.Spec{Bucket: "bkt", Object: "a"}, Listed: c.listed, Object: c.object}
		if left := remaining(t, m, slices.Values([]upload.Job{job})); len(left) != c.want {
			t.Errorf("listed %v, %+v: %q remain", c.listed, c.object, left)
		}
	}
}
