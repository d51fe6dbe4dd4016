package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// newBucket returns gs://live on a new emulator.
func newBucket(t *testing.T, faults ...faults.Fault) *bucket {
	t.Helper()
	srv := fakegcs.NewServer(t, &fakegcs.Options{Faults: faults})
	b := &bucket{fakegcstest.Target{URL: srv.URL, Bucket: "live", Prefix: "run/", Client: srv.Client()}}
	post(t, srv.URL+"/storage/v1/b?project=p", "application/json", `{"name":"live","versioning":{"enabled":true}}`)
	return b
}

func post(t *testing.T, url, contentType, body string) {
	t.Helper()
	resp, err := http.Post(url, contentType, strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s", url, resp.Status)
	}
}

func (b *bucket) upload(t *testing.T, name, content string) {
	t.Helper()
	post(t, b.URL+"/upload/storage/v1/b/live/o?uploadType=media&name="+name, "text/plain", content)
}

// names returns the objects of the bucket with their number of generations.
func (b *bucket) names(t *testing.T) string {
	t.Helper()
	_, body, err := b.do(t.Context(), http.MethodGet, "/o?versions=true", "")
	require.NoError(t, err)
	var list struct{ Items []fakegcs.Object }
	require.NoError(t, json.Unmarshal(body, &list))
	var names []string
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	return strings.Join(names, " ")
}

func TestEmpty(t *testing.T) {
	b := newBucket(t)
	b.upload(t, "run/twice", "1")
	b.upload(t, "run/twice", "2")
	b.upload(t, "run/held", "3")
	b.upload(t, "run%252F%23%3F", "4") // odd characters in the name, not below the prefix
	b.upload(t, "run/%23%3Fü", "5")
	b.upload(t, "other", "6")
	if status, body, err := b.do(t.Context(), http.MethodPatch, "/o/run%2Fheld", `{"temporaryHold":true}`); err != nil || status != http.StatusOK {
		t.Fatalf("hold: %d %s, %v", status, body, err)
	}
	var out bytes.Buffer
	r := &report{w: &out}
	b.empty(t.Context(), r)
	if got, want := b.names(t), "other run%2F#?"; got != want {
		t.Errorf("left are %q, want %q", got, want)
	}
	if out.Len() > 0 || r.notDeleted != 0 {
		t.Errorf("%d not deleted:\n%s", r.notDeleted, &out)
	}
}

func TestEmptyTellsWhatStays(t *testing.T) {
	b := newBucket(t, faults.Fault{
		Match: faults.Match{Op: faults.OpDelete, Object: "run/b"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Message: "no right to"},
	})
	for _, name := range []string{"run/a", "run/b", "run/c"} {
		b.upload(t, name, name)
	}
	var out bytes.Buffer
	r := &report{w: &out}
	b.empty(t.Context(), r)
	if got := b.names(t); got != "run/b" {
		t.Errorf("left are %q, want run/b", got)
	}
	if !regexp.MustCompile(`^NOT DELETED gs://live/run/b#\d+: status 403: (?s:.*)no right to`).MatchString(out.String()) || r.notDeleted != 1 {
		t.Errorf("%d not deleted:\n%s", r.notDeleted, &out)
	}
}

func TestDescribe(t *testing.T) {
	b := newBucket(t)
	if about, err := b.describe(t.Context()); err != nil || !strings.Contains(about, "versioning true") {
		t.Errorf("describe = %q, %v", about, err)
	}
	b.Bucket = "absent"
	if _, err := b.describe(t.Context()); err == nil || !strings.Contains(err.Error(), "gs://absent: status 404") {
		t.Errorf("missing bucket: %v", err)
	}
	post(t, b.URL+"/storage/v1/b?project=p", "application/json", `{"name":"locked","retentionPolicy":{"retentionPeriod":"60"}}`)
	b.Bucket = "locked"
	if _, err := b.describe(t.Context()); err == nil || !strings.Contains(err.Error(), "retention policy") {
		t.Errorf("a bucket with a retention policy: %v", err)
	}
}

