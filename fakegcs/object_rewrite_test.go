package fakegcs_test

import (
	"strings"
	"testing"

	"gcsup/fakegcs"
)

// A rewrite to another location takes as many requests as maxBytesRewrittenPerCall demands.
func TestRewriteInSteps(t *testing.T) {
	w := newWorld(t, nil)
	w.createBucket(fakegcs.Bucket{Name: "far", Location: "EU"})
	content := strings.Repeat("x", 5<<19) // 2.5 MiB
	w.insert("a", content)
	const limit, far = "&maxBytesRewrittenPerCall=1048576", "/storage/v1/b/bkt/o/a/rewriteTo/b/far/o/a?rewriteToken="
	step := func(target, body string) map[string]any { return w.do("POST", target, []byte(body)).json(t) }

	first := step(far+limit, `{"contentType":"text/x"}`)
	token, _ := first["rewriteToken"].(string)
	if first["done"] != false || first["totalBytesRewritten"] != "1048576" || first["objectSize"] != "2621440" || first["resource"] != nil || token == "" {
		t.Fatalf("first step: %v", first)
	}
	for _, other := range []string{
		"/storage/v1/b/bkt/o/a/rewriteTo/b/far/o/b?rewriteToken=" + token, far + token + "&maxBytesRewrittenPerCall=2097152", far + "nonsense" + limit, far + "&maxBytesRewrittenPerCall=5",
	} {
		w.want(400, "", "POST", other, nil)
	}
	second := step(far+token, "")
	if w.do("GET", "/storage/v1/b/far/o/a", nil).StatusCode != 404 {
		t.Error("there is an object before the last step")
	}
	last := step(far+second["rewriteToken"].(string)+limit, `{"contentType":"text/x"}`)
	made, _ := last["resource"].(map[string]any)
	if last["done"] != true || last["rewriteToken"] != nil || last["totalBytesRewritten"] != "2621440" || made["contentType"] != "text/x" {
		t.Errorf("last step: %v", last)
	}
	if a := w.do("GET", "/storage/v1/b/far/o/a?alt=media", nil); a.body != content {
		t.Errorf("the copy has %d bytes", len(a.body))
	}
	if one := step("/storage/v1/b/bkt/o/a/rewriteTo/b/bkt/o/b?"+limit[1:], ""); one["done"] != true {
		t.Errorf("a rewrite inside a location and class: %v", one)
	}
	if class := step("/storage/v1/b/bkt/o/a/rewriteTo/b/bkt/o/b?"+limit[1:], `{"storageClass":"NEARLINE"}`); class["done"] != false {
		t.Errorf("a rewrite to another class: %v", class)
	}
}
