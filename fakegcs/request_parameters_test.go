package fakegcs_test

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"gcsup/fakegcs"
)

// A parameter that the service has and the emulator does not implement is refused, unless it
// is a false boolean. An unknown one is ignored, and logged once without its value.
func TestParametersAreNotIgnoredInSilence(t *testing.T) {
	var log text
	w := newWorld(t, &fakegcs.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w.insert("a", "hello")
	for _, test := range []struct{ method, target, name string }{
		{"POST", "/storage/v1/b/bkt/o/a/restore?generation=1&copySourceAcl=true", "copySourceAcl"},
		{"GET", "/storage/v1/b/bkt/o/a?restoreToken=x", "restoreToken"},
		{"GET", "/storage/v1/b/bkt?softDeleted=True&generation=0", "softDeleted"},
		{"GET", "/storage/v1/b?project=p&softDeleted=true", "softDeleted"},
	} {
		w.want(400, "does not implement the parameter '"+test.name+"'", test.method, test.target, nil)
	}
	for _, target := range []string{"/storage/v1/b/bkt?softDeleted=false", "/storage/v1/b/bkt/o?includeFoldersAsPrefixes=true&prettyPrint=false&alt=json", "/storage/v1/b/bkt/iam?optionsRequestedPolicyVersion=3"} {
		w.want(200, "", "GET", target, nil)
	}
	if strings.Contains(log.String(), "unknown") {
		t.Errorf("the log has %s", log.String())
	}
	for range 2 {
		w.do("GET", "/storage/v1/b/bkt/o?flavor=secret", nil)
	}
	if got := log.String(); strings.Count(got, "parameter=flavor") != 1 || strings.Contains(got, "secret") {
		t.Errorf("the log has %s", got)
	}
}

// Google's Python client sends booleans as True.
func TestBooleansInPython(t *testing.T) {
	w := newWorld(t, nil)
	w.createBucket(fakegcs.Bucket{Name: "old", Versioning: true})
	for range 2 {
		w.do("POST", "/upload/storage/v1/b/old/o?uploadType=media&name=a", []byte("x"))
	}
	for value, want := range map[string]int{"True": 2, "true": 2, "1": 2, "False": 1, "": 1} {
		if got := asList(w.do("GET", "/storage/v1/b/old/o?versions="+value, nil).json(t)["items"]); len(got) != want {
			t.Errorf("versions=%s lists %d objects, want %d", value, len(got), want)
		}
	}
}

func TestEnableObjectRetention(t *testing.T) {
	w := newWorld(t, nil)
	for query, want := range map[string]string{"": "null", "&enableObjectRetention=True": `{"mode":"Enabled"}`} {
		bucket := w.do("POST", "/storage/v1/b?project=p"+query, []byte(` {"name":"kept-`+strconv.Itoa(len(query))+`"}`)).json(t)
		if got, err := json.Marshal(bucket["objectRetention"]); err != nil || string(got) != want {
			t.Errorf("%s: objectRetention is %s, want %s", query, got, want)
		}
	}
	w.want(400, "", "PATCH", "/storage/v1/b/bkt", []byte(`{"objectRetention":{"mode":"Sometimes"}}`))
}
