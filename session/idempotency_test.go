package session_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
)

// TestWithIntention checks which requests have an idempotency token, that a repeated
// request has the same one, and that another request has another one.
func TestWithIntention(t *testing.T) {
	var token string
	client := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if len(r.Header.Values("X-Goog-Gcs-Idempotency-Token")) > 1 {
			t.Errorf("%s %s has %d tokens", r.Method, r.URL, len(r.Header.Values("X-Goog-Gcs-Idempotency-Token")))
		}
		token = r.Header.Get("X-Goog-Gcs-Idempotency-Token")
		return wiretest.Response(404, http.Header{}, ""), nil
	})}, session.DefaultEndpoint)
	spec, other := session.Spec{Bucket: "bucket", Object: "object"}, session.Spec{Bucket: "bucket", Object: "other"}
	guarded, described, encrypted := spec, spec, spec
	guarded.IfGenerationMatch, described.CacheControl = new(int64), "no-store"
	key, err := session.NewEncryptionKey(make([]byte, 32))
	require.NoError(t, err)
	encrypted.EncryptionKey = key
	uri := freshURI(t)
	another := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
		return wiretest.Response(200, http.Header{"Location": {session.DefaultEndpoint + secrettest.Path + "-2"}}, ""), nil
	})}, session.DefaultEndpoint).Start(t.Context(), session.Spec{Bucket: "bucket", Object: "object"}, -1).URI
	rng := func(from, to int64) chunk.Range { return chunk.Range{From: from, To: to} }
	body := func(n int) *strings.Reader { return strings.NewReader(strings.Repeat("x", n)) }
	parts := []bucket.Component{{Name: "a", Generation: 1}, {Name: "b", Generation: 2}}
	ctx := t.Context()

	type request struct {
		name string
		make func(*session.Client)
	}
	changes := []request{
		{"start", func(c *session.Client) { c.Start(ctx, spec, 1) }},
		{"start of another size", func(c *session.Client) { c.Start(ctx, spec, 2) }},
		{"start of another object", func(c *session.Client) { c.Start(ctx, other, 1) }},
		{"start with other metadata", func(c *session.Client) { c.Start(ctx, described, 1) }},
		{"put", func(c *session.Client) { c.Put(ctx, uri, rng(0, q), -1, body(q)) }},
		{"put of the next bytes", func(c *session.Client) { c.Put(ctx, uri, rng(q, 2*q), -1, body(q)) }},
		{"put with a total", func(c *session.Client) { c.Put(ctx, uri, rng(0, q), 3*q, body(q)) }},
		{"put to another session", func(c *session.Client) { c.Put(ctx, another, rng(0, q), -1, body(q)) }},
		{"finalize", func(c *session.Client) { c.Finalize(ctx, uri, rng(0, 5), 5, 1, body(5)) }},
		{"finalize with another checksum", func(c *session.Client) { c.Finalize(ctx, uri, rng(0, 5), 5, 2, body(5)) }},
		{"finalize without data", func(c *session.Client) { c.Finalize(ctx, uri, rng(5, 5), 5, 1, nil) }},
		{"cancel", func(c *session.Client) { c.Cancel(ctx, uri) }},
		{"insert", func(c *session.Client) { c.Insert(ctx, spec, 5, 1, body(5)) }},
		{"insert of another size", func(c *session.Client) { c.Insert(ctx, spec, 6, 1, body(6)) }},
		{"insert of other bytes", func(c *session.Client) { c.Insert(ctx, spec, 5, 2, body(5)) }},
		{"insert with a precondition", func(c *session.Client) { c.Insert(ctx, guarded, 5, 1, body(5)) }},
		{"insert with other metadata", func(c *session.Client) { c.Insert(ctx, described, 5, 1, body(5)) }},
		{"insert with a key", func(c *session.Client) { c.Insert(ctx, encrypted, 5, 1, body(5)) }},
		{"compose", func(c *session.Client) { bucket.Compose(ctx, c, spec, parts, 1, false) }},
		{"compose of other objects", func(c *session.Client) { bucket.Compose(ctx, c, spec, parts[:1], 1, false) }},
		{"compose that deletes", func(c *session.Client) { bucket.Compose(ctx, c, spec, parts, 1, true) }},
		{"delete", func(c *session.Client) { bucket.Delete(ctx, c, spec) }},
		{"delete of a generation", func(c *session.Client) { bucket.DeleteGeneration(ctx, c, spec, 1) }},
		{"delete of another generation", func(c *session.Client) { bucket.DeleteGeneration(ctx, c, spec, 2) }},
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]string{}
	for _, id := range []string{"first", "second"} {
		for _, change := range changes {
			change.make(client.WithIntention(id))
			first := token
			change.make(client.WithIntention(id))
			if !uuid.MatchString(first) || token != first {
				t.Errorf("%s: the token is %q, and %q when it is repeated", change.name, first, token)
			}
			if same, ok := seen[first]; ok {
				t.Errorf("%s has the token of: %s", change.name, same)
			}
			seen[first] = change.name + " of " + id
		}
	}
	for _, change := range changes {
		if change.make(client); token != "" {
			t.Errorf("%s: the token is %q without an intention", change.name, token)
		}
	}
	for _, read := range []request{
		{"query", func(c *session.Client) { c.Query(ctx, uri) }},
		{"stat", func(c *session.Client) { c.Stat(ctx, spec) }},
		{"read", func(c *session.Client) { bucket.Read(ctx, c, spec, 0) }},
		{"get", func(c *session.Client) { bucket.ReadConfig(ctx, c, "bucket", "") }},
		{"start of a multipart upload", func(c *session.Client) { multipart.Start(ctx, c, spec) }},
	} {
		if read.make(client.WithIntention("first")); token != "" {
			t.Errorf("%s has the token %q", read.name, token)
		}
	}
}
