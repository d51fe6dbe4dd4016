package fakegcs

import (
	"testing"

	"gcsup/fakegcs/faults"
)

// Each effect sets a field that a handler reads, for the operations that it can act
// on.
func TestEveryEffectActs(t *testing.T) {
	if newFault(nil, true) != (fault{}) {
		t.Error("no action is a fault")
	}
	for _, effect := range faults.Effects() {
		do := &faults.Action{Effect: effect, Status: 503, Bytes: 1, For: 1}
		for _, data := range []bool{true, false} {
			f := newFault(do, data)
			if f.effect != effect {
				t.Errorf("%s: the request log has %q", effect, f.effect)
			}
			f.effect, f.connection = "", false
			if f == (fault{}) {
				t.Errorf("%s sets nothing (data: %t)", effect, data)
			}
		}
	}
}
