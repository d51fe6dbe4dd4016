package session_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gcsup/internal/objectmeta"
	"gcsup/session"
)

func TestValidateAttributes(t *testing.T) {
	until := time.Unix(2_000_000_000, 0)
	for _, c := range []struct {
		name string
		edit func(*session.Spec)
		want string // in the error; "" if the Spec is valid
	}{
		{"none", func(*session.Spec) {}, ""},
		{"a control character", func(s *session.Spec) { s.CacheControl = "no-store\r\nX: y" }, "cache control"},
		{"another", func(s *session.Spec) { s.ContentDisposition = "inline\x00" }, "content disposition"},
		{"not UTF-8", func(s *session.Spec) { s.ContentLanguage = "\xff" }, "content language"},
		{"an ACL", func(s *session.Spec) { s.PredefinedACL = "publicRead" }, ""},
		{"gsutil's ACL", func(s *session.Spec) { s.PredefinedACL = "public-read" }, "authenticatedRead, bucketOwnerFullControl"},
		{"retention", func(s *session.Spec) {
			s.Retention = &session.Retention{Mode: session.RetentionLocked, RetainUntil: until}
		}, ""},
		{"retention of another mode", func(s *session.Spec) { s.Retention = &session.Retention{Mode: "locked", RetainUntil: until} }, "want Locked or Unlocked"},
		{"retention without a time", func(s *session.Spec) { s.Retention = &session.Retention{Mode: session.RetentionLocked} }, "without the time"},
		{"ACL rules", func(s *session.Spec) {
			s.ACL = []session.ACLRule{{Entity: session.AllUsers, Role: session.RoleReader}, {Entity: "group-a@b.c", Role: session.RoleOwner}}
		}, ""},
		{"two kinds of ACL", func(s *session.Spec) {
			s.ACL, s.PredefinedACL = []session.ACLRule{{Entity: session.AllUsers, Role: session.RoleReader}}, "private"
		}, "not by both"},
		{"an ACL rule without an entity", func(s *session.Spec) { s.ACL = []session.ACLRule{{Role: session.RoleReader}} }, "without an entity"},
		{"an ACL rule without a role", func(s *session.Spec) { s.ACL = []session.ACLRule{{Entity: session.AllUsers}} }, "want READER or OWNER"},
		{"the role of a bucket", func(s *session.Spec) { s.ACL = []session.ACLRule{{Entity: session.AllUsers, Role: "WRITER"}} }, "want READER or OWNER"},
		{"an ACL rule with a line break", func(s *session.Spec) { s.ACL = []session.ACLRule{{Entity: "user-a\n", Role: session.RoleReader}} }, "control character"},
		{"101 ACL rules", func(s *session.Spec) { s.ACL = make([]session.ACLRule, 101) }, "the limit is 100"},
		{"a context", func(s *session.Spec) { s.Contexts = contexts("k", strings.Repeat("ü", 256)) }, ""},
		{"a long context", func(s *session.Spec) { s.Contexts = contexts("k", strings.Repeat("ü", 257)) }, "257 characters, want 1 to 256"},
		{"a context without a key", func(s *session.Spec) { s.Contexts = contexts("", "v") }, "0 characters"},
		{"a context without a value", func(s *session.Spec) { s.Contexts = contexts("k", "") }, "0 characters"},
		{"a context that begins with a dash", func(s *session.Spec) { s.Contexts = contexts("k", "-v") }, "letter or a digit"},
		{"a context with a line break", func(s *session.Spec) { s.Contexts = contexts("k", "a\nb") }, "control character"},
		{"an MD5", func(s *session.Spec) { s.MD5 = make([]byte, 16) }, ""},
		{"a CRC32C as an MD5", func(s *session.Spec) { s.MD5 = make([]byte, 4) }, "4 bytes, want 16"},
		{"an empty MD5", func(s *session.Spec) { s.MD5 = []byte{} }, "0 bytes, want 16"},
		{"two preconditions", func(s *session.Spec) { s.IfGenerationMatch, s.IfMetagenerationNotMatch = new(int64), new(int64) }, ""},
		{"two for the generation", func(s *session.Spec) { s.IfGenerationMatch, s.IfGenerationNotMatch = new(int64), new(int64(5)) }, "two preconditions for the generation"},
		{"two for the metageneration", func(s *session.Spec) { s.IfMetagenerationMatch, s.IfMetagenerationNotMatch = new(int64), new(int64) }, "two preconditions for the meta"},
		{"a negative generation", func(s *session.Spec) { s.IfGenerationNotMatch = new(int64(-1)) }, "not match -1 is negative"},
		{"two keys", func(s *session.Spec) { s.KMSKeyName, s.EncryptionKey = "k", testKey(t, 'k') }, "not with both"},
		{"NoClobber without a generation", func(s *session.Spec) { s.NoClobber = true }, "NoClobber"},
		{"NoClobber with another generation", func(s *session.Spec) { s.IfGenerationMatch, s.NoClobber = new(int64(1)), true }, "NoClobber"},
		{"NoClobber with generation 0", func(s *session.Spec) { s.IfGenerationMatch, s.NoClobber = new(int64), true }, ""},
		{"gzip", func(s *session.Spec) { s.Gzip = true }, ""},
		{"gzip twice", func(s *session.Spec) { s.Gzip, s.ContentEncoding = true, "gzip" }, "it is gzip"},
		{"metadata", func(s *session.Spec) { s.Metadata = map[string]string{"k": "ü"} }, ""},
		{"metadata without a key", func(s *session.Spec) { s.Metadata = map[string]string{"": "v"} }, "is empty"},
		{"metadata with a line break", func(s *session.Spec) { s.Metadata = map[string]string{"k": "a\nb"} }, "control character"},
		{"8 KiB of metadata", func(s *session.Spec) { s.Metadata = map[string]string{"k": strings.Repeat("x", 8191)} }, ""},
		{"more metadata", func(s *session.Spec) { s.Metadata = map[string]string{"k": strings.Repeat("x", 8192)} }, "8193 bytes, the limit is 8192"},
	} {
		spec := session.Spec{Bucket: "bucket", Object: "object"}
		c.edit(&spec)
		err := spec.Validate()
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestConflictIgnoresTheSource checks that the attributes of a file are no
// conflict, and that a flag that adds them is one. That flag and the other metadata
// are given, or forgotten, independently.
func TestConflictIgnoresTheSource(t *testing.T) {
	was := session.Spec{Metadata: map[string]string{"k": "v", objectmeta.FileAccessTime: "1", objectmeta.FileMode: "644"}}
	for name, c := range map[string]struct {
		want map[string]string
		ok   bool
	}{
		"read since":        {map[string]string{"k": "v", objectmeta.FileAccessTime: "2", objectmeta.FileMode: "600"}, true},
		"another value":     {map[string]string{"k": "w", objectmeta.FileAccessTime: "1", objectmeta.FileMode: "644"}, false},
		"flag forgotten":    {map[string]string{"k": "v"}, true},
		"only the flag":     {map[string]string{objectmeta.FileAccessTime: "2", objectmeta.FileMode: "600"}, true},
		"only more of it":   {map[string]string{objectmeta.FileUID: "0"}, false},
		"another key":       {map[string]string{"l": "v"}, false},
		"one key forgotten": {map[string]string{"k": "v", "l": "v"}, false},
		"no metadata":       {map[string]string{}, false},
		"with one more":     {map[string]string{"k": "v", objectmeta.FileAccessTime: "1", objectmeta.FileMode: "644", objectmeta.FileUID: "0"}, false},
		"no metadata given": {nil, true},
		"compressed":        {map[string]string{"k": "v", objectmeta.FileAccessTime: "1", objectmeta.FileMode: "644", objectmeta.UncompressedSize: "5"}, true},
	} {
		if got := was.Conflict(session.Spec{Metadata: c.want}); (got == "") != c.ok {
			t.Errorf("%s: %q, want ok = %v", name, got, c.ok)
		}
	}
	if len(was.Metadata[objectmeta.FileMode]) == 0 {
		t.Error("Conflict changed the metadata")
	}
}
