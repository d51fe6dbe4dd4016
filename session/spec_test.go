package session_test

import (
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
		{"ab", "object", false},
		{strings.Repeat("b", 223), "object", false},
		{"a/b", "object", false},
		{"a?b", "object", false},
		{"a b", "object", false},
		{"gs://bucket", "object", false},
	} {
		err := session.Spec{Bucket: c.bucket, Object: c.object}.Validate()
		if c.ok && err != nil || !c.ok && !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%.30q/%.30q: %v, want ok = %v", c.bucket, c.object, err, c.ok)
		}
	}
}

// TestValidateNoClobber checks that NoClobber requires an IfGenerationMatch of
// 0.
func TestValidateNoClobber(t *testing.T) {
	for _, c := range []struct {
		generation *int64
		ok         bool
	}{{nil, false}, {new(int64(1)), false}, {new(int64(0)), true}} {
		err := session.Spec{Bucket: "bucket", Object: "object", IfGenerationMatch: c.generation, NoClobber: true}.Validate()
		if c.ok && err != nil || !c.ok && !errors.Is(err, session.ErrInvalid) {
			t.Errorf("NoClobber with %v: %v, want ok = %v", c.generation, err, c.ok)
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
		if got := was.Conflict(want); (got != "") != expected {
			t.Errorf("another %s: Conflict = %q", name, got)
		}
	}
}

func TestUnmet(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	there := &session.Object{Generation: 5, Metageneration: 2}
	for _, c := range []struct {
		generation, metageneration *int64
		object                     *session.Object
		want                       string // part of the message; "" if the precondition is met
	}{
		{nil, nil, nil, ""},
		{nil, nil, there, ""},
		{n(0), nil, nil, ""},
		{n(5), nil, there, ""},
		{n(5), n(2), there, ""},
		{n(0), nil, there, "exists (generation 5)"},
		{n(5), nil, nil, "there is no gs://bucket/object"},
		{n(4), nil, there, "has generation 5, want 4"},
		{nil, n(3), there, "has metageneration 2, want 3"},
		{nil, n(3), nil, "metageneration"},
		{n(5), n(3), there, "has metageneration 2, want 3"},
	} {
		spec := session.Spec{Bucket: "bucket", Object: "object", IfGenerationMatch: c.generation, IfMetagenerationMatch: c.metageneration}
		err := spec.Unmet(c.object)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, session.ErrPrecondition) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
		if got, want := spec.Conditional(), c.generation != nil || c.metageneration != nil; got != want {
			t.Errorf("%+v: Conditional() = %v", c, got)
		}
	}
}