// TestNoProject checks that without a project the cases that need one are
// counted as not checked.
func TestNoProject(t *testing.T) {
	b := newBucket(t)
	need := 0
	var names []string
	for _, c := range fakegcstest.Cases() {
		if c.Bucket != "" {
			need++
			names = append(names, regexp.QuoteMeta(c.Name))
		}
	}
	names = append(names, "media")
	var out bytes.Buffer
	r := &report{w: &out}
	c := &config{only: regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")}
	require.NoError(t, check(t.Context(), c, b.Target, r))
	if need == 0 || r.notChecked != need || r.held != 1 || r.differs != 0 || strings.Count(out.String(), "NOT CHECKED ") != need {
		t.Errorf("%d of %d not checked, %d held, %d differ:\n%s", r.notChecked, need, r.held, r.differs, &out)
	}
}

// TestNothingToCheck checks that a run in which no case matches is an error.
func TestNothingToCheck(t *testing.T) {
	b := newBucket(t)
	err := check(t.Context(), &config{only: regexp.MustCompile("^mdeia$")}, b.Target, &report{w: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "nothing has such a name") {
		t.Errorf("check = %v", err)
	}
}

func TestReport(t *testing.T) {
	lines := []line{
		{Type: held, Name: "a", Fact: "It is so."},
		{Type: differs, Name: "b", Fact: "It is so.", Seen: "status is 200, want 201\nno <body>", Source: "https://example.com"},
		{Type: notChecked, Name: "c", Fact: "It is so.", Seen: "no project", Do: "give one"},
		{Type: notDeleted, Name: "gs://b/o#1", Seen: "status 403", Do: "delete it"},
	}
	for _, tt := range []struct {
		json bool
		want string
	}{
		{false, `ok          a: It is so.
DIFFERS     b
    expected: It is so.
    seen:     status is 200, want 201
              no <body>
    source:   https://example.com
NOT CHECKED c: no project: give one
NOT DELETED gs://b/o#1: status 403: delete it
note        n 1
1 differences, 1 held, 1 not checked, 1 not deleted
`},
		{true, `{"type":"ok","name":"a","fact":"It is so."}
{"type":"differs","name":"b","fact":"It is so.","seen":"status is 200, want 201\nno <body>","source":"https://example.com"}
{"type":"not_checked","name":"c","fact":"It is so.","seen":"no project","do":"give one"}
{"type":"not_deleted","name":"gs://b/o#1","seen":"status 403","do":"delete it"}
{"type":"note","seen":"n 1"}
{"type":"summary","counts":{"differs":1,"held":1,"not_checked":1,"not_deleted":1}}
`},
	} {
		var out bytes.Buffer
		r := &report{w: &out, json: tt.json}
		for _, l := range lines {
			r.add(l)
		}
		r.note("n %d", 1)
		r.summary()
		if out.String() != tt.want || r.err != nil {
			t.Errorf("json %t: %v\n%s\nwant\n%s", tt.json, r.err, &out, tt.want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"gs://b", ""},
		{"-size 16777216 -max-size 16777216 -run ^a -project p -json gs://b/", ""},
		{"", "want one bucket"},
		{"b", "want one bucket"},
		{"gs://", "want one bucket"},
		{"gs://b/o", "want one bucket"},
		{"gs://b gs://c", "want one bucket"},
		{"gs://b -json", "after the flags"},
		{"-size 16777215 gs://b", "want at least 16777216"},
		{"-max-size 67108863 gs://b", "want at least -size, 67108864"},
		{"-run ( gs://b", "missing closing"},
	} {
		var stderr bytes.Buffer
		c, err := parse(strings.Fields(tt.args), &stderr)
		if tt.want == "" {
			if err != nil || c.bucket != "b" {
				t.Errorf("%s: %+v, %v", tt.args, c, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// TestTarget checks that the environment selects an emulator or the service.
func TestTarget(t *testing.T) {
	for _, host := range []string{"127.0.0.1:9", "http://127.0.0.1:9", "http://127.0.0.1:9/"} {
		t.Setenv("STORAGE_EMULATOR_HOST", host)
		target, err := newTarget(context.Background(), &config{bucket: "b"})
		if err != nil || target.URL != "http://127.0.0.1:9" || target.Project != "test" || target.Bucket != "b" || target.Prefix == "" {
			t.Errorf("%s: %+v, %v", host, target, err)
		}
	}
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	key := t.TempDir() + "/key.json"
	require.NoError(t, writeKey(key, "of-the-credentials"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", key)
	t.Setenv("GOOGLE_CLOUD_PROJECT", "of-the-environment")
	for _, tt := range []struct{ flag, want string }{{"", "of-the-credentials"}, {"given", "given"}} {
		target, err := newTarget(context.Background(), &config{bucket: "b", project: tt.flag})
		if err != nil || target.Project != tt.want || target.URL != "https://storage.googleapis.com" {
			t.Errorf("-project %q: %+v, %v; want project %s", tt.flag, target, err, tt.want)
		}
	}
	require.NoError(t, writeKey(key, ""))
	if target, err := newTarget(context.Background(), &config{bucket: "b"}); err != nil || target.Project != "of-the-environment" {
		t.Errorf("credentials without a project: %+v, %v", target, err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", key+"x")
	if _, err := newTarget(context.Background(), &config{bucket: "b"}); err == nil || !strings.Contains(err.Error(), "gcloud auth application-default login") {
		t.Errorf("no credentials: %v", err)
	}
}

func writeKey(path, project string) error {
	data := fmt.Sprintf(`{"type":"service_account","project_id":%q,"client_email":"a@example.com","private_key_id":"1","private_key":"none","token_uri":"http://127.0.0.1:9/"}`, project)
	return os.WriteFile(path, []byte(data), 0o600)
}
