package fakegcs_test

import (
	"strings"
	"testing"

	"gcsup/fakegcs"
)

// Notifications are kept, listed, refused if they are not valid, and survive a restart.
func TestNotifications(t *testing.T) {
	dir := t.TempDir()
	const path = "/storage/v1/b/bkt/notificationConfigs"
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	for _, test := range []struct {
		body   string
		status int
	}{
		{`{"topic":"//pubsub.googleapis.com/projects/p/topics/t","payload_format":"JSON_API_V1","event_types":["OBJECT_FINALIZE"],"object_name_prefix":"logs/"}`, 200},
		{`{"topic":"//pubsub.googleapis.com/projects/p/topics/t","payload_format":"NONE"}`, 200},
		{`{"topic":"t","payload_format":"XML"}`, 400},
		{`{"topic":"t","payload_format":"NONE","event_types":["OBJECT_READ"]}`, 400},
		{`{"topic":"t","payload_format":"NONE","prefix":"logs/"}`, 400},
		{`{"payload_format":"NONE"}`, 400},
	} {
		w.want(test.status, "", "POST", path, []byte(test.body))
	}
	w.want(204, "", "DELETE", path+"/2", nil)
	w.want(404, "", "DELETE", path+"/2", nil)
	w.want(200, `"object_name_prefix": "logs/"`, "GET", path+"/1", nil)
	if a := w.do("GET", path+"?fields=items(object_name_prefix,event_types)", nil); a.StatusCode != 200 || !strings.Contains(a.body, "OBJECT_FINALIZE") || strings.Contains(a.body, "topic") {
		t.Errorf("list: %d %s", a.StatusCode, a.body)
	}
	if a := w.do("GET", "/storage/v1/b/bkt", nil); strings.Contains(a.body, "otification") {
		t.Errorf("the bucket has its notifications: %s", a.body)
	}
	again := w.again(dir)
	if a := again.do("GET", path, nil); strings.Count(a.body, `"id"`) != 1 || !strings.Contains(a.body, "logs/") {
		t.Errorf("after a restart: %s", a.body)
	}
}
