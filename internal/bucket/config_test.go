package bucket_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/bucket"
	"gcsup/internal/require"
	"gcsup/session"
)

// TestConfig checks that the properties of a bucket are parsed, and that other
// replies give none.
func TestConfig(t *testing.T) {
	t.Parallel()
	srv := fakegcs.NewServer(t, nil)
	client, err := session.NewClient(srv.Client(), srv.URL)
	require.NoError(t, err)
	send := func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/storage/v1/b"+path, strings.NewReader(body))
		require.NoError(t, err)
		resp, err := srv.Client().Do(req)
		if err != nil || resp.Body.Close() != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
	}
	send("POST", "?project=p", `{"name":"bkt","storageClass":"NEARLINE","versioning":{"enabled":true},"softDeletePolicy":{"retentionDurationSeconds":"0"}}`)
	send("POST", "/bkt/notificationConfigs", `{"topic":"t","payload_format":"NONE","event_types":["OBJECT_DELETE"],"object_name_prefix":"logs/"}`)
	b, r := bucket.ReadConfig(t.Context(), client, "bkt", "")
	if want := (&bucket.Config{StorageClass: "NEARLINE", Versioning: true}); !reflect.DeepEqual(b, want) {
		t.Errorf("ReadConfig = %+v (%d, %v), want %+v", b, r.Status, r.Err, want)
	}
	list, r := bucket.Notifications(t.Context(), client, "bkt", "")
	if want := []bucket.Notification{{EventTypes: []string{"OBJECT_DELETE"}, ObjectNamePrefix: "logs/"}}; r.Status != 200 || !reflect.DeepEqual(list, want) {
		t.Errorf("Notifications = %+v (%d, %v)", list, r.Status, r.Err)
	}
	may, r := bucket.Permissions(t.Context(), client, "bkt", "", "storage.objects.delete", "storage.objects.get")
	if want := []string{"storage.objects.delete", "storage.objects.get"}; r.Status != 200 || !reflect.DeepEqual(may, want) {
		t.Errorf("Permissions = %q (%d, %v)", may, r.Status, r.Err)
	}
	if _, r := bucket.Permissions(t.Context(), client, "absent", "", "storage.objects.get"); r.Status != 404 {
		t.Errorf("of a bucket that does not exist: %d", r.Status)
	}

	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer html.Close()
	other, err := session.NewClient(html.Client(), html.URL)
	require.NoError(t, err)
	if _, r := bucket.Notifications(t.Context(), other, "bkt", ""); r.Status != 0 || r.Err == nil {
		t.Errorf("of a proxy: %d, %v", r.Status, r.Err)
	}
}

func TestNotificationReports(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n    bucket.Notification
		want bool
	}{
		{bucket.Notification{}, true},
		{bucket.Notification{ObjectNamePrefix: "gcsup"}, true},
		{bucket.Notification{ObjectNamePrefix: "logs/"}, false},
		{bucket.Notification{EventTypes: []string{"OBJECT_METADATA_UPDATE"}}, false},
		{bucket.Notification{EventTypes: []string{"OBJECT_METADATA_UPDATE", "OBJECT_DELETE"}}, true},
	} {
		if got := test.n.Reports("gcsup-parts/x"); got != test.want {
			t.Errorf("%+v: %v", test.n, got)
		}
	}
}
