package faultplan_test

import (
	"fmt"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/faultplan"
	"gcsup/fakegcs/internal/ops"
)

func status(n int) faults.Action {
	return faults.Action{Effect: faults.EffectStatus, Status: n}
}

func TestMatch(t *testing.T) {
	put := faultplan.Request{Op: faults.OpPut, Method: "PUT", Bucket: "b", Object: "o", Data: true, From: 100, To: 200}
	open := put
	open.To = -1
	get := faultplan.Request{Op: faults.OpGet, Method: "GET", Bucket: "b", Object: "o"}
	for _, test := range []struct {
		match faults.Match
		r     faultplan.Request
		want  bool
	}{
		{faults.Match{}, put, true},
		{faults.Match{}, faultplan.Request{Op: ops.Control}, false},
		{faults.Match{Op: faults.OpPut}, put, true},
		{faults.Match{Op: faults.OpPut}, get, false},
		{faults.Match{Method: "put"}, put, true},
		{faults.Match{Method: "put"}, get, false},
		{faults.Match{Bucket: "b", Object: "o"}, get, true},
		{faults.Match{Bucket: "c"}, get, false},
		{faults.Match{Object: "O"}, get, false},
		{faults.Match{From: 1}, get, false},
		{faults.Match{From: 199}, put, true},
		{faults.Match{From: 200}, put, false},
		{faults.Match{From: 200}, open, true},
		{faults.Match{To: 100}, put, false},
		{faults.Match{To: 101}, put, true},
	} {
		var p faultplan.Plan
		p.Add([]faults.Fault{{Match: test.match, Do: status(500)}})
		if got := p.Take(&test.r) != nil; got != test.want {
			t.Errorf("%+v matches %+v: %v, want %v", test.match, test.r, got, test.want)
		}
	}
}

// Skip lets requests pass, Times bounds the rest, and each request meets at most
// one fault.
func TestSkipAndTimes(t *testing.T) {
	var p faultplan.Plan
	p.Add([]faults.Fault{{Skip: 1, Times: 2, Do: status(501)}, {Do: status(502)}, {Skip: 1, Times: -1, Do: status(503)}})
	r := &faultplan.Request{Op: faults.OpGet}
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
		t.Error("the plan has list after Clear")
	}
}

// Nth counts the requests on each object separately, even those on which another
// fault acted.
func TestNth(t *testing.T) {
	var p faultplan.Plan
	if p.ByObject() {
		t.Error("an empty plan needs the names of objects")
	}
	p.Add([]faults.Fault{{Match: faults.Match{Nth: 1}, Times: -1, Do: status(501)}, {Match: faults.Match{Nth: 2}, Times: -1, Do: status(502)}})
	if !p.ByObject() {
		t.Error("a plan with Nth does not need the names of objects")
	}
	for i, step := range []struct {
		object string
		want   int
	}{{"a", 501}, {"b", 501}, {"b", 502}, {"a", 502}, {"a", 0}, {"b", 0}} {
		got := 0
		if do := p.Take(&faultplan.Request{Op: faults.OpPut, Object: step.object}); do != nil {
			got = do.Status
		}
		if got != step.want {
			t.Errorf("step %d meets %d, want %d", i+1, got, step.want)
		}
	}
}
