package session_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/session"
)

// TestBucketReports checks that the properties of a bucket are parsed, and that other
// replies give none.
func TestBucketReports(t *testing.T) {
	t.Parallel()
	srv := fakegcs.NewServer(t, nil)
	client, err := session.NewClient(srv.Client(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/storage/v1/b"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil || resp.Body.Close() != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
	}
	send("POST", "?project=p", `{"name":"bkt","storageClass":"NEARLINE","versioning":{"enabled":true},"softDeletePolicy":{"retentionDurationSeconds":"0"}}`)
	send("POST", "/bkt/notificationConfigs", `{"topic":"t","payload_format":"NONE","event_types":["OBJECT_DELETE"],"object_name_prefix":"logs/"}`)
	b, r := client.Bucket(t.Context(), "bkt", "")
	if want := (&session.Bucket{StorageClass: "NEARLINE", Versioning: true}); !reflect.DeepEqual(b, want) {
		t.Errorf("Bucket = %+v (%d, %v), want %+v", b, r.Status, r.Err, want)
	}
	list, r := client.Notifications(t.Context(), "bkt", "")
	if want := []session.Notification{{EventTypes: []string{"OBJECT_DELETE"}, ObjectNamePrefix: "logs/"}}; r.Status != 200 || !reflect.DeepEqual(list, want) {
		t.Errorf("Notifications = %+v (%d, %v)", list, r.Status, r.Err)
	}
	may, r := client.Permissions(t.Context(), "bkt", "", "storage.objects.delete", "storage.objects.get")
	if want := []string{"storage.objects.delete", "storage.objects.get"}; r.Status != 200 || !reflect.DeepEqual(may, want) {
		t.Errorf("Permissions = %q (%d, %v)", may, r.Status, r.Err)
	}
	if _, r := client.Permissions(t.Context(), "absent", "", "storage.objects.get"); r.Status != 404 {
		t.Errorf("of a bucket that does not exist: %d", r.Status)
	}

	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer html.Close()
	other, err := session.NewClient(html.Client(), html.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, r := other.Notifications(t.Context(), "bkt", ""); r.Status != 0 || r.Err == nil {
		t.Errorf("of a proxy: %d, %v", r.Status, r.Err)
	}
}

func TestNotificationReports(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n    session.Notification
		want bool
	}{
		{session.Notification{}, true},
		{session.Notification{ObjectNamePrefix: "gcsup"}, true},
		{session.Notification{ObjectNamePrefix: "logs/"}, false},
		{session.Notification{EventTypes: []string{"OBJECT_METADATA_UPDATE"}}, false},
		{session.Notification{EventTypes: []string{"OBJECT_METADATA_UPDATE", "OBJECT_DELETE"}}, true},
	} {
		if got := test.n.Reports("gcsup-parts/x"); got != test.want {
			t.Errorf("%+v: %v", test.n, got)
		}
	}
}
