package fakegcs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

func TestParseContentRange(t *testing.T) {
	for _, test := range []struct {
		header string
		want   contentRange
		ok     bool
	}{
		{"bytes 0-0/1", contentRange{first: 0, last: 0, total: 1}, true},
		{"bytes 262144-524287/*", contentRange{first: 262144, last: 524287, total: -1}, true},
		{"bytes 5-*/9", contentRange{first: 5, last: -1, total: 9}, true},
		{"bytes 5-*/*", contentRange{first: 5, last: -1, total: -1}, true},
		{"bytes */0", contentRange{query: true, last: -1, total: 0}, true},
		{"bytes */*", contentRange{query: true, last: -1, total: -1}, true},
		{"bytes 0-9223372036854775806/*", contentRange{last: math.MaxInt64 - 1, total: -1}, true},
		{"", contentRange{}, false},
		{"bytes", contentRange{}, false},
		{"bytes 0-9", contentRange{}, false},
		{"bytes 9-8/10", contentRange{}, false},
		{"bytes -8/10", contentRange{}, false},
		{"bytes +1-8/10", contentRange{}, false},
		{"bytes 1- 8/10", contentRange{}, false},
		{"bytes 0-9223372036854775807/*", contentRange{}, false},
		{"bytes 0-99999999999999999999/*", contentRange{}, false},
		{"octets 0-9/10", contentRange{}, false},
	} {
		got, err := parseContentRange(test.header)
		if (err == nil) != test.ok || err == nil && got != test.want {
			t.Errorf("parseContentRange(%q) = %+v, %v, want %+v, %v", test.header, got, err, test.want, test.ok)
		}
	}
}

func TestParseByteRange(t *testing.T) {
	for _, test := range []struct {
		spec      string
		size      int64
		from, to  int64
		ok, valid bool
	}{
		{"bytes=0-0", 10, 0, 1, true, true},
		{"bytes=3-", 10, 3, 10, true, true},
		{"bytes=3-99", 10, 3, 10, true, true},
		{"bytes=-3", 10, 7, 10, true, true},
		{"bytes=-30", 10, 0, 10, true, true},
		{"bytes=-0", 10, 10, 10, false, true},
		{"bytes=-3", 0, 0, 0, false, true},
		{"bytes=10-", 10, 10, 10, false, true},
		{"bytes=0-", 0, 0, 0, false, true},
		{"bytes=5-3", 10, 0, 0, false, false},
		{"bytes=0-1,3-4", 10, 0, 0, false, false},
		{"lines=0-1", 10, 0, 0, false, false},
	} {
		from, to, ok, valid := parseByteRange(test.spec, test.size)
		if ok != test.ok || valid != test.valid || ok && (from != test.from || to != test.to) {
			t.Errorf("parseByteRange(%q, %d) = %d, %d, %v, %v", test.spec, test.size, from, to, ok, valid)
		}
	}
}

func TestMultipartBoundary(t *testing.T) {
	for _, test := range []struct{ contentType, want string }{
		{"multipart/related; boundary=abc", "abc"},
		{`multipart/related; boundary="a b;c"`, "a b;c"},
		{"multipart/related; boundary='===============0123456789=='", "===============0123456789=="},
		{"Multipart/Related; charset=utf-8; BOUNDARY=abc", "abc"},
		{"multipart/related; boundary=abc; charset=utf-8", "abc"},
		{"multipart/related", ""},
		{"multipart/related; boundary=", ""},
		{"multipart/related; boundary='abc", ""},
		{"text/plain; boundary=abc", ""},
		{"", ""},
	} {
		if got := multipartBoundary(test.contentType); got != test.want {
			t.Errorf("multipartBoundary(%q) = %q, want %q", test.contentType, got, test.want)
		}
	}
}

func TestFieldMask(t *testing.T) {
	const body = `{"kind":"k","items":[{"name":"n","acl":{"role":"r","entity":"e"}}],"n":12345678901234567890}`
	for _, test := range []struct{ fields, want string }{
		{"kind", `map[kind:k]`},
		{"items(name)", `map[items:[map[name:n]]]`},
		{"items/acl/role,kind", `map[items:[map[acl:map[role:r]]] kind:k]`},
		{"items(acl(role),name)", `map[items:[map[acl:map[role:r] name:n]]]`},
		{"items/*/role", `map[items:[map[acl:map[role:r] name:n]]]`},
		{"n", `map[n:12345678901234567890]`},
		{"nothing", `map[]`},
	} {
		m, err := parseFields(test.fields)
		if err != nil {
			t.Errorf("parseFields(%q) = %v", test.fields, err)
			continue
		}
		var v map[string]any
		if err := unmarshalNumbers(m.cut([]byte(body)), &v); err != nil || fmt.Sprint(v) != test.want {
			t.Errorf("%s selects %v, %v, want %s", test.fields, v, err, test.want)
		}
	}
	for _, bad := range []string{"", ",", "a,", "a(", "a()", "a(b", "a)b", "/a", "a/", "a(b)c", "((((((((((((a))))))))))))"} {
		if m, err := parseFields(bad); err == nil {
			t.Errorf("parseFields(%q) = %v", bad, m)
		}
	}
}

func unmarshalNumbers(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(v)
}
