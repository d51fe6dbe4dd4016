package fakegcs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// These tests simulate a kill between two writes to the directory: they restore files
// as they were before the second write.

// again closes the server, makes the changes to its directory, and starts a new server there.
func (w *world) again(dir string, changes ...func()) *world {
	w.Helper()
	if err := w.gcs.Close(); err != nil {
		w.Fatal(err)
	}
	for _, change := range changes {
		change()
	}
	return newWorld(w.T, &fakegcs.Options{Dir: dir})
}

// keep returns a function that restores the files under dir as they are now. It does
// not remove files that are created later.
func keep(t *testing.T, dir string) (restore func()) {
	t.Helper()
	was := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			was[path], err = os.ReadFile(path)
		}
		return err
	})
	require.NoError(t, err)
	return func() {
		t.Helper()
		for path, data := range was {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
	}
}

// age changes the one session in dir to be eight days old.
func age(t *testing.T, dir string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "sessions", "*"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	data, err := os.ReadFile(list[0])
	require.NoError(t, err)
	old := time.Now().UTC().Add(-8 * 24 * time.Hour).Format(time.RFC3339)
	data = regexp.MustCompile(`"created":"[^"]*"`).ReplaceAll(data, []byte(`"created":"`+old+`"`))
	require.NoError(t, os.WriteFile(list[0], data, 0o600))
}

// An upload that has made its object is finished, even if its own record does not
// show it and the object was changed since.
func TestKilledAfterFinalize(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	for name, change := range map[string]func(w *world){
		"nothing":      func(*world) {},
		"a week later": func(*world) {},
		"patched": func(w *world) {
			w.do("PATCH", "/storage/v1/b/bkt/o/x", []byte(`{"contentType":"a/b"}`))
		},
		"retained": func(w *world) {
			w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"retentionPolicy":{"retentionPeriod":"9"}}`))
		},
		"archived": func(w *world) {
			w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"versioning":{"enabled":true}}`))
			w.do("DELETE", "/storage/v1/b/bkt/o/x", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, &fakegcs.Options{Dir: dir})
			uri := w.start("x")
			w.put(uri, 0, q, "*")
			restore := keep(t, filepath.Join(dir, "sessions"))
			a := w.chunk(200, uri, q, 2*q, fmt.Sprint(2*q))
			change(w)
			w = w.again(dir, func() {
				restore()
				if name == "a week later" {
					age(t, dir)
				}
			})
			b := w.do("PUT", w.moved(uri), nil, "Content-Range: bytes */*")
			if b.StatusCode != 200 || b.json(t)["generation"] != a.json(t)["generation"] {
				t.Errorf("the session: %d %s", b.StatusCode, b.body)
			}
		})
	}
}

// Such a session stays finished, even if the object is deleted after the restart.
func TestDeletedAfterKill(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	uri := w.start("x")
	w.put(uri, 0, q, "*")
	restore := keep(t, filepath.Join(dir, "sessions"))
	w.chunk(200, uri, q, 2*q, fmt.Sprint(2*q))
	w = w.again(dir, restore)
	w.want(204, "", "DELETE", "/storage/v1/b/bkt/o/x", nil)
	w = w.again(dir)
	w.want(200, `"size": "524288"`, "PUT", w.moved(uri), nil, "Content-Range: bytes */*")
}

// A bucket may have the name of a temporary file that a killed server left behind.
func TestBucketNamedLikeALeftover(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	w.createBucket(fakegcs.Bucket{Name: "data.tmp"})
	w.do("POST", "/upload/storage/v1/b/data.tmp/o?uploadType=media&name=x", data(9))
	leftover := filepath.Join(dir, "sessions", "abc.tmp")
	w = w.again(dir, func() {
		require.NoError(t, os.WriteFile(leftover, nil, 0o600))
	})
	if got, err := w.gcs.ReadObject("data.tmp", "x"); err != nil || string(got) != string(data(9)) {
		t.Errorf("after a restart: %q %v", got, err)
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("the temporary file: %v", err)
	}
}

