package recorded

import (
	"net/http"
	"slices"
	"testing"
)

// TestCompare checks that the comparison sees each kind of difference, and none in values that each
// server chooses.
func TestCompare(t *testing.T) {
	reply := func(status int, body string, header ...string) answer {
		h := http.Header{"Content-Type": {"application/json; charset=UTF-8"}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return answer{Status: status, Header: h, Body: []byte(body)}
	}
	const object = `{"generation":"1773932904741118","id":"b/o/1773932904741118","timeCreated":"2026-03-19T15:08:24.743Z","etag":"CP7=","size":"5"}`
	for _, test := range []struct {
		name     string
		was, is  answer
		expected []string
	}{
		{"the same", reply(200, object), reply(200, object), nil},
		{"chosen values", reply(200, object, "Etag", "CP7="), reply(200, `{"generation":"1795557374064000","id":"b/o/1795557374064000","timeCreated":"2026-11-24T15:08:24.000Z","etag":"AAZ=","size":"5"}`, "Etag", "AAZ="), nil},
		{"status", reply(200, object), reply(201, object), []string{"status"}},
		{"another value", reply(200, object), reply(200, `{"generation":"1","id":"b/o/1","timeCreated":"2026-11-24T15:08:24.000Z","etag":"x","size":"6"}`), []string{"body size"}},
		{"another object in id", reply(200, object), reply(200, `{"generation":"1","id":"b/p/1","timeCreated":"2026-11-24T15:08:24.000Z","etag":"x","size":"5"}`), []string{"body id"}},
		{"two decimals", reply(200, object), reply(200, `{"generation":"1","id":"b/o/1","timeCreated":"2026-11-24T15:08:24.00Z","etag":"x","size":"5"}`), []string{"body timeCreated"}},
		{"a missing field", reply(200, object), reply(200, `{"generation":"1","id":"b/o/1","timeCreated":"2026-11-24T15:08:24.000Z","etag":"x"}`), []string{"body size"}},
		{"one more field", reply(200, `{}`), reply(200, `{"kind":"x"}`), []string{"body kind"}},
		{"a list", reply(200, `{"items":[{"name":"a"},{"name":"b"}]}`), reply(200, `{"items":[{"name":"a"},{"name":"c"}]}`), []string{"body items name"}},
		{"a shorter list", reply(200, `{"items":["a","b"]}`), reply(200, `{"items":["a"]}`), []string{"body items"}},
		{"a missing header", reply(200, "{}", "Vary", "Origin"), reply(200, "{}"), []string{"header Vary"}},
		{"one more header", reply(200, "{}"), reply(200, "{}", "Vary", "Origin"), []string{"header Vary"}},
		{"a random header", reply(200, "{}", "X-Guploader-Uploadid", "a"), reply(200, "{}", "X-Guploader-Uploadid", "b"), nil},
		{"no random header", reply(200, "{}", "X-Guploader-Uploadid", "a"), reply(200, "{}"), []string{"header X-Guploader-Uploadid"}},
		{"bytes", reply(200, "a", "Content-Type", "text/plain"), reply(200, "b", "Content-Type", "text/plain"), []string{"body"}},
		{"XML", reply(404, "<Error><Code>A</Code><Details>x</Details></Error>"), reply(404, "<Error><Code>A</Code></Error>"), []string{"body Details"}},
	} {
		var at []string
		for _, d := range compare(test.was, test.is, newValues()) {
			at = append(at, d.At)
		}
		if !slices.Equal(at, test.expected) {
			t.Errorf("%s: differences at %q, want %q", test.name, at, test.expected)
		}
	}
}
