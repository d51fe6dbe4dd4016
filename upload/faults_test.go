package upload_test

import (
	"slices"
	"testing"

	"gcsup/fakegcs"
)

// fault is a plan that an upload must survive.
type fault struct {
	name string
	plan fakegcs.Fault
}

// everyFault has the faults that can happen to every request.
var everyFault = []fault{
	{"503", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}}},
	{"503 before the body is read", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503, Early: true}}},
	{"503 three times", fakegcs.Fault{Times: 3, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}}},
	{"502 in HTML", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 502, Body: "<html>bad gateway</html>"}}},
	{"500", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 500}}},
	{"504", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 504}}},
	{"408", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 408}}},
	{"429", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 429, RetryAfter: "7"}}},
	{"429 with a date", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 429, RetryAfter: "+9s"}}},
	{"429 for a day", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 429, RetryAfter: "86400"}}},
	{"403 rateLimitExceeded", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 403, Reason: "rateLimitExceeded"}}},
	{"reset", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectReset}}},
	{"close", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectClose}}},
	{"lost reply", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectLoseReply}}},
	{"stall", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStall}}},
	{"stalled reply", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStallReply}}},
	{"delay", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectDelay, For: 40e9}}},
}

// dataFaults are for requests that carry object bytes.
var dataFaults = []fault{
	{"503 after half", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStatusAfter, Status: 503, Bytes: q}}},
	{"cut", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectCutRequest, Bytes: 3 * q / 2}}},
	{"cut at once", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectCutRequest, Bytes: 1}}},
	{"stalled body", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectStallBody, Bytes: q / 2}}},
	{"short commit", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectShortCommit, Bytes: q}}},
	{"no Range", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectNoRange}}},
	{"not found", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}}},
	{"gone", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectGone}}},
	{"gone, of a rate limit", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectGone, Status: 429}}},
}

// objectFaults are for replies that describe the object.
var objectFaults = []fault{
	{"reply cut", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectCutReply, Bytes: 20}}},
	{"reply truncated", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectTruncateReply, Bytes: 20}}},
	{"reply without a body", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectTruncateReply}}},
}

// finalFaults are for the request that finalizes the object.
var finalFaults = []fault{
	{"not final", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectNotFinal}}},
	{"slow", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectSlowFinalize, For: 90e9}}},
	{"slower than the stall timeout", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectSlowFinalize, For: 300e9}}},
}

// point is a request at which faults happen, and its faults in addition to those of
// every request.
type point struct {
	name  string
	match fakegcs.Match
	also  []fault
}

// eachFault runs check in a world with a fault, at each point. Of the faults it uses
// one in of, and other ones at each point.
func eachFault(t *testing.T, of int, points []point, check func(w *world, at string, do fakegcs.Action)) {
	t.Helper()
	if testing.Short() {
		of = 8
	}
	for at, p := range points {
		for i, f := range slices.Concat(everyFault, p.also) {
			if (at+i)%of != 0 {
				continue
			}
			t.Run(p.name+"/"+f.name, func(t *testing.T) {
				f.plan.Match = p.match
				inBubble(t, &fakegcs.Options{RunningHash: true, NoMD5: true, Faults: []fakegcs.Fault{f.plan}}, func(w *world) {
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
