package decide_test

import (
	"io"
	"testing"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/session"
)

// TestRefusedPermission checks that an Error has the permission that the service names.
func TestRefusedPermission(t *testing.T) {
	for message, want := range map[string]string{
		"me@p.iam.gserviceaccount.com does not have storage.objects.delete access to the Google Cloud Storage object.": bucket.PermissionDelete,
		"Permission 'storage.objects.create' denied on resource (or it may not exist).":                                "storage.objects.create",
		"x lacks storage.objects.delete":          bucket.PermissionDelete,
		"the object storage.objects. is not one":  "",
		"Access denied at storage.googleapis.com": "",
		"": "",
	} {
		r := session.Reply{Op: session.OpInsert, Status: 403, FromService: true, Message: message}
		if got := decide.Permission(r.Refusal()); got != want {
			t.Errorf("%q: permission %q, want %q", message, got, want)
		}
	}
}

// TestErrorProtected checks which refusals are about a hold or a retention of the object.
func TestErrorProtected(t *testing.T) {
	const hold = "Object 'bkt/o' is under active Temporary hold and cannot be deleted, overwritten or archived until hold is removed."
	for _, c := range []struct {
		err  session.Error
		want bool
	}{
		{session.Error{Status: 403, FromService: true, Reason: "retentionPolicyNotMet"}, true},
		{session.Error{Status: 403, FromService: true, Reason: "RetentionPolicyNotMet"}, true}, // XML
		{session.Error{Status: 403, FromService: true, Reason: "ObjectUnderActiveHold"}, true},
		{session.Error{Status: 403, FromService: true, Reason: "forbidden", Message: hold}, true},
		{session.Error{Status: 403, FromService: true, Reason: "forbidden", Message: "me does not have storage.objects.create access"}, false},
		{session.Error{Status: 403, Reason: "retentionPolicyNotMet"}, false}, // a proxy
		{session.Error{Status: 400, FromService: true, Reason: "invalid", Message: hold}, false},
	} {
		if got := decide.Protected(&c.err); got != c.want {
			t.Errorf("%+v: %v, want %v", c.err, got, c.want)
		}
	}
}

func TestErrorShort(t *testing.T) {
	for _, c := range []struct {
		r    session.Reply
		want string
	}{{status(503), "503"}, {broken(io.EOF), "EOF"}, {session.Reply{}, "no reply"}} {
		if got := decide.Short(c.r.Refusal()); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}
