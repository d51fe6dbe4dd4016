package upload_test

import (
	"slices"
	"testing"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/internal/testsize"
	"gcsup/upload"
)

// TestRequestsWhenNothingFails checks which requests are made for each size.
func TestRequestsWhenNothingFails(t *testing.T) {
	tests := []struct {
		name string
		size int64
		with func(*upload.Options)
		want string
	}{
		{"empty", 0, nil, "insert  -> 200\n"},
		{"one byte", 1, nil, "insert  -> 200\n"},
		{"8 MiB", 8 * mib, nil, "insert  -> 200\n"},
		{"8 MiB and a byte", 8*mib + 1, nil, "start  -> 200\nput 0-8388607/8388609 -> 200 bytes=0-8388607\nfinalize 8388608-8388608/8388609 -> 200\n"},
		{"a multiple of 256 KiB", 9 * mib, nil, "start  -> 200\nput 0-9175039/9437184 -> 200 bytes=0-9175039\nfinalize 9175040-9437183/9437184 -> 200\n"},
		{"256 KiB and a byte, chunked", q + 1, resumable, "start  -> 200\nput 0-262143/262145 -> 200 bytes=0-262143\nfinalize 262144-262144/262145 -> 200\n"},
		{"512 KiB, chunked", 2 * q, resumable, "start  -> 200\nput 0-262143/524288 -> 200 bytes=0-262143\nfinalize 262144-524287/524288 -> 200\n"},
		{"an odd chunk size is rounded up", 2*q + 1, func(o *upload.Options) { o.ChunkSize = q + 1 }, "start  -> 200\nput 0-524287/524289 -> 200 bytes=0-524287\nfinalize 524288-524288/524289 -> 200\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(tt.size)
				with := []func(*upload.Options){}
				if tt.with != nil {
					with = append(with, tt.with)
				}
				res, err := w.uploader(with...).File(w.t.Context(), w.file(content), spec)
				if err != nil {
					t.Fatal(err)
				}
				w.wantObject("obj", content)
				w.wantSaved(0)
				if got := w.trace(); got != tt.want {
					t.Errorf("requests:\n%swant:\n%s", got, tt.want)
				}
				o, _ := w.srv.Object("bkt", "obj")
				if res.Object == nil || res.Object.Generation != o.Generation || res.Object.Size != tt.size || res.Object.CRC32C != chunk.Update(0, content) {
					t.Errorf("Result.Object = %+v", res.Object)
				}
				if res.BytesSent != tt.size || res.BytesResent != 0 || res.Retries != 0 || res.Resumed || res.Waited != 0 || res.Size != tt.size {
					t.Errorf("Result = %+v", res)
				}
				if res.Requests != len(w.srv.Requests()) {
					t.Errorf("Result.Requests = %d, the server saw %d", res.Requests, len(w.srv.Requests()))
				}
			})
		})
	}
}

// fault is a plan with what the upload should need to survive it.
type fault struct {
	name string
	plan fakegcs.Fault
}

// faults are everything that can happen to an exchange and that an upload must
// survive, each at one request; the caller says which.
var faults = []fault{
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

// objectFaults are for a reply that tells of the object.
var objectFaults = []fault{
	{"reply cut", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectCutReply, Bytes: 20}}},
	{"reply truncated", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectTruncateReply, Bytes: 20}}},
	{"reply without a body", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectTruncateReply}}},
}

// finalFaults are for the request that ends the object.
var finalFaults = []fault{
	{"not final", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectNotFinal}}},
	{"slow", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectSlowFinalize, For: 90e9}}},
	{"slower than the stall timeout", fakegcs.Fault{Do: fakegcs.Action{Effect: fakegcs.EffectSlowFinalize, For: 300e9}}},
}

// TestFileSurvives checks that a file is uploaded despite each fault, at the
// start, at the first data, in the middle and at the end.
func TestFileSurvives(t *testing.T) {
	t.Parallel()
	points := []struct {
		name  string
		match fakegcs.Match
		also  []fault
	}{
		{"start", fakegcs.Match{Op: fakegcs.OpStart}, nil},
		{"first data", fakegcs.Match{Op: fakegcs.OpPut}, dataFaults},
		{"middle", fakegcs.Match{Op: fakegcs.OpPut, From: 4 * q, To: 5 * q}, dataFaults},
		{"end", fakegcs.Match{Op: fakegcs.OpFinalize}, slices.Concat(objectFaults, finalFaults, dataFaults)},
		{"small", fakegcs.Match{Op: fakegcs.OpInsert}, objectFaults},
	}
	content := data(7*q + 12345)
	every := testsize.Full(1, 2)
	if testing.Short() {
		every = 4
	}
	for at, p := range points {
		for i, f := range append(faults, p.also...) {
			if (at+i)%every != 0 { // each fault at some of the points
				continue
			}
			t.Run(p.name+"/"+f.name, func(t *testing.T) {
				f.plan.Match = p.match
				inBubble(t, &fakegcs.Options{RunningHash: true, Faults: []fakegcs.Fault{f.plan}}, func(w *world) {
					with := func(o *upload.Options) { o.ChunkSize = 2 * q }
					if p.name == "small" {
						with = func(*upload.Options) {}
					}
					res, err := w.uploader(with).File(w.t.Context(), w.file(content), spec)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					w.wantObject("obj", content)
					w.wantSaved(0)
					for _, r := range w.srv.FaultReport() {
						if !r.Done {
							t.Errorf("the fault did not happen: %+v\n%s", r, w.trace())
						}
					}
					seen := len(w.srv.Requests())
					if f.plan.Do.Effect == fakegcs.EffectStall {
						seen++ // it is noted when it is over
					}
					if res.Requests != seen {
						t.Errorf("Result.Requests = %d, the server saw %d\n%s", res.Requests, seen, w.trace())
					}
					w.mu.Lock()
					for _, e := range w.events {
						if e.Delay >= 60e9 {
							t.Errorf("a wait of %v", e.Delay)
						}
					}
					w.mu.Unlock()
				})
			})
		}
	}
}
