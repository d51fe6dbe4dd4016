package fakegcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"gcsup/fakegcs"
)

// official is a server with the official client connected to it.
func official(t *testing.T, opts *fakegcs.Options) (*world, *storage.BucketHandle) {
	t.Helper()
	w := newWorld(t, opts)
	t.Setenv("STORAGE_EMULATOR_HOST", w.url)
	client, err := storage.NewClient(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return w, client.Bucket("bkt")
}

func statusOf(err error) int {
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		return e.Code
	}
	if errors.Is(err, storage.ErrObjectNotExist) {
		return http.StatusNotFound
	}
	return 0
}

func TestPatchAndCopy(t *testing.T) {
	w, bkt := official(t, nil)
	ctx := context.Background()
	w.insert("a", "hello")
	a := bkt.Object("a")
	attrs, err := a.If(storage.Conditions{MetagenerationMatch: 1}).Update(ctx, storage.ObjectAttrsToUpdate{
		ContentType: "text/x", CacheControl: "no-store", Metadata: map[string]string{"k": "v", "l": "w"}, CustomTime: time.Unix(9e8, 0),
	})
	if err != nil || attrs.Metageneration != 2 || attrs.ContentType != "text/x" || attrs.Metadata["k"] != "v" || attrs.CustomTime.Unix() != 9e8 || attrs.CRC32C == 0 {
		t.Fatalf("update: %+v, %v", attrs, err)
	}
	if _, err := a.If(storage.Conditions{MetagenerationMatch: 1}).Update(ctx, storage.ObjectAttrsToUpdate{ContentType: "y"}); statusOf(err) != 412 {
		t.Errorf("stale update: %v", err)
	}
	patched := w.do("PATCH", "/storage/v1/b/bkt/o/a", []byte(`{"metadata":{"k":null},"cacheControl":null}`)).json(t)
	if fmt.Sprint(patched["metadata"]) != "map[l:w]" || patched["cacheControl"] != nil {
		t.Errorf("nulls: %v", patched)
	}
	copied, err := bkt.Object("dir/b").If(storage.Conditions{DoesNotExist: true}).CopierFrom(a).Run(ctx)
	if err != nil || copied.ContentType != "text/x" || copied.Size != 5 || copied.Metadata["l"] != "w" || len(copied.MD5) != 16 {
		t.Fatalf("copy: %+v, %v", copied, err)
	}
	cp := bkt.Object("c").CopierFrom(a)
	cp.ContentType = "text/other"
	if attrs, err := cp.Run(ctx); err != nil || attrs.ContentType != "text/other" || attrs.Metadata != nil {
		t.Errorf("copy with attributes: %+v, %v", attrs, err)
	}
	if err := a.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := w.gcs.ReadObject("bkt", "dir/b"); string(got) != "hello" || err != nil {
		t.Errorf("the copy outlives its source: %q, %v", got, err)
	}
	if a := w.do("PUT", "/bkt/d", nil, "x-goog-copy-source: /bkt/dir%2Fb"); a.StatusCode != 200 || !strings.Contains(a.body, "CopyObjectResult") {
		t.Errorf("XML copy: %d %s", a.StatusCode, a.body)
	}
}

