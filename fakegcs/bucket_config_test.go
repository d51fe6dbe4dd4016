package fakegcs_test

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// configurations has a value for each bucket field, as the service returns it.
var configurations = map[string]string{
	"lifecycle": `{"rule":[{"action":{"type":"Delete"},"condition":{"age":0,"isLive":false,"matchesPrefix":["tmp/"]}},
		{"action":{"type":"SetStorageClass","storageClass":"NEARLINE"},"condition":{"createdBefore":"2026-01-31","numNewerVersions":3,"matchesStorageClass":["STANDARD"]}}]}`,
	"cors":                  `[{"origin":["https://example.com"],"method":["GET","*"],"responseHeader":["X-A"],"maxAgeSeconds":0},{"origin":["*"]}]`,
	"website":               `{"mainPageSuffix":"index.html","notFoundPage":"404.html"}`,
	"billing":               `{"requesterPays":true}`,
	"defaultEventBasedHold": `true`,
	"logging":               `{"logBucket":"logs","logObjectPrefix":"p"}`,
	"encryption":            `{"defaultKmsKeyName":"projects/p/locations/us/keyRings/r/cryptoKeys/k"}`,
	"rpo":                   `"ASYNC_TURBO"`,
	"labels":                `{"a":"1"}`,
	"versioning":            `{"enabled":true}`,
}

// equalJSON reports whether two JSON texts have the same value.
func equalJSON(t *testing.T, a any, b string) bool {
	t.Helper()
	var want any
	require.NoError(t, json.Unmarshal([]byte(b), &want))
	return reflect.DeepEqual(a, want)
}

// A bucket keeps its configuration: in the reply, in GET and list, and after a
// restart of the server.
func TestBucketKeepsItsConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	const paid = "&userProject=p"
	check := func(when string, m map[string]any, field, value string) {
		t.Helper()
		if !equalJSON(t, m[field], value) {
			t.Errorf("%s: %s is %v, want %s", when, field, m[field], value)
		}
	}
	var all []string
	for field, value := range configurations {
		all = append(all, `"`+field+`":`+value)
	}
	body := "{" + strings.Join(all, ",") + `,"name":"created"}`
	created := w.want(200, "", "POST", "/storage/v1/b?project=p", []byte(body))
	for field, value := range configurations {
		check("create", created.json(t), field, value)
		check("get", w.do("GET", "/storage/v1/b/created?x"+paid, nil).json(t), field, value)
		list := w.do("GET", "/storage/v1/b?project=p&prefix=created", nil).json(t)
		check("list", asList(list["items"])[0].(map[string]any), field, value)
		for _, method := range []string{"PATCH", "PUT"} {
			set := w.do(method, "/storage/v1/b/bkt?x"+paid, []byte(`{"`+field+`":`+value+`}`))
			check(method, set.json(t), field, value)
			unset := w.do(method, "/storage/v1/b/bkt?x"+paid, []byte(`{"`+field+`":null}`))
			if _, has := unset.json(t)[field]; has || unset.StatusCode != 200 {
				t.Errorf("%s null: %d %s", method, unset.StatusCode, unset.body)
			}
		}
	}
	w = w.again(dir)
	for field, value := range configurations {
		check("after a restart", w.do("GET", "/storage/v1/b/created?x"+paid, nil).json(t), field, value)
	}
}

// A patch merges the members of a configuration, and replaces lists.
func TestBucketConfigurationIsMerged(t *testing.T) {
	w := newWorld(t, nil)
	for _, test := range []struct{ patch, field, want string }{
		{`{"website":{"mainPageSuffix":"a"}}`, "website", `{"mainPageSuffix":"a"}`},
		{`{"website":{"notFoundPage":"b"}}`, "website", `{"mainPageSuffix":"a","notFoundPage":"b"}`},
		{`{"website":{"mainPageSuffix":null}}`, "website", `{"notFoundPage":"b"}`},
		{`{"website":{"notFoundPage":null}}`, "website", `null`},
		{`{"lifecycle":{"rule":[{"action":{"type":"Delete"},"condition":{"age":1}}]}}`, "lifecycle", `{"rule":[{"action":{"type":"Delete"},"condition":{"age":1}}]}`},
		{`{"lifecycle":{"rule":[{"action":{"type":"Delete"},"condition":{"age":2}}]}}`, "lifecycle", `{"rule":[{"action":{"type":"Delete"},"condition":{"age":2}}]}`},
		{`{"lifecycle":{"rule":[]}}`, "lifecycle", `null`},
		{`{"cors":[{"method":["GET"]}]}`, "cors", `[{"method":["GET"]}]`},
		{`{"cors":[]}`, "cors", `null`},
		{`{"billing":{"requesterPays":false}}`, "billing", `{"requesterPays":false}`},
	} {
		a := w.do("PATCH", "/storage/v1/b/bkt", []byte(test.patch))
		if a.StatusCode != 200 || !equalJSON(t, a.json(t)[test.field], test.want) {
			t.Errorf("%s: %d %s", test.patch, a.StatusCode, a.body)
		}
	}
}

