package fakegcs_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// Contexts are set, changed and removed one by one, and the server sets their times.
func TestContexts(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("o", "x")
	patch := func(custom string) map[string]map[string]string {
		var o struct {
			Contexts struct{ Custom map[string]map[string]string }
		}
		require.NoError(t, json.Unmarshal([]byte(w.do("PATCH", "/storage/v1/b/bkt/o/o", []byte(`{"contexts":{"custom":`+custom+`}}`)).body), &o))
		return o.Contexts.Custom
	}
	first := patch(`{"a":{"value":"1"},"b":{"value":"2"}}`)
	w.gcs.Advance(time.Second)
	got := patch(`{"a":{"value":"3"},"b":null}`)
	if a, was := got["a"], first["a"]; len(first) != 2 || was["value"] != "1" || was["createTime"] == "" || was["updateTime"] != was["createTime"] ||
		len(got) != 1 || a["value"] != "3" || a["createTime"] != was["createTime"] || a["updateTime"] <= was["updateTime"] {
		t.Errorf("contexts = %v after %v", got, first)
	}
}

func TestListByContext(t *testing.T) {
	w := newWorld(t, nil)
	for name, contexts := range map[string]string{"p/1": `{"a":{"value":"x"},"b":{"value":"y"}}`, "p/2": `{"a":{"value":"z"}}`, "p/3": `{}`, "q/é": `{"é":{"value":"ü"}}`} {
		w.insert(name, "x")
		w.want(200, "", "PATCH", "/storage/v1/b/bkt/o/"+escape(name), []byte(`{"contexts":{"custom":`+contexts+`}}`))
	}
	for _, test := range []struct{ filter, query, want string }{
		{`contexts."a"="x"`, "", "p/1"},
		{`-contexts."a"="x"`, "", "p/2 p/3 q/é"},
		{`contexts."a":*`, "", "p/1 p/2"},
		{`-contexts."a":*`, "", "p/3 q/é"},
		{`contexts."é"="ü"`, "", "q/é"},
		{`contexts."a"=""`, "", ""},
		{`contexts."a":*`, "&maxResults=1", "p/1 +"},
		{`contexts."nothing":*`, "&delimiter=/", "[p/] [q/]"}, // prefixes are exempt
	} {
		page := w.do("GET", "/storage/v1/b/bkt/o?filter="+escape(test.filter)+test.query, nil).json(t)
		var got []string
		for _, p := range asList(page["prefixes"]) {
			got = append(got, "["+p.(string)+"]")
		}
		for _, item := range asList(page["items"]) {
			got = append(got, item.(map[string]any)["name"].(string))
		}
		if page["nextPageToken"] != nil {
			got = append(got, "+")
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s%s lists %s, want %s", test.filter, test.query, got, test.want)
		}
	}
}

// A composed object has the contexts of its sources, unless the request gives others.
func TestComposedContexts(t *testing.T) {
	w := newWorld(t, nil)
	for name, contexts := range map[string]string{"1": `{"a":{"value":"x"},"b":{"value":"y"}}`, "2": `{"c":{"value":"z"}}`, "3": `{}`} {
		w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name="+name, data(5))
		w.want(200, "", "PATCH", "/storage/v1/b/bkt/o/"+name, []byte(`{"contexts":{"custom":`+contexts+`}}`))
	}
	for _, test := range []struct{ sources, destination, want string }{
		{`{"name":"1"},{"name":"2"},{"name":"3"}`, `{}`, "a=x b=y c=z"},
		{`{"name":"1"},{"name":"2"}`, `{"contexts":{"custom":{"d":{"value":"w"}}}}`, "d=w"},
		{`{"name":"3"}`, `{}`, ""},
	} {
		a := w.do("POST", "/storage/v1/b/bkt/o/made/compose", []byte(`{"sourceObjects":[`+test.sources+`],"destination":`+test.destination+`}`))
		var made struct {
			Contexts struct {
				Custom map[string]struct{ Value string }
			}
		}
		if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		var got []string
		for _, key := range slices.Sorted(maps.Keys(made.Contexts.Custom)) {
			got = append(got, key+"="+made.Contexts.Custom[key].Value)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s with %s has the contexts %s, want %s", test.sources, test.destination, got, test.want)
		}
	}
}