func TestCompose(t *testing.T) {
	for _, mode := range []string{"memory", "directory", "discard"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{Discard: mode == "discard"}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w, bkt := official(t, opts)
			ctx := context.Background()
			var sources []*storage.ObjectHandle
			var want []byte
			for i, size := range []int{q + 1, 0, 5, 2 * q, 1} {
				w.insert(fmt.Sprint("part", i), string(data(size)))
				sources = append(sources, bkt.Object(fmt.Sprint("part", i)))
				want = append(want, data(size)...)
			}
			c := bkt.Object("whole").ComposerFrom(sources...)
			c.DeleteSourceObjects = true
			attrs, err := c.Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			o, _ := w.gcs.Object("bkt", "whole")
			if attrs.Size != int64(len(want)) || len(attrs.MD5) != 0 || attrs.ComponentCount != 5 || o.CRC32C.String() != crc(want) {
				t.Errorf("composed: %+v, crc32c %s, want %s", attrs, o.CRC32C, crc(want))
			}
			if mode != "discard" {
				if got, err := w.gcs.ReadObject("bkt", "whole"); err != nil || !bytes.Equal(got, want) {
					t.Errorf("it has %d bytes, %v", len(got), err)
				}
			}
			if _, err := sources[0].Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
				t.Errorf("a source after deleteSourceObjects: %v", err)
			}
			w.insert("tail", "tail")
			again, err := bkt.Object("whole").ComposerFrom(bkt.Object("whole").Generation(attrs.Generation), bkt.Object("tail")).Run(ctx)
			if err != nil || again.ComponentCount != 6 || again.Size != attrs.Size+4 {
				t.Errorf("composed again: %+v, %v", again, err)
			}
			bad := bkt.Object("bad").ComposerFrom(bkt.Object("tail"))
			bad.SendCRC32C, bad.CRC32C = true, 1
			if _, err := bad.Run(ctx); statusOf(err) != 400 {
				t.Errorf("with a wrong crc32c: %v", err)
			}
			gcloud := `{"destination":{"crc32c":"AAAAAA==","md5Hash":"1B2M2Y8AsgTpgAmY7PhCfg=="},"sourceObjects":[{"name":"tail"}]}`
			if a := w.do("POST", "/storage/v1/b/bkt/o/gcloud/compose", []byte(gcloud)); a.StatusCode != 200 {
				t.Errorf("with the metadata of the first source: %d %s", a.StatusCode, a.body)
			}
			if _, err := bkt.Object("bad").ComposerFrom(bkt.Object("missing")).Run(ctx); statusOf(err) != 404 {
				t.Errorf("of an object that is not there: %v", err)
			}
			many := fmt.Sprintf(`{"sourceObjects":[%s{"name":"tail"}]}`, strings.Repeat(`{"name":"tail"},`, 32))
			if a := w.do("POST", "/storage/v1/b/bkt/o/bad/compose", []byte(many)); a.StatusCode != 400 {
				t.Errorf("of 33 objects: %d", a.StatusCode)
			}
		})
	}
}