// A field that the server does not keep is refused, even inside another field, and
// changes nothing.
func TestFieldsAreRefusedRatherThanDropped(t *testing.T) {
	var log text
	w := newWorld(t, &fakegcs.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", data(5))
	rule := func(action, condition string) string {
		return `{"lifecycle":{"rule":[{"action":` + action + `,"condition":` + condition + `}]}}`
	}
	buckets := []struct{ body, want string }{
		{`{"livecycle":{}}`, "livecycle"},
		{`{"lifecycle":{"rules":[]}}`, "rules"},
		{rule(`{"type":"Delete"}`, `{}`), "at least one condition"},
		{rule(`{"type":"Delete"}`, `{"aged":1}`), "aged"},
		{rule(`{"type":"Delete"}`, `{"age":-1}`), "negative"},
		{rule(`{"type":"Delete"}`, `{"age":"1 day"}`), "age"},
		{rule(`{"type":"Delete"}`, `{"createdBefore":"tomorrow"}`), "tomorrow"},
		{rule(`{"type":"Delete","storageClass":"NEARLINE"}`, `{"age":1}`), "no storageClass"},
		{rule(`{"type":"SetStorageClass"}`, `{"age":1}`), "requires a storageClass"},
		{rule(`{"type":"SetStorageClass","storageClass":"WARM"}`, `{"age":1}`), "Invalid storage class"},
		{rule(`{"type":"AbortIncompleteMultipartUpload"}`, `{"isLive":true}`), "isLive"},
		{rule(`{"type":"Burn"}`, `{"age":1}`), "Burn"},
		{`{"cors":{}}`, "cors"},
		{`{"cors":[{"methods":["GET"]}]}`, "methods"},
		{`{"cors":[{"method":["FETCH"]}]}`, "FETCH"},
		{`{"cors":[{"maxAgeSeconds":-1}]}`, "maxAgeSeconds"},
		{`{"website":{"indexPage":"x"}}`, "indexPage"},
		{`{"billing":{"requesterPays":"yes"}}`, "requesterPays"},
		{`{"defaultEventBasedHold":"yes"}`, "defaultEventBasedHold"},
		{`{"versioning":{"on":true}}`, "on"},
		{`{"retentionPolicy":{"period":"1"}}`, "period"},
		{`{"rpo":"SOMETIMES"}`, "SOMETIMES"},
		{`{"ipFilter":{"mode":"Enabled"}}`, "does not implement the field 'ipFilter'"},
		{`{"autoclass":{"enabled":true,"terminalStorageClass":"COLDLINE"}}`, "COLDLINE"},
		{`{"autoclass":{"enabled":true},"storageClass":"NEARLINE"}`, "must be STANDARD"},
		{`{"customPlacementConfig":{"dataLocations":["US-EAST1"]}}`, "customPlacementConfig"},
		{`{"customPlacementConfig":{"dataLocations":["us-east1","US-EAST1"]}}`, "customPlacementConfig"},
		{`{"hierarchicalNamespace":{"enabled":true}}`, "hierarchicalNamespace"},
		{`{"acl":[{"entity":"allUsers","role":"BOSS"}]}`, "BOSS"},
		{`{"defaultObjectAcl":[{"entity":"allUsers","role":"WRITER"}]}`, "WRITER"},
	}
	objects := []struct{ body, want string }{
		{`{"contenttype":"x"}`, "contenttype"}, {`{"colour":"red"}`, "colour"}, {`{"retention":{"until":"x"}}`, "until"},
		{`{"acl":[{"entity":"allUsers","role":"WRITER"}]}`, "WRITER"}, {`{"acl":[{"entity":"you","role":"READER"}]}`, "you"},
		{`{"contexts":{"custom":{"k":"v"}}}`, "contexts.custom"}, {`{"contexts":{"custom":{"k":{"value":""}}}}`, "1 to 256"},
	}
	before := w.do("GET", "/storage/v1/b/bkt", nil).body
	for _, test := range buckets {
		w.want(400, test.want, "PATCH", "/storage/v1/b/bkt", []byte(test.body))
		w.want(400, test.want, "PUT", "/storage/v1/b/bkt", []byte(test.body))
		w.want(400, test.want, "POST", "/storage/v1/b?project=p", []byte(`{"name":"another",`+test.body[1:]))
	}
	if after := w.do("GET", "/storage/v1/b/bkt", nil).body; after != before {
		t.Errorf("the bucket changed from %s to %s", before, after)
	}
	w.want(404, "", "GET", "/storage/v1/b/another", nil)
	for _, test := range objects {
		w.want(400, test.want, "POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=y", []byte(test.body), "Content-Type: application/json")
		multipart := "--b\r\nContent-Type: application/json\r\n\r\n" + test.body + "\r\n--b\r\n\r\nbytes\r\n--b--"
		w.want(400, test.want, "POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=y", []byte(multipart), "Content-Type: multipart/related; boundary=b")
		w.want(400, test.want, "PATCH", "/storage/v1/b/bkt/o/x", []byte(test.body))
		w.want(400, test.want, "POST", "/storage/v1/b/bkt/o/x/rewriteTo/b/bkt/o/y", []byte(test.body))
		compose := `{"destination":` + test.body + `,"sourceObjects":[{"name":"x"}]}`
		w.want(400, test.want, "POST", "/storage/v1/b/bkt/o/y/compose", []byte(compose))
	}
	w.want(400, "offset", "POST", "/storage/v1/b/bkt/o/y/compose", []byte(`{"sourceObjects":[{"name":"x","offset":1}]}`))
	if strings.Count(log.String(), "ipFilter") != 1 {
		t.Errorf("the log does not name the missing field once: %s", log.String())
	}
}

// A client may send back a resource that it received, and empty values of
// unimplemented fields.
func TestResourcesCanBeSentBack(t *testing.T) {
	w := newWorld(t, nil)
	w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", data(5))
	for _, path := range []string{"/storage/v1/b/bkt", "/storage/v1/b/bkt/o/x"} {
		m := w.do("GET", path, nil).json(t)
		m["acl"], m["owner"] = []any{}, map[string]any{"entity": "user"}
		body, err := json.Marshal(m)
		require.NoError(t, err)
		for _, method := range []string{"PUT", "PATCH"} {
			w.want(200, "", method, path, body)
		}
	}
	w.want(200, "", "PATCH", "/storage/v1/b/bkt", []byte(`{"autoclass":{"enabled": false},"ipFilter":{},"customPlacementConfig":null,"acl":null}`))
}

// New objects have the default event-based hold of their bucket, and the name of its default KMS key.
func TestDefaultsOfNewObjects(t *testing.T) {
	w := newWorld(t, nil)
	w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"defaultEventBasedHold":true,"encryption":{"defaultKmsKeyName":"k"}}`))
	for target, want := range map[string]string{"name=x": "k", "name=y&kmsKeyName=other": "other"} {
		a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&"+target, data(5))
		if a.json(t)["kmsKeyName"] != want || a.json(t)["eventBasedHold"] != true {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	w.want(403, "", "DELETE", "/storage/v1/b/bkt/o/x", nil)
}

// The regions of a bucket make it a dual-region, and a zone makes it zonal. Neither can change.
func TestCustomPlacement(t *testing.T) {
	w := newWorld(t, nil)
	create := func(body, want string) {
		t.Helper()
		a := w.do("POST", "/storage/v1/b?project=p", []byte(body))
		if m := a.json(t); a.StatusCode != 200 || m["locationType"] != want {
			t.Errorf("%s: %d %s, want the location type %s", body, a.StatusCode, a.body, want)
		}
	}
	create(`{"name":"dual","location":"us","customPlacementConfig":{"dataLocations":["us-east1","us-west1"]}}`, "dual-region")
	create(`{"name":"zonal","location":"us-west4","storageClass":"RAPID","customPlacementConfig":{"dataLocations":["us-west4-a"]}}`, "zone")
	for patch, want := range map[string]int{
		`{"customPlacementConfig":{"dataLocations":["US-EAST1","US-WEST1"]}}`: 200,
		`{"customPlacementConfig":{"dataLocations":["US-EAST1","US-EAST4"]}}`: 400,
		`{"customPlacementConfig":null}`:                                      400,
	} {
		w.want(want, "", "PATCH", "/storage/v1/b/dual", []byte(patch))
	}
	m := w.do("GET", "/storage/v1/b/dual", nil).json(t)
	if !equalJSON(t, m["customPlacementConfig"], `{"dataLocations":["US-EAST1","US-WEST1"]}`) || m["location"] != "US" {
		t.Errorf("the bucket is %v", m)
	}
}

// Autoclass has a terminal class, and the times when it and the setting changed.
func TestAutoclass(t *testing.T) {
	w := newWorld(t, nil)
	set := func(body string) map[string]any {
		t.Helper()
		w.gcs.Advance(time.Second)
		return w.want(200, "", "PATCH", "/storage/v1/b/bkt", []byte(`{"autoclass":`+body+`}`)).json(t)["autoclass"].(map[string]any)
	}
	on := set(`{"enabled":true}`)
	if on["enabled"] != true || on["terminalStorageClass"] != "NEARLINE" || on["toggleTime"] == nil || on["terminalStorageClassUpdateTime"] == nil {
		t.Errorf("enabled: %v", on)
	}
	if same := set(`{"enabled":true}`); !reflect.DeepEqual(same, on) {
		t.Errorf("enabled again: %v, before %v", same, on)
	}
	archive := set(`{"enabled":true,"terminalStorageClass":"ARCHIVE"}`)
	if archive["terminalStorageClass"] != "ARCHIVE" || archive["toggleTime"] != on["toggleTime"] || archive["terminalStorageClassUpdateTime"] == on["terminalStorageClassUpdateTime"] {
		t.Errorf("another class: %v, before %v", archive, on)
	}
	off := set(`{"enabled":false}`)
	if off["enabled"] != false || off["toggleTime"] == on["toggleTime"] || off["terminalStorageClass"] != nil {
		t.Errorf("disabled: %v, before %v", off, on)
	}
}

// Who created a bucket whose requester pays need not name a project. The token says who it is.
func TestOwnerOfRequesterPays(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	header := func(token string) string { return "Authorization: Bearer " + token }
	claims := func(email string) string {
		return "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+email+`"}`)) + ".s"
	}
	issued := func(form string) string {
		return header(w.do("POST", "/_fakegcs/token", []byte(form)).json(t)["access_token"].(string))
	}
	owner, again := issued("grant_type=x&assertion="+claims("me@example.com")), issued("assertion="+claims("me@example.com"))
	other, user := issued("assertion="+claims("you@example.com")), issued("grant_type=refresh_token&client_id=c&refresh_token=r")
	self := header(claims("me@example.com"))
	for name, creator := range map[string]string{"mine": owner, "nobodys": "X-None: 1"} {
		w.want(200, "", "POST", "/storage/v1/b?project=p", []byte(`{"name":"`+name+`","billing":{"requesterPays":true}}`), creator)
	}
	for _, test := range []struct {
		header, bucket string
		want           int
	}{
		{owner, "mine", 200}, {again, "mine", 200}, {self, "mine", 200}, {other, "mine", 400}, {user, "mine", 400}, {header("unknown"), "mine", 400}, {"X-None: 1", "mine", 400},
		{owner, "nobodys", 400}, {header("unknown"), "nobodys", 400}, {"X-None: 1", "nobodys", 400},
	} {
		w.want(test.want, "", "GET", "/storage/v1/b/"+test.bucket+"/o", nil, test.header)
	}
	w.want(200, "", "GET", "/mine", nil, owner)
	w = w.again(dir)
	w.want(200, "", "GET", "/storage/v1/b/mine/o", nil, self)
}

