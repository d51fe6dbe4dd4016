package main

import (
	"testing"

	"gcsup/fakegcs"
)

func TestCostOf(t *testing.T) {
	query := func(held string) fakegcs.Request {
		return fakegcs.Request{Op: fakegcs.OpQuery, Object: "o", Range: held}
	}
	put := func(object, rng string, n int64) fakegcs.Request {
		return fakegcs.Request{Op: fakegcs.OpPut, Object: object, ContentRange: rng, Received: n}
	}
	for _, test := range []struct {
		name     string
		requests []fakegcs.Request
		want     cost
	}{
		{"nothing repeated", []fakegcs.Request{put("o", "bytes 0-99/200", 70), query("bytes=0-49"), put("o", "bytes 50-199/200", 150)}, cost{220, 0}},
		{"from the start", []fakegcs.Request{put("o", "bytes 0-99/200", 70), query("bytes=0-49"), put("o", "bytes 0-199/200", 200)}, cost{270, 50}},
		{"cut in the committed bytes", []fakegcs.Request{query("bytes=0-49"), put("o", "bytes 10-199/200", 20)}, cost{20, 20}},
		{"another object", []fakegcs.Request{query("bytes=0-49"), put("p", "bytes 0-99/100", 100)}, cost{100, 0}},
		{"no data", []fakegcs.Request{query("bytes=0-99"), {Op: fakegcs.OpFinalize, Object: "o", ContentRange: "bytes */100"}, {Op: fakegcs.OpGet, Object: "o"}}, cost{}},
	} {
		if got, err := costOf(test.requests); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", test.name, got, err, test.want)
		}
	}
}
