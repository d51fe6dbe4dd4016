package session_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"gcsup/session"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		bucket, object string
		ok             bool
	}{
		{"bucket", "object", true},
		{"b.example.com", "dir/ö \"x\"?#[]*.bin", true},
		{"b_1-2", strings.Repeat("x", 1024), true},
		{"bucket", strings.Repeat("ö", 512), true},
		{"bucket", "...", true},
		{"bucket", "a/../b", true},
		{"bucket", " ", true},
		{"bucket", strings.Repeat("x", 1025), false},
		{"bucket", strings.Repeat("ö", 512) + "x", false},
		{"bucket", "", false},
		{"bucket", ".", false},
		{"bucket", "..", false},
		{"bucket", "a\nb", false},
		{"bucket", "a\rb", false},
		{"bucket", "\xff", false},
		{"bucket", ".well-known/acme-challenge/x", false},
		{"", "object", false},
	} {
		err := session.Spec{Bucket: c.bucket, Object: c.object}.Validate()
		if c.ok && err != nil || !c.ok && !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%.30q/%.30q: %v, want ok = %v", c.bucket, c.object, err, c.ok)
		}
	}
}

// TestSpecConflictNamesEveryField changes each field of the wanted Spec in
// turn, including fields that are added later. A field that is not set is not a
// conflict.
func TestSpecConflictNamesEveryField(t *testing.T) {
	one, other := int64(1), int64(2)
	was := session.Spec{Metadata: map[string]string{"k": "v"}, IfGenerationMatch: &one, IfMetagenerationMatch: &one}
	again := was
	same := int64(1)
	again.Metadata, again.IfGenerationMatch = map[string]string{"k": "v"}, &same
	for _, want := range []session.Spec{{}, again, {NoClobber: true}, {DefaultContentType: "text/plain"}} {
		if got := was.Conflict(want); got != "" {
			t.Errorf("Conflict(%+v) = %q, want none", want, got)
		}
	}
	for i := range reflect.TypeFor[session.Spec]().NumField() {
		name := reflect.TypeFor[session.Spec]().Field(i).Name
		var want session.Spec
		switch v := reflect.ValueOf(&want).Elem().Field(i).Addr().Interface().(type) {
		case *string:
			*v = "x"
		case **int64:
			*v = &other
		case *map[string]string:
			*v = map[string]string{"k": "w"}
		case *bool:
			*v = true
		case *time.Time:
			*v = time.Unix(1, 0)
		case **session.Retention:
			*v = &session.Retention{Mode: session.RetentionLocked, RetainUntil: time.Unix(1, 0)}
		case *[]session.ACLRule:
			*v = []session.ACLRule{{Entity: session.AllUsers, Role: session.RoleReader}}
		case **session.ObjectContexts:
			*v = contexts("k", "v")
		case *[]byte:
			*v = make([]byte, 16)
		case **uint32:
			*v = new(uint32)
		case *session.EncryptionKey:
			*v = testKey(t, 'k')
		default:
			t.Fatalf("the test does not support fields of type %T", v)
		}
		expected := true
		switch name {
		case "Bucket", "Object", "NoClobber", "DefaultContentType":
			expected = false // part of the ID, or not a property of the object
		}
		text := strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(was.Conflict(want)))
		if field := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "If"), "Name")); expected && !strings.Contains(text, field) || !expected && text != "" {
			t.Errorf("another %s: Conflict = %q", name, was.Conflict(want))
		}
	}
}

// contexts returns contexts with one key.
func contexts(key, value string) *session.ObjectContexts {
	return &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{key: {Value: value}}}
}

