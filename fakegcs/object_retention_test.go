package fakegcs_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"

	"gcsup/fakegcs"
)

// A new retention policy applies to existing objects until it is removed. Under an
// event-based hold, the retention period has not started.
func TestRetentionOfExistingObjects(t *testing.T) {
	w, bkt := official(t, &fakegcs.Options{Dir: t.TempDir()})
	ctx := context.Background()
	w.insert("before", "x")
	w.insert("held", "x")
	hold := func(on bool) {
		t.Helper()
		if _, err := bkt.Object("held").Update(ctx, storage.ObjectAttrsToUpdate{EventBasedHold: on}); err != nil {
			t.Fatal(err)
		}
	}
	hold(true)
	period := func(d time.Duration) {
		t.Helper()
		if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{RetentionPolicy: &storage.RetentionPolicy{RetentionPeriod: d}}); err != nil {
			t.Fatal(err)
		}
	}
	until := func(name string, want time.Time) {
		t.Helper()
		o, _ := w.gcs.Object("bkt", name)
		if !o.RetentionExpirationTime.Equal(want) {
			t.Errorf("%s is retained until %v, want %v", name, o.RetentionExpirationTime, want)
		}
	}
	before, _ := w.gcs.Object("bkt", "before")
	period(time.Hour)
	until("before", before.TimeCreated.Add(time.Hour))
	until("held", time.Time{})
	if err := bkt.Object("before").Delete(ctx); err == nil {
		t.Error("deleted within the retention period")
	}
	w.gcs.Advance(24 * time.Hour)
	hold(false)
	held, _ := w.gcs.Object("bkt", "held")
	until("held", held.Updated.Add(time.Hour))
	period(2 * time.Hour)
	until("before", before.TimeCreated.Add(2*time.Hour))
	until("held", held.Updated.Add(2*time.Hour))
	period(0)
	until("held", time.Time{})
	if err := bkt.Object("held").Delete(ctx); err != nil {
		t.Error(err)
	}
}

// With versioning, a retained object can become noncurrent. An object under a hold
// cannot.
func TestRetentionWithVersions(t *testing.T) {
	w, bkt := official(t, nil)
	ctx := context.Background()
	if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{VersioningEnabled: true, RetentionPolicy: &storage.RetentionPolicy{RetentionPeriod: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	w.insert("a", "one")
	one, _ := w.gcs.Object("bkt", "a")
	w.insert("a", "two")
	if err := bkt.Object("a").Delete(ctx); err != nil {
		t.Errorf("delete of a retained object: %v", err)
	}
	if err := bkt.Object("a").Generation(one.Generation).Delete(ctx); statusOf(err) != 403 {
		t.Errorf("delete of a retained generation: %v", err)
	}
	w.insert("h", "one")
	if _, err := bkt.Object("h").Update(ctx, storage.ObjectAttrsToUpdate{TemporaryHold: true}); err != nil {
		t.Fatal(err)
	}
	if err := bkt.Object("h").Delete(ctx); statusOf(err) != 403 {
		t.Errorf("delete of a held object: %v", err)
	}
	for _, a := range []answer{w.do("PUT", "/bkt/h", []byte("two")), w.do("DELETE", "/bkt/h", nil)} {
		if a.StatusCode != 403 || !strings.Contains(a.body, "<Code>ObjectUnderActiveHold<") || !strings.Contains(a.body, "<Details>Object &#39;bkt/h&#39; is under active Temporary hold") {
			t.Errorf("XML: %d %s", a.StatusCode, a.body)
		}
	}
}

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
		if a := w.do("PATCH", "/storage/v1/b/bkt/o/a"+test.query, []byte(test.body)); a.StatusCode != test.status {
			t.Fatalf("%s %s = %d %s, want %d", test.query, test.body, a.StatusCode, a.body, test.status)
		}
	}
	for _, past := range []answer{
		w.do("POST", "/storage/v1/b/bkt/o/a/rewriteTo/b/bkt/o/b", []byte(retain("Locked", -1))),
		w.do("POST", "/storage/v1/b/bkt/o/b/compose", []byte(`{"sourceObjects":[{"name":"a"}],"destination":`+retain("Locked", -1)+`}`)),
		w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=b", []byte(retain("Locked", -1)), "Content-Type: application/json"),
	} {
		if past.StatusCode != 400 || !strings.Contains(past.body, "in the past") {
			t.Errorf("a new object with a retention in the past: %d %s", past.StatusCode, past.body)
		}
	}
	if a := w.do("POST", "/storage/v1/b/bkt/o/a/copyTo/b/bkt/o/b", []byte(`{}`)); a.StatusCode != 200 || strings.Contains(a.body, "retention") {
		t.Errorf("copy of a retained object: %d %s", a.StatusCode, a.body)
	}
	if a := w.do("DELETE", "/storage/v1/b/bkt/o/a", nil); a.StatusCode != 403 || !strings.Contains(a.body, "retentionPolicyNotMet") {
		t.Errorf("delete: %d %s", a.StatusCode, a.body)
	}
}

func TestHoldsAndRetention(t *testing.T) {
	w, bkt := official(t, nil)
	ctx := context.Background()
	w.insert("a", "first")
	a := bkt.Object("a")
	forbidden := func(what string, err error) {
		t.Helper()
		if statusOf(err) != 403 {
			t.Errorf("%s: %v, want 403", what, err)
		}
	}
	if _, err := a.Update(ctx, storage.ObjectAttrsToUpdate{TemporaryHold: true}); err != nil {
		t.Fatal(err)
	}
	forbidden("delete under a hold", a.Delete(ctx))
	if r := w.do("PUT", w.start("a"), []byte("second")); r.StatusCode != 403 || !strings.Contains(r.body, "is under active Temporary hold") || !strings.Contains(r.body, `"forbidden"`) {
		t.Errorf("overwrite under a hold: %d %s", r.StatusCode, r.body)
	}
	if _, err := a.Update(ctx, storage.ObjectAttrsToUpdate{TemporaryHold: false}); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(ctx); err != nil {
		t.Error(err)
	}

	if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{RetentionPolicy: &storage.RetentionPolicy{RetentionPeriod: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	w.insert("b", "kept")
	forbidden("delete within the retention period", bkt.Object("b").Delete(ctx))
	w.gcs.Advance(time.Hour)
	if err := bkt.Object("b").Delete(ctx); err != nil {
		t.Error(err)
	}
	if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{RetentionPolicy: &storage.RetentionPolicy{}, DefaultEventBasedHold: true, StorageClass: "NEARLINE"}); err != nil {
		t.Fatal(err)
	}
	w.insert("c", "held")
	attrs, err := bkt.Object("c").Attrs(ctx)
	if err != nil || !attrs.EventBasedHold || attrs.StorageClass != "NEARLINE" {
		t.Errorf("default hold and storage class: %+v, %v", attrs, err)
	}
	forbidden("delete under the default hold", bkt.Object("c").Delete(ctx))
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
