package fakegcs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
)

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

// An update (PUT) removes the header fields of an object that it does not name, and keeps holds.
func TestUpdateRemovesFields(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("a", "hello")
	w.do("PATCH", "/storage/v1/b/bkt/o/a", []byte(`{"contentType":"text/x","cacheControl":"no-store","contentLanguage":"de","metadata":{"a":"1"},"temporaryHold":true}`))
	o := w.do("PUT", "/storage/v1/b/bkt/o/a", []byte(`{"contentType":"text/y"}`)).json(t)
	if o["contentType"] != "text/y" || o["cacheControl"] != nil || o["contentLanguage"] != nil || o["metadata"] != nil || o["temporaryHold"] != true {
		t.Errorf("updated: %v", o)
	}
}

// An update (PUT) replaces the labels of a bucket and the custom metadata of an object; a patch
// merges them.
func TestUpdateReplacesMaps(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("a", "hello")
	for _, test := range []struct{ target, member string }{{"/storage/v1/b/bkt", "labels"}, {"/storage/v1/b/bkt/o/a", "metadata"}} {
		for _, step := range []struct{ method, value, want string }{
			{"PATCH", `{"a":"1","b":"2"}`, `{"a":"1","b":"2"}`},
			{"PATCH", `{"b":null,"c":"3"}`, `{"a":"1","c":"3"}`},
			{"PUT", `{"d":"4"}`, `{"d":"4"}`},
			{"PUT", `{}`, `null`},
		} {
			got, err := json.Marshal(w.do(step.method, test.target, []byte(`{"`+test.member+`":`+step.value+`}`)).json(t)[test.member])
			if err != nil || string(got) != step.want {
				t.Errorf("%s %s %s: %s, want %s", step.method, test.target, step.value, got, step.want)
			}
		}
	}
}
