package fakegcs

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"gcsup/internal/require"
)

// appendJSON writes what encode writes, or nothing.
func TestAppendJSON(t *testing.T) {
	at := time.Date(2026, 11, 23, 1, 2, 3, 40e6, time.UTC)
	fast := 0
	check := func(o Object) {
		t.Helper()
		r := o.resource("http://host")
		want, err := encode(r)
		require.NoError(t, err)
		got, ok := r.appendJSON([]byte("before"))
		if !ok {
			return
		}
		fast++
		if got, _ = bytes.CutPrefix(got, []byte("before")); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	usual := Object{
		Bucket: "bkt", Name: "a/b", Generation: 17, Metageneration: 1, Size: 5, CRC32C: 77, MD5: bytes.Repeat([]byte{255}, 16), ContentType: "text/plain",
		StorageClass: "STANDARD", Owner: &Owner{objectOwner}, Etag: "x=", TimeCreated: at, Updated: at, TimeFinalized: at, TimeStorageClassUpdated: at,
	}
	check(usual)
	if check(Object{}); fast != 2 {
		t.Fatalf("%d of 2 objects are encoded fast", fast)
	}
	for _, name := range []string{`"`, `\`, "\n", "ü", "<&>", "\u2028", "\xff", "\x7f", ""} {
		o := usual
		o.Name = name
		check(o)
	}
	for _, metadata := range []map[string]string{{}, {"k": "v"}, {"b": "1", "a": "2", "": ""}, {"ü": "x"}, {"x": "\n"}} {
		o := usual
		o.Metadata = metadata
		check(o)
	}
	// Each field is written, or leaves the object to encode.
	values := []any{
		"text", int64(3), 4, true, at, []byte{1, 2}, CRC32C(9), map[string]string{"k": "v", "a": "b"}, &Contexts{map[string]Context{"k": {Value: "v"}}}, []ACLRule{{"allUsers", "READER"}},
		&Owner{"user"}, &Retention{Mode: "Locked"}, &Encryption{"AES256", "x"},
	}
	for i := range reflect.TypeFor[Object]().NumField() {
		for _, base := range []Object{{}, usual} {
			field := reflect.ValueOf(&base).Elem().Field(i)
			at := slices.IndexFunc(values, func(v any) bool { return reflect.TypeOf(v) == field.Type() })
			if at < 0 {
				t.Fatalf("no value for the field %s", reflect.TypeFor[Object]().Field(i).Name)
			}
			field.Set(reflect.ValueOf(values[at]))
			check(base)
		}
	}
}

func FuzzDecodePlain(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "name" : "a/b" , "crc32c" : "AAAAAA==" } `, `{"name":"x","name":"y"}`, `{"metadata":{"k":"v","k":"w"}}`, `{"metadata":{}}`,
		`{"md5Hash":"AAAA"}`, `{"md5Hash":"AA A"}`, `{"crc32c":""}`, `{"storageClass":"nearline"}`, `{"storageClass":"none"}`, `{"Name":"x"}`, `{"name":1}`, `{"name":"ü"}`,
		`{"name":"a\u0062"}`, `{"name":"x"}x`, `{"name":"x",}`, `{"size":"1"}`, `{"acl":[]}`, `null`, `{"contentType":"a","cacheControl":"b","kmsKeyName":"c"}`, `{"metadata":{"k":null}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, want, ok := decodePlain(data)
		if !ok {
			return
		}
		wantObject, wantSums, err := decodeGeneral(data)
		if err != nil || !reflect.DeepEqual(o, wantObject) || !reflect.DeepEqual(want, wantSums) {
			got, _ := json.Marshal(o)
			other, _ := json.Marshal(wantObject)
			t.Errorf("%q: %s %v, want %s %v, %v", data, got, want, other, wantSums, err)
		}
	})
}