// A request to a bucket whose requester pays must name the project that pays. The
// start of a session pays for the whole session.
func TestRequesterPays(t *testing.T) {
	w := newWorld(t, nil)
	w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", data(5))
	w.do("POST", "/storage/v1/b?project=p", []byte(`{"name":"other"}`))
	w.do("POST", "/upload/storage/v1/b/other/o?uploadType=media&name=x", data(5))
	w.want(200, "", "PATCH", "/storage/v1/b/bkt", []byte(`{"billing":{"requesterPays":true}}`))
	for _, test := range []struct{ method, path, body string }{
		{"GET", "/storage/v1/b/bkt", ""}, {"PATCH", "/storage/v1/b/bkt", "{}"}, {"GET", "/storage/v1/b/bkt/o", ""}, {"GET", "/storage/v1/b/bkt/storageLayout", ""},
		{"GET", "/storage/v1/b/bkt/o/x", ""}, {"GET", "/storage/v1/b/bkt/o/x?alt=media", ""}, {"PATCH", "/storage/v1/b/bkt/o/x", "{}"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=y", "y"}, {"POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=y", ""},
		{"POST", "/storage/v1/b/bkt/o/z/compose", `{"sourceObjects":[{"name":"x"}]}`},
		{"POST", "/storage/v1/b/bkt/o/x/rewriteTo/b/other/o/y", "{}"}, {"POST", "/storage/v1/b/other/o/x/rewriteTo/b/bkt/o/y", "{}"},
		{"GET", "/bkt/x", ""}, {"GET", "/bkt", ""}, {"DELETE", "/storage/v1/b/bkt/o/x", ""}, {"DELETE", "/storage/v1/b/bkt", ""},
	} {
		message := "Bucket is requester pays bucket but no user project provided." // of the JSON API
		if strings.HasPrefix(test.path, "/bkt") {
			message = "Bucket is a requester pays bucket but no user project provided."
		}
		a := w.want(400, message, test.method, test.path, []byte(test.body))
		if strings.HasPrefix(test.path, "/bkt") != strings.Contains(a.body, "<Code>UserProjectMissing</Code>") {
			t.Errorf("%s %s without a project: %s", test.method, test.path, a.body)
		}
		separator := "?"
		if strings.Contains(test.path, "?") {
			separator = "&"
		}
		if test.method == "DELETE" {
			continue
		}
		w.want(200, "", test.method, test.path+separator+"userProject=p", []byte(test.body))
		w.want(200, "", test.method, test.path, []byte(test.body), "X-Goog-User-Project: p")
	}
	w.want(400, "UserProjectMissing", "PUT", "/other/copied", nil, "x-goog-copy-source: bkt/x")
	uri := w.start("session", "X-Goog-User-Project: p")
	w.want(200, "", "PUT", uri, data(5), "Content-Range: bytes 0-4/5")
	w.want(200, "", "GET", "/storage/v1/b?project=p", nil)
	w.want(200, "", "PATCH", "/storage/v1/b/bkt?userProject=p", []byte(`{"billing":{"requesterPays":false}}`))
	w.want(200, "", "GET", "/bkt/x", nil)
}

// The server sets the time of a setting when the setting changes. PATCH merges the access configuration, and PUT replaces it.
func TestTimesOfSettings(t *testing.T) {
	w := newWorld(t, nil)
	set := func(method, body string) map[string]any {
		t.Helper()
		w.gcs.Advance(time.Second)
		return w.want(200, "", method, "/storage/v1/b/bkt", []byte(body)).json(t)
	}
	for _, test := range [][4]string{
		{"retentionPolicy", "effectiveTime", `{"retentionPeriod":"60"}`, `{"retentionPeriod":"70"}`},
		{"softDeletePolicy", "effectiveTime", `{"retentionDurationSeconds":"604800"}`, `{"retentionDurationSeconds":"604801"}`},
	} {
		for _, method := range []string{"PATCH", "PUT"} {
			at := func(value string) any {
				return set(method, `{"`+test[0]+`":`+value+`}`)[test[0]].(map[string]any)[test[1]]
			}
			first, same, other := at(test[2]), at(test[2]), at(test[3])
			if first == nil || same != first || other == first {
				t.Errorf("%s %s: %v, with the same value %v, with another %v", method, test[0], first, same, other)
			}
		}
	}
	const uniform = `"uniformBucketLevelAccess":{"enabled":true}`
	locked := func(method, members string) (prevention, at any) {
		t.Helper()
		c := set(method, `{"iamConfiguration":{`+members+`}}`)["iamConfiguration"].(map[string]any)
		if !reflect.DeepEqual(c["uniformBucketLevelAccess"], c["bucketPolicyOnly"]) {
			t.Errorf("the two names of uniform access differ: %v", c)
		}
		return c["publicAccessPrevention"], c["uniformBucketLevelAccess"].(map[string]any)["lockedTime"]
	}
	_, first := locked("PATCH", uniform)
	for _, test := range []struct {
		method, members string
		prevention, at  any
	}{
		{"PATCH", `"publicAccessPrevention":"enforced"`, "enforced", first},
		{"PUT", uniform, "inherited", first},
		{"PUT", `"publicAccessPrevention":"enforced"`, "enforced", nil},
		{"PUT", ``, "inherited", nil},
	} {
		if prevention, at := locked(test.method, test.members); prevention != test.prevention || at != test.at {
			t.Errorf("%s {%s}: %v, locked from %v, want %v from %v", test.method, test.members, prevention, at, test.prevention, test.at)
		}
	}
}