func TestHoldsAndRetention(t *testing.T) {
	w, bkt := official(t, nil)
	ctx := context.Background()
	w.insert("a", "first")
	a := bkt.Object("a")
	forbidden := func(what string, err error) {
		t.Helper()
		if statusOf(err) != 403 {
			t.Errorf("%s: %v, want 403", what, err)
		}
	}
	if _, err := a.Update(ctx, storage.ObjectAttrsToUpdate{TemporaryHold: true}); err != nil {
		t.Fatal(err)
	}
	forbidden("delete under a hold", a.Delete(ctx))
	if r := w.do("PUT", w.start("a"), []byte("second")); r.StatusCode != 403 || !strings.Contains(r.body, "is under active Temporary hold") || !strings.Contains(r.body, `"forbidden"`) {
		t.Errorf("overwrite under a hold: %d %s", r.StatusCode, r.body)
	}
	if _, err := a.Update(ctx, storage.ObjectAttrsToUpdate{TemporaryHold: false}); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(ctx); err != nil {
		t.Error(err)
	}

	if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{RetentionPolicy: &storage.RetentionPolicy{RetentionPeriod: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	w.insert("b", "kept")
	forbidden("delete within the retention period", bkt.Object("b").Delete(ctx))
	w.gcs.Advance(time.Hour)
	if err := bkt.Object("b").Delete(ctx); err != nil {
		t.Error(err)
	}
	if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{RetentionPolicy: &storage.RetentionPolicy{}, DefaultEventBasedHold: true, StorageClass: "NEARLINE"}); err != nil {
		t.Fatal(err)
	}
	w.insert("c", "held")
	attrs, err := bkt.Object("c").Attrs(ctx)
	if err != nil || !attrs.EventBasedHold || attrs.StorageClass != "NEARLINE" {
		t.Errorf("default hold and storage class: %+v, %v", attrs, err)
	}
	forbidden("delete under the default hold", bkt.Object("c").Delete(ctx))
}

func TestVersionsAndSoftDelete(t *testing.T) {
	for _, mode := range []string{"memory", "directory"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w, bkt := official(t, opts)
			ctx := context.Background()
			if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{VersioningEnabled: true}); err != nil {
				t.Fatal(err)
			}
			w.insert("a", "one")
			one, _ := w.gcs.Object("bkt", "a")
			w.insert("a", "two")
			if err := bkt.Object("a").Delete(ctx); err != nil {
				t.Fatal(err)
			}
			if _, ok := w.gcs.Object("bkt", "a"); ok {
				t.Error("a live object after delete")
			}
			list := func(query *storage.Query) (n int) {
				t.Helper()
				for it := bkt.Objects(ctx, query); ; n++ {
					if _, err := it.Next(); err == iterator.Done {
						return n
					} else if err != nil {
						t.Fatal(err)
					}
				}
			}
			if n := list(&storage.Query{Versions: true}); n != 2 {
				t.Errorf("%d versions, want 2", n)
			}
			if mode == "directory" { // what is kept outlives a restart
				w.gcs.Close()
				w, bkt = official(t, opts)
			}
			rd, err := bkt.Object("a").Generation(one.Generation).NewReader(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(rd); string(got) != "one" || err != nil {
				t.Errorf("first generation is %q, %v", got, err)
			}
			rd.Close()
			if err := bkt.Object("a").Generation(one.Generation).Delete(ctx); err != nil {
				t.Fatal(err)
			}
			if n := list(&storage.Query{Versions: true}); n != 1 {
				t.Errorf("%d versions, want 1", n)
			}

			if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{VersioningEnabled: false, SoftDeletePolicy: &storage.SoftDeletePolicy{RetentionDuration: time.Hour}}); err != nil {
				t.Fatal(err)
			}
			w.insert("s", "soft")
			s, _ := w.gcs.Object("bkt", "s")
			if err := bkt.Object("s").Delete(ctx); err != nil {
				t.Fatal(err)
			}
			if n := list(nil); n != 0 {
				t.Errorf("%d live objects, want 0", n)
			}
			if n := list(&storage.Query{SoftDeleted: true}); n != 1 {
				t.Errorf("%d soft-deleted objects, want 1", n)
			}
			if attrs, err := bkt.Object("s").Generation(s.Generation).Restore(ctx, &storage.RestoreOptions{}); err != nil || attrs.Generation == s.Generation || attrs.CRC32C != uint32(s.CRC32C) {
				t.Errorf("restore: %+v, %v", attrs, err)
			}
			w.gcs.Advance(2 * time.Hour)
			if n := list(&storage.Query{SoftDeleted: true}); n != 0 {
				t.Errorf("%d soft-deleted objects after their time", n)
			}
			if got, err := w.gcs.ReadObject("bkt", "s"); string(got) != "soft" || err != nil {
				t.Errorf("the restored object has %q, %v", got, err)
			}
		})
	}
}

func TestCustomerKeys(t *testing.T) {
	_, bkt := official(t, nil)
	ctx := context.Background()
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	wr := bkt.Object("a").Key(key).NewWriter(ctx)
	wr.ChunkSize = q
	wr.Write(data(2*q + 5))
	if err := wr.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		obj  *storage.ObjectHandle
		want string
	}{{bkt.Object("a").Key(key), ""}, {bkt.Object("a"), "400"}, {bkt.Object("a").Key(other), "CustomerEncryptionKeyIsIncorrect"}} {
		rd, err := test.obj.NewReader(ctx)
		if test.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(rd); err != nil || !bytes.Equal(got, data(2*q+5)) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			rd.Close()
		} else if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("read: %v, want %s", err, test.want)
		}
	}
	if attrs, err := bkt.Object("a").Attrs(ctx); err != nil || attrs.CustomerKeySHA256 == "" {
		t.Errorf("attrs: %+v, %v", attrs, err)
	}
}

