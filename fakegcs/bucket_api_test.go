package fakegcs_test

import (
	"fmt"
	"strings"
	"testing"

	"gcsup/fakegcs"
)

// TestLocations checks the location type of each location. A bucket in two regions has an objective for its replication.
func TestLocations(t *testing.T) {
	w := newWorld(t, nil)
	for _, test := range []struct {
		given, location, kind string
		rpo                   any
	}{{"eu", "EU", "multi-region", nil}, {"NAM4", "NAM4", "dual-region", "DEFAULT"}, {"europe-west3", "EUROPE-WEST3", "region", nil}} {
		a := w.do("POST", "/storage/v1/b", []byte(`{"name":"in-`+strings.ToLower(test.given)+`","location":"`+test.given+`"}`))
		if m := a.json(t); a.StatusCode != 200 || m["location"] != test.location || m["locationType"] != test.kind || m["rpo"] != test.rpo {
			t.Errorf("%v: %d %s", test, a.StatusCode, a.body)
		}
	}
}

// TestBucketPages lists buckets page by page, and by prefix in both APIs.
func TestBucketPages(t *testing.T) {
	w := newWorld(t, nil) // has "bkt"
	for _, name := range []string{"pag-c", "pag-a", "pag-d", "pag-b"} {
		w.createBucket(fakegcs.Bucket{Name: name})
	}
	for limit := 1; limit <= 5; limit++ {
		var got []string
		pages := 0
		for token := ""; ; pages++ {
			page := w.do("GET", fmt.Sprintf("/storage/v1/b?project=p&prefix=pag-&maxResults=%d&pageToken=%s", limit, escape(token)), nil).json(t)
			items := asList(page["items"])
			if len(items) > limit {
				t.Errorf("a page of %d has %d buckets", limit, len(items))
			}
			for _, item := range items {
				got = append(got, item.(map[string]any)["name"].(string))
			}
			if token, _ = page["nextPageToken"].(string); token == "" {
				break
			}
		}
		if strings.Join(got, " ") != "pag-a pag-b pag-c pag-d" || pages != 3/limit {
			t.Errorf("with pages of %d: %s, %d next pages", limit, got, pages)
		}
	}
}

// 64-bit numbers are accepted as strings and as numbers, and returned as strings.
func TestNumbersInJSON(t *testing.T) {
	w := newWorld(t, nil)
	for _, test := range []struct {
		period string
		status int
	}{{`"60"`, 200}, {`60`, 200}, {`"x"`, 400}, {`1.5`, 400}, {`"0"`, 400}, {`0`, 400}, {`true`, 400}, {`"3155760001"`, 400}, {`99999999999999999999`, 400}} {
		a := w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"retentionPolicy":{"retentionPeriod":`+test.period+`}}`))
		if a.StatusCode != test.status || test.status == 200 && !strings.Contains(a.body, `"retentionPeriod": "60"`) {
			t.Errorf("a period of %s: %d %s", test.period, a.StatusCode, a.body)
		}
	}
}
