package objectmeta_test

import (
	"testing"

	"gcsup/internal/objectmeta"
	"gcsup/session"
)

// TestSplitURL checks that SplitURL is the inverse of Spec.URL.
func TestSplitURL(t *testing.T) {
	for text, want := range map[string]session.Spec{
		"gs://bkt/a/b?c#d%20": {Bucket: "bkt", Object: "a/b?c#d%20"}, "gs://bkt//a": {Bucket: "bkt", Object: "/a"},
		"gs://bkt/": {Bucket: "bkt"}, "gs://bkt": {Bucket: "bkt"}, "gs:///x": {}, "gs://": {}, "gs:/bkt/x": {}, "s3://bkt/x": {}, "bkt/x": {}, "": {},
	} {
		bucket, object, ok := objectmeta.SplitURL(text)
		if bucket != want.Bucket || object != want.Object || ok != (want.Bucket != "") {
			t.Errorf("SplitURL(%q) = %q, %q, %v; want %q, %q", text, bucket, object, ok, want.Bucket, want.Object)
		}
	}
}
