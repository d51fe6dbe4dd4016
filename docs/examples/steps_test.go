package examples

import (
	"bytes"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session"
)

func TestSteps(t *testing.T) {
	data := content(3<<20 + 17)
	fault := func(op faults.Op, effect faults.Effect, n int64) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Do: faults.Action{Effect: effect, Bytes: n}}
	}
	for name, faults := range map[string][]faults.Fault{
		"no failure":             nil,
		"a request is cut":       {fault(faults.OpPut, faults.EffectCutRequest, 300_000)},
		"the session is lost":    {fault(faults.OpPut, faults.EffectGone, 0)},
		"the last reply is lost": {fault(faults.OpFinalize, faults.EffectLoseReply, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait
			srv := emulator(t, faults...)
			client, err := session.NewClient(srv.Client(), srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			object, err := Steps(t.Context(), client, session.Spec{Bucket: "bucket", Object: "o"}, bytes.NewReader(data), int64(len(data)), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			wantObject(t, srv, "bucket", "o", data)
			if object.Size != int64(len(data)) {
				t.Errorf("the object has %d bytes, want %d", object.Size, len(data))
			}
			for _, f := range srv.FaultReport() {
				if f.Fired == 0 {
					t.Error("the fault did not act")
				}
			}
		})
	}
}
