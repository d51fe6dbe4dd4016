package fakegcs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
)

// access returns rules as "entity: role", sorted.
func access(rules []storage.ACLRule) string {
	var out []string
	for _, r := range rules {
		out = append(out, fmt.Sprintf("%s: %s", r.Entity, r.Role))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestACL checks with the official client which ACL a new object has.
func TestACL(t *testing.T) {
	const owner = ", user-owner@example.com: OWNER"
	_, b := official(t, nil)
	for _, c := range []struct {
		predefined string
		rules      []storage.ACLRule
		want       string
	}{
		{"", nil, "project-editors-1: OWNER, project-owners-1: OWNER, project-viewers-1: READER" + owner},
		{"private", nil, owner[2:]},
		{"publicRead", nil, "allUsers: READER" + owner},
		{"bucketOwnerRead", nil, "project-owners-1: READER" + owner},
		{"", []storage.ACLRule{{Entity: "domain-example.com", Role: storage.RoleReader}, {Entity: "group-a@b.c", Role: storage.RoleOwner}}, "domain-example.com: READER, group-a@b.c: OWNER" + owner},
	} {
		for _, chunk := range []int{0, q} { // a single request, and a session
			w := b.Object("o").NewWriter(t.Context())
			w.ChunkSize, w.PredefinedACL, w.ACL = chunk, c.predefined, c.rules
			if _, err := w.Write(data(2 * q)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := b.Object("o").Attrs(t.Context())
			if err != nil || access(got.ACL) != c.want || access(w.Attrs().ACL) != c.want || got.Owner != "user-owner@example.com" {
				t.Errorf("%q %v: ACL %q, owner %q, %v, want %q", c.predefined, c.rules, access(got.ACL), got.Owner, err, c.want)
			}
		}
	}
}

// TestProjection checks that an ACL is shown only with projection=full.
func TestProjection(t *testing.T) {
	w := newWorld(t, nil)
	for query, shown := range map[string]bool{"": false, "&projection=noAcl": false, "&projection=full": true} {
		a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=o"+query, data(5)).json(t)
		if (a["acl"] != nil) != shown || (a["owner"] != nil) != shown {
			t.Errorf("%q: %v", query, a)
		}
	}
	if a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=o&projection=all", data(5)); a.StatusCode != 400 {
		t.Errorf("projection=all: %d", a.StatusCode)
	}
	if a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=o&predefinedAcl=public-read", nil); a.StatusCode != 400 {
		t.Errorf("predefinedAcl=public-read: %d", a.StatusCode)
	}
}

// TestUniformAccess checks that a bucket with uniform bucket-level access has no
// ACLs.
func TestUniformAccess(t *testing.T) {
	w := newWorld(t, nil)
	if a := w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}`)); a.StatusCode != 200 {
		t.Fatal(a.body)
	}
	if a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=o&projection=full", data(5)).json(t); a["acl"] != nil || a["owner"] != nil {
		t.Errorf("%v", a)
	}
	rule := []byte(`{"acl":[{"entity":"allUsers","role":"READER"}]}`)
	for what, a := range map[string]answer{
		"insert": w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=o&predefinedAcl=private", data(5)),
		"start":  w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=o", rule, "Content-Type: application/json"),
		"patch":  w.do("PATCH", "/storage/v1/b/bkt/o/o", rule),
	} {
		if a.StatusCode != 400 || !strings.Contains(a.body, "uniform bucket-level access") {
			t.Errorf("%s: %d %s", what, a.StatusCode, a.body)
		}
	}
}

// TestContexts checks with the official client that contexts are set, changed and
// removed one by one, and that the server sets their times.
func TestContexts(t *testing.T) {
	_, b := official(t, nil)
	o := b.Object("o")
	w := o.NewWriter(t.Context())
	w.Contexts = &storage.ObjectContexts{Custom: map[string]storage.ObjectCustomContextPayload{"a": {Value: "1"}, "b": {Value: "2"}}}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	first := w.Attrs().Contexts.Custom
	if len(first) != 2 || first["a"].Value != "1" || first["a"].CreateTime.IsZero() || first["a"].UpdateTime.IsZero() {
		t.Fatalf("contexts = %+v", first)
	}
	changed, err := o.Update(t.Context(), storage.ObjectAttrsToUpdate{Contexts: &storage.ObjectContexts{
		Custom: map[string]storage.ObjectCustomContextPayload{"a": {Value: "3"}, "b": {Delete: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := changed.Contexts.Custom
	if a := got["a"]; len(got) != 1 || a.Value != "3" || !a.CreateTime.Equal(first["a"].CreateTime) || a.UpdateTime.Before(a.CreateTime) {
		t.Errorf("contexts = %+v after %+v", got, first)
	}
}
