package strictjson_test

import (
	"testing"

	"gcsup/fakegcs/internal/strictjson"
)

func TestDecode(t *testing.T) {
	type inner struct {
		N int64 `json:"n"`
	}
	type record struct {
		Inner inner  `json:"inner"`
		Text  string `json:"text"`
		Flag  bool   `json:"flag"`
	}
	for _, test := range []struct{ json, want string }{
		{`{"inner": {"n": 1}, "text": "t", "flag": true}`, ""},
		{`{"inner": {"n": 1.5}}`, "at.inner.n: want a whole number, not number 1.5"},
		{`{"inner": 5}`, "at.inner: want an object, not number"},
		{`{"text": 5}`, "at.text: want text, not number"},
		{`{"flag": "yes"}`, "at.flag: want true or false, not string"},
		{`[]`, "at: want an object, not array"},
		{`{"other": 1}`, `json: unknown field "other"`},
	} {
		got := ""
		if err := strictjson.Decode([]byte(test.json), &record{}, "at"); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("Decode(%s) = %q, want %q", test.json, got, test.want)
		}
	}
}