// TestConflictComparesValues checks that equal values are no conflict even if their
// order or the fields that only the service sets differ.
func TestConflictComparesValues(t *testing.T) {
	crc := uint32(5)
	was := session.Spec{
		ACL:      []session.ACLRule{{Entity: "user-a@b.c", Role: session.RoleOwner}, {Entity: session.AllUsers, Role: session.RoleReader}},
		Contexts: contexts("k", "v"), MD5: bytes.Repeat([]byte{1}, 16), CRC32C: &crc, IfGenerationNotMatch: new(int64(5)),
	}
	again := crc
	same := session.Spec{
		ACL:      []session.ACLRule{{Entity: session.AllUsers, Role: session.RoleReader}, {Entity: "user-a@b.c", Email: "a@b.c", Role: session.RoleOwner}},
		Contexts: contexts("k", "v"), MD5: bytes.Repeat([]byte{1}, 16), CRC32C: &again, IfGenerationNotMatch: new(int64(5)),
	}
	if got := was.Conflict(same); got != "" {
		t.Errorf("Conflict = %q, want none", got)
	}
	for name, want := range map[string]session.Spec{
		"ACL":                  {ACL: was.ACL[:1]},
		"contexts":             {Contexts: contexts("k", "w")},
		"MD5":                  {MD5: bytes.Repeat([]byte{2}, 16)},
		"CRC32C":               {CRC32C: new(uint32(6))},
		"generation not match": {IfGenerationNotMatch: new(int64(0))},
	} {
		if got := was.Conflict(want); !strings.HasPrefix(got, name) {
			t.Errorf("Conflict = %q, want %s", got, name)
		}
	}
}

func TestUnmet(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	there := &session.Object{Generation: 5, Metageneration: 2}
	for _, c := range []struct {
		spec   session.Spec
		object *session.Object
		want   string // part of the message; "" if the preconditions are met
	}{
		{session.Spec{}, nil, ""},
		{session.Spec{}, there, ""},
		{session.Spec{IfGenerationMatch: n(0)}, nil, ""},
		{session.Spec{IfGenerationMatch: n(5)}, there, ""},
		{session.Spec{IfGenerationMatch: n(5), IfMetagenerationMatch: n(2)}, there, ""},
		{session.Spec{IfGenerationMatch: n(0)}, there, "exists (generation 5)"},
		{session.Spec{IfGenerationMatch: n(5)}, nil, "there is no gs://bucket/object"},
		{session.Spec{IfGenerationMatch: n(4)}, there, "has generation 5, want 4"},
		{session.Spec{IfMetagenerationMatch: n(3)}, there, "has metageneration 2, want 3"},
		{session.Spec{IfMetagenerationMatch: n(3)}, nil, "metageneration"},
		{session.Spec{IfGenerationMatch: n(5), IfMetagenerationMatch: n(3)}, there, "has metageneration 2, want 3"},
		{session.Spec{IfGenerationNotMatch: n(0)}, there, ""},
		{session.Spec{IfGenerationNotMatch: n(4)}, there, ""},
		{session.Spec{IfGenerationNotMatch: n(4)}, nil, ""},
		{session.Spec{IfGenerationNotMatch: n(0)}, nil, "there is no gs://bucket/object, want one"},
		{session.Spec{IfGenerationNotMatch: n(5)}, there, "has generation 5, want another one"},
		{session.Spec{IfMetagenerationNotMatch: n(3)}, there, ""},
		{session.Spec{IfMetagenerationNotMatch: n(2)}, there, "has metageneration 2, want another one"},
		{session.Spec{IfGenerationNotMatch: n(5), IfMetagenerationMatch: n(3)}, there, "want another one"},
	} {
		c.spec.Bucket, c.spec.Object = "bucket", "object"
		err := c.spec.Unmet(c.object)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, session.ErrPrecondition) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
		if e, ok := errors.AsType[*session.Error](err); ok != (c.want != "") || ok && (e.Status != 412 || !e.Early || e.Existing != c.object) {
			t.Errorf("%+v: %+v, want an early 412 with the object", c, e)
		}
	}
}

// TestConditional checks that each precondition is one, including those that are
// added later.
func TestConditional(t *testing.T) {
	if len((session.Spec{ContentType: "a/b"}).Conditions()) > 0 {
		t.Error("a Spec without preconditions is conditional")
	}
	found := 0
	for i := range reflect.TypeFor[session.Spec]().NumField() {
		var spec session.Spec
		if !strings.HasPrefix(reflect.TypeFor[session.Spec]().Field(i).Name, "If") {
			continue
		}
		found++
		*reflect.ValueOf(&spec).Elem().Field(i).Addr().Interface().(**int64) = new(int64)
		if len(spec.Conditions()) == 0 || spec.Unmet(nil) == nil && spec.Unmet(&session.Object{Generation: 1, Metageneration: 1}) == nil {
			t.Errorf("%+v is not conditional", spec)
		}
	}
	if found != 4 {
		t.Errorf("%d preconditions, want 4", found)
	}
}
