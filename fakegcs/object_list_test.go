package fakegcs_test

import (
	"strings"
	"testing"
)

// TestListing checks listings beside those of the cases "list" of package fakegcstest.
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
		{"delimiter=/&prefix=a/", "[a/b/] a/1 a/2"},
		{"maxResults=1&delimiter=/", "a | [a/] | [b/] | c | ü"},
		{"maxResults=2&delimiter=/", "[a/] a | [b/] c | ü"},
	} {
		if got := list(test.query); got != test.want {
			t.Errorf("list %s = %s, want %s", test.query, got, test.want)
		}
	}
	if got := w.do("GET", "/storage/v1/b/bkt/o?fields=items(name,size),kind&prefix=c", nil); !strings.Contains(got.body, `"name": "c"`) || strings.Contains(got.body, "generation") {
		t.Errorf("fields: %s", got.body)
	}
	for _, fields := range []string{"items(name", "name", "items/nonsense", "items(name,nonsense)", "kind,items/name,nonsense"} {
		w.want(400, "Invalid field selection", "GET", "/storage/v1/b/bkt/o?fields="+fields, nil)
	}
	for _, fields := range []string{"*", "items/*", "items(*)", "items/metadata/anything"} {
		w.want(200, "", "GET", "/storage/v1/b/bkt/o?fields="+fields, nil)
	}
	w.want(200, "!size", "POST", "/storage/v1/b/bkt/o/c/rewriteTo/b/bkt/o/d?fields=done,resource(name)", nil)
	if got := w.do("GET", "/bkt?delimiter=/&max-keys=2", nil); !strings.Contains(got.body, "<CommonPrefixes><Prefix>a/</Prefix>") || !strings.Contains(got.body, "<IsTruncated>true") {
		t.Errorf("XML: %s", got.body)
	}
}
