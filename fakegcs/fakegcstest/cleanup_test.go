package fakegcstest_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
	"gcsup/internal/require"
)

const (
	insertPath = "/upload/storage/v1/b/{bucket}/o?uploadType=media&name={object}"
	objectPath = "/storage/v1/b/{bucket}/o/{object}"
)

func put(suffix string) fakegcstest.Step {
	return fakegcstest.Step{Method: "POST", Path: insertPath + suffix, To: 3, Status: 200}
}

// serveGCS returns a server with the bucket "bkt", behind a handler that may change its
// behavior.
func serveGCS(t *testing.T, alter func(gcs http.Handler) http.Handler) (*fakegcs.Server, fakegcstest.Target) {
	t.Helper()
	gcs, err := fakegcs.New(nil)
	require.NoError(t, err)
	require.NoError(t, gcs.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
	var handler http.Handler = gcs
	if alter != nil {
		handler = alter(gcs)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		gcs.Close()
		srv.Close()
	})
	return gcs, fakegcstest.Target{URL: srv.URL, Bucket: "bkt", Prefix: "some where/", Project: "any"}
}

// hold returns steps that make {object} and set a hold on it.
func hold(kind string) []fakegcstest.Step {
	return []fakegcstest.Step{put(""), {Method: "PATCH", Path: objectPath, Body: `{"` + kind + `":true}`, Status: 200}}
}

// A case deletes everything that it made, even if it fails.
func TestNothingStays(t *testing.T) {
	for name, c := range map[string]fakegcstest.Case{
		"objects":        {Steps: []fakegcstest.Step{put(""), put("-a"), put("/b/"), put("/../c%20%23")}},
		"temporary hold": {Steps: hold("temporaryHold")},
		"event hold":     {Steps: hold("eventBasedHold")},
		"generations":    {Bucket: `{"versioning":{"enabled":true}}`, Steps: []fakegcstest.Step{put(""), put(""), put("-a"), {Method: "DELETE", Path: objectPath, Status: 204}}},
		"retention":      {Bucket: `{"retentionPolicy":{"retentionPeriod":"3600"}}`, Steps: []fakegcstest.Step{put("")}},
		"default hold":   {Bucket: `{"defaultEventBasedHold":true}`, Steps: []fakegcstest.Step{put("")}},
		"soft delete":    {Bucket: `{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`, Steps: []fakegcstest.Step{put(""), put("")}},
		"multipart":      {Steps: []fakegcstest.Step{{Method: "POST", Path: "/{bucket}/{object}?uploads", Status: 200}, {Method: "POST", Path: "/{bucket}/{object}-a?uploads", Status: 200}}},
		"sessions": {Steps: []fakegcstest.Step{
			{Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={object}", Status: 200},
			{Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={object}-a", Status: 200},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Name, c.None = name, true
			// The last step fails, so that the case ends in the middle.
			c.Steps = append(c.Steps, fakegcstest.Step{Method: "GET", Path: "/storage/v1/b/{bucket}", Status: 999})
			var sessions []string
			gcs, target := serveGCS(t, func(gcs http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					gcs.ServeHTTP(w, r)
					if location := w.Header().Get("Location"); location != "" {
						sessions = append(sessions, location)
					}
				})
			})
			err := c.Check(t.Context(), target)
			if err == nil || strings.Contains(err.Error(), "clean up") || !strings.Contains(err.Error(), "999") {
				t.Fatalf("Check = %v, want the difference and nothing else", err)
			}
			for _, path := range []string{"/storage/v1/b/bkt/o?versions=true", "/storage/v1/b?prefix=bkt-", "/bkt?uploads"} {
				rec := httptest.NewRecorder()
				gcs.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
				for _, left := range []string{`"items"`, "<Upload>"} {
					if strings.Contains(rec.Body.String(), left) {
						t.Errorf("%s: %s", path, rec.Body)
					}
				}
			}
			for _, uri := range sessions {
				r := httptest.NewRequest("PUT", uri, nil)
				r.Header.Set("Content-Range", "bytes */*")
				rec := httptest.NewRecorder()
				if gcs.ServeHTTP(rec, r); rec.Code != 499 {
					t.Errorf("the session: %d", rec.Code)
				}
			}
		})
	}
}

// Check reports resources that it could not delete.
func TestCleanUpErrors(t *testing.T) {
	for name, method := range map[string]string{"patch": "PATCH", "delete": "DELETE", "list": "GET"} {
		t.Run(name, func(t *testing.T) {
			_, target := serveGCS(t, func(gcs http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == method && r.URL.Query().Get("alt") == "" {
						http.Error(w, "no", http.StatusForbidden)
						return
					}
					gcs.ServeHTTP(w, r)
				})
			})
			target.Patience = time.Nanosecond
			c := fakegcstest.Case{Name: "x", Bucket: `{"defaultEventBasedHold":true}`, Steps: []fakegcstest.Step{put("")}, Size: 3}
			if err := c.Check(t.Context(), target); err == nil || !strings.Contains(err.Error(), "clean up: "+method[:3]) && !strings.Contains(strings.ToLower(err.Error()), "clean up: "+name) {
				t.Errorf("Check = %v", err)
			}
		})
	}
}

// A case that needs a bucket of its own makes no request without a project.
func TestNoProject(t *testing.T) {
	target := fakegcstest.Target{URL: "http://192.0.2.1", Bucket: "bkt"}
	for _, c := range []fakegcstest.Case{
		{Name: "bucket", Bucket: `{}`},
		{Name: "path", Steps: []fakegcstest.Step{{Path: "/storage/v1/b?project={project}"}}},
		{Name: "header", Steps: []fakegcstest.Step{{Header: []string{"x-goog-user-project: {project}"}}}},
	} {
		if err := c.Check(t.Context(), target); !errors.Is(err, fakegcstest.ErrNotChecked) {
			t.Errorf("%s: Check = %v", c.Name, err)
		}
	}
}

