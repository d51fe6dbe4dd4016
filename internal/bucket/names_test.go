package bucket_test

import (
	"net/url"
	"slices"
	"testing"

	"gcsup/internal/bucket"
)

func TestNames(t *testing.T) {
	var u url.URL
	names, r := bucket.Names(t.Context(), listing(t, 200, `{"items": [{"name": "a1"}, {"name": "a2"}]}`, &u), "p", "a")
	if r.Status != 200 || r.Err != nil || !slices.Equal(names, []string{"a1", "a2"}) {
		t.Errorf("%q, reply %+v", names, r)
	}
	if want := "/storage/v1/b?fields=items%28name%29&maxResults=1000&prefix=a&project=p"; u.RequestURI() != want {
		t.Errorf("requested %s, want %s", u.RequestURI(), want)
	}
	if names, r := bucket.Names(t.Context(), listing(t, 403, `{"error": {"code": 403}}`, nil), "p", ""); len(names) > 0 || r.Status != 403 {
		t.Errorf("%q, reply %+v", names, r)
	}
}

func TestListDelimiter(t *testing.T) {
	var u url.URL
	page, r := bucket.List(t.Context(), listing(t, 200, `{"prefixes": ["a/b/", "a/c/"], "items": [{"name": "a/d", "size": "1"}]}`, &u), bucket.Query{Bucket: "bkt", Prefix: "a/", Delimiter: "/"})
	if r.Err != nil || page == nil || !slices.Equal(page.Prefixes, []string{"a/b/", "a/c/"}) || len(page.Objects) != 1 {
		t.Fatalf("page %+v, reply %+v", page, r)
	}
	if got := u.Query().Get("delimiter"); got != "/" {
		t.Errorf("delimiter %q", got)
	}
	if got := u.Query().Get("fields"); got[len(got)-len(",prefixes"):] != ",prefixes" {
		t.Errorf("fields %s", got)
	}
}