// A multipart upload that has made its object is finished, even if its record remains.
func TestKilledAfterComplete(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	_, after, _ := strings.Cut(w.do("POST", "/bkt/x?uploads", nil).body, "<UploadId>")
	id, _, _ := strings.Cut(after, "</UploadId>")
	list := "<CompleteMultipartUpload>"
	for n := 1; n <= 2; n++ {
		a := w.do("PUT", fmt.Sprintf("/bkt/x?uploadId=%s&partNumber=%d", id, n), data(21*q))
		list += fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", n, a.Header.Get("Etag"))
	}
	w.do("PUT", "/bkt/x?partNumber=1&uploadId="+id, data(20*q)) // replaced: too small for its place
	w.do("PUT", "/bkt/x?partNumber=1&uploadId="+id, data(21*q))
	w = w.again(dir)
	if a := w.do("GET", "/bkt/x?uploadId="+id, nil); strings.Count(a.body, fmt.Sprintf("<Size>%d</Size>", 21*q)) != 2 {
		t.Errorf("parts after a restart: %s", a.body)
	}
	blobs := keep(t, filepath.Join(dir, "blobs"))
	parts := keep(t, filepath.Join(dir, "parts"))
	complete := []byte(list + "</CompleteMultipartUpload>")
	w.want(200, "", "POST", "/bkt/x?uploadId="+id, complete)
	w = w.again(dir, blobs, parts)
	w.want(404, "", "POST", "/bkt/x?uploadId="+id, complete)
	left, err := filepath.Glob(filepath.Join(dir, "blobs", "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("%d blobs for one object of two parts, %v", len(left), err)
	}
	w.holds("x", slices.Concat(data(21*q), data(21*q)))
}

// A retention policy applies to all objects as soon as the bucket has it, even if the
// server is killed right then.
func TestKilledWhileRetaining(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	w.insert("x", "x")
	restore := keep(t, filepath.Join(dir, "buckets", "bkt"))
	w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"retentionPolicy":{"retentionPeriod":"3600"}}`))
	record := filepath.Join(dir, "buckets", "bkt", "bucket")
	bucket, err := os.ReadFile(record)
	require.NoError(t, err)
	want, _ := w.gcs.Object("bkt", "x")
	w = w.again(dir, func() {
		restore()
		require.NoError(t, os.WriteFile(record, bucket, 0o600))
	})
	got, _ := w.gcs.Object("bkt", "x")
	if got.RetentionExpirationTime.IsZero() || !got.RetentionExpirationTime.Equal(want.RetentionExpirationTime) {
		t.Errorf("retained until %v, want %v", got.RetentionExpirationTime, want.RetentionExpirationTime)
	}
	w.want(403, "", "DELETE", "/storage/v1/b/bkt/o/x", nil)
}

// The rest of a bucket that was being deleted does not appear in a new bucket of the
// same name.
func TestKilledWhileDeletingBucket(t *testing.T) {
	const softDelete = `{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	w.do("PATCH", "/storage/v1/b/bkt", []byte(softDelete))
	w.insert("x", "x")
	w.do("DELETE", "/storage/v1/b/bkt/o/x", nil)
	w = w.again(dir, func() {
		require.NoError(t, os.Remove(filepath.Join(dir, "buckets", "bkt", "bucket")))
	})
	w = w.again(dir) // with a new bucket, from newWorld
	w.do("PATCH", "/storage/v1/b/bkt", []byte(softDelete))
	w.want(200, `!"name"`, "GET", "/storage/v1/b/bkt/o?softDeleted=true", nil)
}

// A restart removes expired sessions from the directory.
func TestExpiredSessionsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	uri := w.start("x")
	w.put(uri, 0, q, "*")
	w = w.again(dir, func() { age(t, dir) })
	w.want(404, "", "PUT", w.moved(uri), nil, "Content-Range: bytes */*")
	for _, sub := range []string{"sessions", "blobs"} {
		if left, err := os.ReadDir(filepath.Join(dir, sub)); err != nil || len(left) > 0 {
			t.Errorf("%s: %v %v", sub, left, err)
		}
	}
}
