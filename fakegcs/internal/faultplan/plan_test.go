package faultplan_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"gcsup/fakegcs/internal/faultplan"
)

func status(n int) faultplan.Action {
	return faultplan.Action{Effect: faultplan.EffectStatus, Status: n}
}

func TestMatch(t *testing.T) {
	put := faultplan.Request{Op: faultplan.OpPut, Method: "PUT", Bucket: "b", Object: "o", Data: true, From: 100, To: 200}
	open := put
	open.To = -1
	get := faultplan.Request{Op: faultplan.OpGet, Method: "GET", Bucket: "b", Object: "o"}
	for _, test := range []struct {
		match faultplan.Match
		r     faultplan.Request
		want  bool
	}{
		{faultplan.Match{}, put, true},
		{faultplan.Match{}, faultplan.Request{Op: faultplan.OpControl}, false},
		{faultplan.Match{Op: faultplan.OpPut}, put, true},
		{faultplan.Match{Op: faultplan.OpPut}, get, false},
		{faultplan.Match{Method: "put"}, put, true},
		{faultplan.Match{Method: "put"}, get, false},
		{faultplan.Match{Bucket: "b", Object: "o"}, get, true},
		{faultplan.Match{Bucket: "c"}, get, false},
		{faultplan.Match{Object: "O"}, get, false},
		{faultplan.Match{From: 1}, get, false},
		{faultplan.Match{From: 199}, put, true},
		{faultplan.Match{From: 200}, put, false},
		{faultplan.Match{From: 200}, open, true},
		{faultplan.Match{To: 100}, put, false},
		{faultplan.Match{To: 101}, put, true},
	} {
		var p faultplan.Plan
		p.Add([]faultplan.Fault{{Match: test.match, Do: status(500)}})
		if got := p.Take(&test.r) != nil; got != test.want {
			t.Errorf("%+v matches %+v: %v, want %v", test.match, test.r, got, test.want)
		}
	}
}

// Skip lets requests pass, Times bounds the rest, and each request meets at most
// one fault.
func TestSkipAndTimes(t *testing.T) {
	var p faultplan.Plan
	p.Add([]faultplan.Fault{{Skip: 1, Times: 2, Do: status(501)}, {Do: status(502)}, {Skip: 1, Times: -1, Do: status(503)}})
	r := &faultplan.Request{Op: faultplan.OpGet}
	for i, want := range []int{502, 501, 501, 0, 503, 503} {
		got := 0
		if do := p.Take(r); do != nil {
			got = do.Status
		}
		if got != want {
			t.Errorf("request %d meets %d, want %d", i+1, got, want)
		}
	}
	for i, want := range []string{"3 2 true", "1 1 true", "3 2 false"} {
		if c := p.Report()[i]; fmt.Sprint(c.Seen, c.Fired, c.Done) != want {
			t.Errorf("fault %d: %d %d %v, want %s", i+1, c.Seen, c.Fired, c.Done, want)
		}
	}
	if p.Clear(); p.Take(r) != nil || len(p.Report()) != 0 {
		t.Error("the plan has faults after Clear")
	}
}

// Nth counts the requests on each object separately, even those on which another
// fault acted.
func TestNth(t *testing.T) {
	var p faultplan.Plan
	if p.ByObject() {
		t.Error("an empty plan needs the names of objects")
	}
	p.Add([]faultplan.Fault{{Match: faultplan.Match{Nth: 1}, Times: -1, Do: status(501)}, {Match: faultplan.Match{Nth: 2}, Times: -1, Do: status(502)}})
	if !p.ByObject() {
		t.Error("a plan with Nth does not need the names of objects")
	}
	for i, step := range []struct {
		object string
		want   int
	}{{"a", 501}, {"b", 501}, {"b", 502}, {"a", 502}, {"a", 0}, {"b", 0}} {
		got := 0
		if do := p.Take(&faultplan.Request{Op: faultplan.OpPut, Object: step.object}); do != nil {
			got = do.Status
		}
		if got != step.want {
			t.Errorf("step %d meets %d, want %d", i+1, got, step.want)
		}
	}
}

// A random plan is valid, and the same for the same seed.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		for _, size := range []int64{-1, 0, 1, 1 << 20, 1<<63 - 1} {
			faults := faultplan.Random(seed, 5, size)
			if again := faultplan.Random(seed, 5, size); !reflect.DeepEqual(faults, again) {
				t.Fatalf("seed %d, size %d: two different plans", seed, size)
			}
			for _, f := range faults {
				if err := f.Validate(); err != nil {
					t.Errorf("seed %d, size %d: %v", seed, size, err)
				}
			}
		}
	}
}

func TestRetryAfterAt(t *testing.T) {
	now := time.Date(2024, 2, 29, 23, 59, 58, 0, time.UTC)
	for given, want := range map[string]string{"": "", "3": "3", "soon": "soon", "+5s": "Fri, 01 Mar 2024 00:00:03 GMT"} {
		a := faultplan.Action{RetryAfter: given}
		if got := a.RetryAfterAt(now); got != want {
			t.Errorf("RetryAfter %q = %q, want %q", given, got, want)
		}
	}
}
