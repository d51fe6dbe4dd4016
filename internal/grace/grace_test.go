package grace

import "testing"

// TestNested checks that nothing is cut short by what waits for it.
func TestNested(t *testing.T) {
	if Requests+Event > Call {
		t.Errorf("the requests of a canceled upload take %v, and its call waits for %v only", Requests, Call)
	}
	if Output > Call || Signal >= Requests {
		t.Errorf("the output ends after %v, a second signal counts after %v, and the call returns after %v", Output, Signal, Call)
	}
	if Store <= Call {
		t.Errorf("a store has %v, no more than a call", Store)
	}
}