func TestListing(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"a", "a/1", "a/2", "a/b/3", "b/", "b/4", "c", "ü"} {
		w.insert(name, name)
	}
	list := func(query string) string {
		t.Helper()
		var out []string
		for token := ""; ; {
			a := w.do("GET", "/storage/v1/b/bkt/o?"+query+"&pageToken="+token, nil)
			page := a.json(t)
			for _, p := range append([]any{}, asList(page["prefixes"])...) {
				out = append(out, "["+p.(string)+"]")
			}
			for _, item := range asList(page["items"]) {
				out = append(out, item.(map[string]any)["name"].(string))
			}
			if token, _ = page["nextPageToken"].(string); token == "" {
				return strings.Join(out, " ")
			}
			token = escape(token)
			out = append(out, "|")
		}
	}
	for _, test := range []struct{ query, want string }{
		{"", "a a/1 a/2 a/b/3 b/ b/4 c ü"},
		{"prefix=a/", "a/1 a/2 a/b/3"},
		{"delimiter=/", "[a/] [b/] a c ü"},
		{"delimiter=/&prefix=a/", "[a/b/] a/1 a/2"},
		{"delimiter=/&includeTrailingDelimiter=true", "[a/] [b/] a b/ c ü"},
		{"startOffset=a/2&endOffset=c", "a/2 a/b/3 b/ b/4"},
		{"maxResults=3", "a a/1 a/2 | a/b/3 b/ b/4 | c ü"},
		{"maxResults=1&delimiter=/", "a | [a/] | [b/] | c | ü"},
		{"maxResults=2&delimiter=/", "[a/] a | [b/] c | ü"},
		{"prefix=x", ""},
	} {
		if got := list(test.query); got != test.want {
			t.Errorf("list %s = %s, want %s", test.query, got, test.want)
		}
	}
	if got := w.do("GET", "/storage/v1/b/bkt/o?fields=items(name,size),kind&prefix=c", nil); !strings.Contains(got.body, `"name": "c"`) || strings.Contains(got.body, "generation") {
		t.Errorf("fields: %s", got.body)
	}
	for _, fields := range []string{"items(name", "name", "items/nonsense", "items(name,nonsense)", "kind,items/name,nonsense"} {
		if got := w.do("GET", "/storage/v1/b/bkt/o?fields="+fields, nil); got.StatusCode != 400 || !strings.Contains(got.body, "Invalid field selection") {
			t.Errorf("fields=%s: %d", fields, got.StatusCode)
		}
	}
	for _, fields := range []string{"*", "items/*", "items(*)", "items/metadata/anything"} {
		if got := w.do("GET", "/storage/v1/b/bkt/o?fields="+fields, nil); got.StatusCode != 200 {
			t.Errorf("fields=%s: %d", fields, got.StatusCode)
		}
	}
	if got := w.do("POST", "/storage/v1/b/bkt/o/c/rewriteTo/b/bkt/o/d?fields=done,resource(name)", nil); got.StatusCode != 200 || strings.Contains(got.body, "size") {
		t.Errorf("fields of a rewrite: %d %s", got.StatusCode, got.body)
	}
	if got := w.do("GET", "/bkt?delimiter=/&max-keys=2", nil); !strings.Contains(got.body, "<CommonPrefixes><Prefix>a/</Prefix>") || !strings.Contains(got.body, "<IsTruncated>true") {
		t.Errorf("XML: %s", got.body)
	}
}

func asList(v any) []any { l, _ := v.([]any); return l }

// Soft-deleted objects go each in its time, also after a restart.
func TestSoftDeletedGoInTheirTime(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`))
	for _, name := range []string{"a", "b", "c"} {
		w.insert(name, name)
		w.do("DELETE", "/storage/v1/b/bkt/o/"+name, nil)
		w.gcs.Advance(time.Hour)
	}
	left := func() int {
		return strings.Count(w.do("GET", "/storage/v1/b/bkt/o?softDeleted=true", nil).body, `"name"`)
	}
	w.gcs.Advance(7*24*time.Hour - 150*time.Minute) // half an hour after the end of the first
	if n := left(); n != 2 {
		t.Errorf("%d are left, want 2", n)
	}
	w = w.again(dir, func() {})
	w.gcs.Advance(7*24*time.Hour + 30*time.Minute) // the clock begins anew
	if n := left(); n != 2 {
		t.Errorf("%d are left after a restart, want 2", n)
	}
	w.gcs.Advance(time.Hour)
	if n := left(); n != 1 {
		t.Errorf("%d are left, want 1", n)
	}
}
