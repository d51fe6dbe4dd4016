package upload_test

import (
	"slices"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
)

// fault is a plan that an upload must survive.
type fault struct {
	name string
	plan faults.Fault
}

// everyFault has the faults that can happen to every request.
var everyFault = []fault{
	{"503", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}},
	{"503 before the body is read", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 503, Early: true}}},
	{"503 three times", faults.Fault{Times: 3, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}},
	{"502 in HTML", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 502, Body: "<html>bad gateway</html>"}}},
	{"500", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 500}}},
	{"504", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 504}}},
	{"408", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 408}}},
	{"429", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 429, RetryAfter: "7"}}},
	{"429 with a date", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 429, RetryAfter: "+9s"}}},
	{"429 for a day", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 429, RetryAfter: "86400"}}},
	{"403 rateLimitExceeded", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "rateLimitExceeded"}}},
	{"reset", faults.Fault{Do: faults.Action{Effect: faults.EffectReset}}},
	{"close", faults.Fault{Do: faults.Action{Effect: faults.EffectClose}}},
	{"lost reply", faults.Fault{Do: faults.Action{Effect: faults.EffectLoseReply}}},
	{"stall", faults.Fault{Do: faults.Action{Effect: faults.EffectStall}}},
	{"stalled reply", faults.Fault{Do: faults.Action{Effect: faults.EffectStallReply}}},
	{"delay", faults.Fault{Do: faults.Action{Effect: faults.EffectDelay, For: 40e9}}},
}

// dataFaults are for requests that carry object bytes.
var dataFaults = []fault{
	{"503 after half", faults.Fault{Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: q}}},
	{"cut", faults.Fault{Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: 3 * q / 2}}},
	{"cut at once", faults.Fault{Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: 1}}},
	{"stalled body", faults.Fault{Do: faults.Action{Effect: faults.EffectStallBody, Bytes: q / 2}}},
	{"short commit", faults.Fault{Do: faults.Action{Effect: faults.EffectShortCommit, Bytes: q}}},
	{"no Range", faults.Fault{Do: faults.Action{Effect: faults.EffectNoRange}}},
	{"not found", faults.Fault{Do: faults.Action{Effect: faults.EffectNotFound}}},
	{"gone", faults.Fault{Do: faults.Action{Effect: faults.EffectGone}}},
	{"gone, of a rate limit", faults.Fault{Do: faults.Action{Effect: faults.EffectGone, Status: 429}}},
}

// objectFaults are for replies that describe the object.
var objectFaults = []fault{
	{"reply cut", faults.Fault{Do: faults.Action{Effect: faults.EffectCutReply, Bytes: 20}}},
	{"reply truncated", faults.Fault{Do: faults.Action{Effect: faults.EffectTruncateReply, Bytes: 20}}},
	{"reply without a body", faults.Fault{Do: faults.Action{Effect: faults.EffectTruncateReply}}},
}

// finalFaults are for the request that finalizes the object.
var finalFaults = []fault{
	{"not final", faults.Fault{Do: faults.Action{Effect: faults.EffectNotFinal}}},
	{"slow", faults.Fault{Do: faults.Action{Effect: faults.EffectSlowFinalize, For: 90e9}}},
	{"slower than the stall timeout", faults.Fault{Do: faults.Action{Effect: faults.EffectSlowFinalize, For: 300e9}}},
}

// point is a request at which faults happen, and its faults in addition to those of
// every request.
type point struct {
	name  string
	match faults.Match
	also  []fault
}

// eachFault runs check in a world with a fault, at each point. Of the faults it uses
// one in of, and other ones at each point.
func eachFault(t *testing.T, of int, points []point, check func(w *world, at string, do faults.Action)) {
	t.Helper()
	if testing.Short() {
		of = 8
	}
	of = testsize.Raced(8, of)
	for at, p := range points {
		for i, f := range slices.Concat(everyFault, p.also) {
			if (at+i)%of != 0 {
				continue
			}
			t.Run(p.name+"/"+f.name, func(t *testing.T) {
				f.plan.Match = p.match
				inBubble(t, &fakegcs.Options{NoMD5: true, Faults: []faults.Fault{f.plan}}, func(w *world) {
					check(w, p.name, f.plan.Do)
				})
			})
		}
	}
}

// wantFaults fails unless all faults happened.
func (w *world) wantFaults() {
	w.t.Helper()
	for _, r := range w.srv.FaultReport() {
		if !r.Done {
			w.t.Errorf("the fault did not happen: %+v\n%s", r, w.trace())
		}
	}
}