// If the server lets the client create no bucket, the case is not checked. That is no
// difference.
func TestNoBucket(t *testing.T) {
	_, target := serveGCS(t, func(gcs http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" && r.URL.Path == "/storage/v1/b" {
				http.Error(w, "may not", http.StatusForbidden)
				return
			}
			gcs.ServeHTTP(w, r)
		})
	})
	err := fakegcstest.Case{Name: "x", Bucket: `{}`}.Check(t.Context(), target)
	if !errors.Is(err, fakegcstest.ErrNotChecked) || !strings.Contains(err.Error(), "may not") || strings.Contains(err.Error(), "clean up") {
		t.Errorf("Check = %v", err)
	}
}

// The bucket of a case has a new and valid name.
func TestBucketName(t *testing.T) {
	for _, like := range []string{"abc", "a.domain.example.com", strings.Repeat("a1", 40)} {
		gcs, target := serveGCS(t, nil)
		target.Bucket = like
		require.NoError(t, gcs.CreateBucket(fakegcs.Bucket{Name: like}))
		c := fakegcstest.Case{Name: "x", Bucket: `{"storageClass":"NEARLINE"}`, None: true, Steps: []fakegcstest.Step{{
			Method: "GET", Path: "/storage/v1/b/{bucket}", Status: 200,
			Match: []string{`"name": "[a-z0-9-]{5,63}"`, `"storageClass": "NEARLINE"`, `"retentionDurationSeconds": "0"`, `!"name": "` + like + `"`},
		}}}
		if err := c.Check(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
}

// direct calls a handler without a network.
type direct http.HandlerFunc

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	d(rec, r)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// A step that gets 429 is repeated until the patience ends, unless 429 is expected.
func TestRateLimit(t *testing.T) {
	for _, test := range []struct {
		name     string
		refusals int
		status   int
		patience time.Duration
		ok       bool
		least    time.Duration
	}{
		{"once", 1, 200, 5 * time.Second, true, time.Second},
		{"often", 4, 200, time.Minute, true, 15 * time.Second},
		{"always", 100, 200, 30 * time.Second, false, 15 * time.Second},
		{"expected", 1, 429, 5 * time.Second, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gcs, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
				require.NoError(t, err)
				defer gcs.Close()
				left := test.refusals
				handler := func(w http.ResponseWriter, r *http.Request) {
					if left--; r.Method == "POST" && left >= 0 {
						http.Error(w, "slow down", http.StatusTooManyRequests)
						return
					}
					gcs.ServeHTTP(w, r)
				}
				target := fakegcstest.Target{URL: "http://x", Bucket: "bkt", Client: &http.Client{Transport: direct(handler)}, Patience: test.patience}
				step := put("-a")
				step.Status = test.status
				start := time.Now()
				err = fakegcstest.Case{Name: "x", None: true, Steps: []fakegcstest.Step{step}}.Check(t.Context(), target)
				if (err == nil) != test.ok {
					t.Errorf("Check = %v", err)
				}
				if took := time.Since(start); took < test.least || took > test.patience {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Values are saved from headers and bodies, and replace their placeholders.
func TestSave(t *testing.T) {
	_, target := serveGCS(t, nil)
	step := put("")
	step.Save = []string{`gen="generation": "(\d+)"`, `type=(?i)Content-Type: (\S+);`}
	c := fakegcstest.Case{Name: "x y", Size: 3, Steps: []fakegcstest.Step{
		step,
		{Method: "GET", Path: objectPath + "?generation={gen}", Status: 200, Match: []string{`"generation": "{gen}"`, `"name": "{name}"`, `!"{type}"`}},
		{Method: "PATCH", Path: objectPath, Body: `{"metadata":{"t":"{type}"}}`, Status: 200, Match: []string{`"t": "application/json"`, `!"t": "{gen}"`}},
		{Method: "GET", Path: objectPath + "?ifGenerationMatch={gen}1", Status: 412},
	}}
	if err := c.Check(t.Context(), target); err != nil {
		t.Error(err)
	}
	c.Steps[2].Body = `{"metadata":{"t":"{tpye}"}}`
	if err := c.Check(t.Context(), target); err == nil || !strings.Contains(err.Error(), "no value for {tpye}") {
		t.Errorf("Check = %v", err)
	}
	c.Steps[0].Save = []string{`gen="no such field": "(\d+)"`}
	if err := c.Check(t.Context(), target); err == nil || !strings.Contains(err.Error(), "no gen in the reply") {
		t.Errorf("Check = %v", err)
	}
}

// An error names no session: any client with its URI can upload.
func TestErrorsKeepSecrets(t *testing.T) {
	_, target := serveGCS(t, func(gcs http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("upload_id") {
				panic(http.ErrAbortHandler)
			}
			gcs.ServeHTTP(w, r)
		})
	})
	c := fakegcstest.Case{Name: "x", None: true, Steps: []fakegcstest.Step{
		{Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={object}", Status: 200}, {To: 3, Status: 200},
	}}
	if err := c.Check(t.Context(), target); err == nil || strings.Contains(err.Error(), "upload_id") || !strings.Contains(err.Error(), "step 2, PUT {session}: EOF") {
		t.Errorf("Check = %v", err)
	}
}
