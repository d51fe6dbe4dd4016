package main

import (
	"cmp"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

func TestCostOf(t *testing.T) {
	at := func(seconds int, r fakegcs.Request) fakegcs.Request { // a request takes a second
		r.Object, r.Time, r.Elapsed = cmp.Or(r.Object, "o"), time.Unix(int64(seconds), 0), time.Second
		return r
	}
	query := func(held string) fakegcs.Request { return fakegcs.Request{Op: faults.OpQuery, Range: held} }
	put := func(rng string, n int64) fakegcs.Request {
		return fakegcs.Request{Op: faults.OpPut, ContentRange: rng, Received: n}
	}
	for _, test := range []struct {
		name     string
		requests []fakegcs.Request
		want     cost
	}{
		{"nothing repeated", []fakegcs.Request{at(1, put("bytes 0-99/200", 70)), at(2, query("bytes=0-49")), at(3, put("bytes 50-199/200", 150))}, cost{220, 0}},
		{"from the start", []fakegcs.Request{at(1, put("bytes 0-99/200", 70)), at(2, query("bytes=0-49")), at(3, put("bytes 0-199/200", 200))}, cost{270, 50}},
		{"a silent request that ends late", []fakegcs.Request{at(2, query("bytes=0-49")), at(1, put("bytes 0-99/200", 70)), at(3, put("bytes 50-199/200", 150))}, cost{220, 0}},
		{"cut in the committed bytes", []fakegcs.Request{at(1, query("bytes=0-49")), at(2, put("bytes 10-199/200", 20))}, cost{20, 20}},
		{"another object", []fakegcs.Request{at(1, query("bytes=0-49")), at(2, fakegcs.Request{Op: faults.OpPut, Object: "p", ContentRange: "bytes 0-99/100", Received: 100})}, cost{100, 0}},
		{"no data", []fakegcs.Request{at(1, query("bytes=0-99")), at(2, fakegcs.Request{Op: faults.OpFinalize, ContentRange: "bytes */100"}), at(3, fakegcs.Request{Op: faults.OpGet})}, cost{}},
	} {
		if got, err := costOf(test.requests); err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", test.name, got, err, test.want)
		}
	}
}
