package fakegcs_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"
)

// The retention of an object can always be extended. To shorten an unlocked one, the
// caller must override it. A locked one cannot be shortened.
func TestRetentionOfOneObject(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("a", "x")
	now := time.Now()
	retain := func(mode string, hours int) string {
		return fmt.Sprintf(`{"retention":{"mode":%q,"retainUntilTime":%q}}`, mode, now.Add(time.Duration(hours)*time.Hour).UTC().Format(time.RFC3339))
	}
	for _, test := range []struct {
		query, body string
		status      int
	}{
		{"", `{"retention":{"mode":"Unlocked"}}`, 400},
		{"", retain("Loose", 2), 400},
		{"", retain("Unlocked", -1), 400},
		{"", retain("Unlocked", 2), 200},
		{"", retain("Unlocked", 3), 200},
		{"", retain("Unlocked", 2), 403},
		{"", `{"retention":null}`, 403},
		{"", `{"retention":{}}`, 200},
		{"", `{"contentType":"text/x"}`, 200},
		{"", retain("Locked", 3), 403},
		{"?overrideUnlockedRetention=true", `{"retention":{"mode":null,"retainUntilTime":null,"retentionExpirationTime":null}}`, 200},
		{"", `{"retention":null}`, 200},
		{"", retain("Unlocked", 9), 200},
		{"?overrideUnlockedRetention=true", retain("Locked", 8), 200},
		{"?overrideUnlockedRetention=true", retain("Locked", 7), 403},
		{"?overrideUnlockedRetention=true", retain("Unlocked", 9), 403},
		{"?overrideUnlockedRetention=true", `{"retention":null}`, 403},
		{"", retain("Locked", 9), 200},
	} {
		w.want(test.status, "", "PATCH", "/storage/v1/b/bkt/o/a"+test.query, []byte(test.body))
	}
	past := []byte(retain("Locked", -1))
	w.want(400, "in the past", "POST", "/storage/v1/b/bkt/o/a/rewriteTo/b/bkt/o/b", past)
	w.want(400, "in the past", "POST", "/storage/v1/b/bkt/o/b/compose", []byte(`{"sourceObjects":[{"name":"a"}],"destination":`+string(past)+`}`))
	w.want(400, "in the past", "POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=b", past, "Content-Type: application/json")
	w.want(200, "!retention", "POST", "/storage/v1/b/bkt/o/a/copyTo/b/bkt/o/b", []byte(`{}`))
	w.want(403, "retentionPolicyNotMet", "DELETE", "/storage/v1/b/bkt/o/a", nil)
}

// The times of a retention and a context have three decimals, also if the last are zero.
func TestTimesHaveThreeDecimals(t *testing.T) {
	w := newWorld(t, nil)
	w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", data(5))
	const until = "2099-01-02T03:04:05.120Z"
	a := w.do("PATCH", "/storage/v1/b/bkt/o/x", []byte(`{"retention":{"mode":"Unlocked","retainUntilTime":"`+until+`"},"contexts":{"custom":{"k":{"value":"v"}}}}`))
	m := a.json(t)
	if got := m["retention"].(map[string]any)["retainUntilTime"]; got != until {
		t.Errorf("retained until %v, want %s", got, until)
	}
	context := m["contexts"].(map[string]any)["custom"].(map[string]any)["k"].(map[string]any)
	for _, name := range []string{"createTime", "updateTime"} {
		if got, _ := context[name].(string); !regexp.MustCompile(`:\d\d\.\d{3}Z$`).MatchString(got) {
			t.Errorf("%s of the context is %q", name, got)
		}
	}
}
