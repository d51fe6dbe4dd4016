package fakegcs_test

import (
	"fmt"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// The index page shows the state of the server, escaped, and no session URI.
func TestIndexPage(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpList}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}}})
	for i := range 102 {
		if _, err := w.gcs.PutObject(fakegcs.Object{Bucket: "bkt", Name: fmt.Sprintf("<b>%03d", i)}, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	uri := w.start("upload")
	w.chunk(308, uri, 0, q, "*")
	a := w.do("GET", "/_fakegcs/", nil)
	if a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %s", a.StatusCode, a.Header)
	}
	for _, want := range []string{
		"gs://bkt", "102 objects, 102 bytes", "&lt;b&gt;000", "and 2 more", "gs://bkt/upload", fmt.Sprint("<td>", q), "unknown", "upload_id=REDACTED", "{&#34;op&#34;:&#34;list&#34;}",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	_, id, _ := strings.Cut(uri, "upload_id=")
	for _, secret := range []string{"<b>0", id} {
		if strings.Contains(a.body, secret) {
			t.Errorf("the page has %q", secret)
		}
	}
}
