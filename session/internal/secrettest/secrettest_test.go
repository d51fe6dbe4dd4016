package secrettest_test

import (
	"fmt"
	"testing"

	"gcsup/session/internal/secrettest"
)

// TestIn checks In, on which the tests of other packages depend.
func TestIn(t *testing.T) {
	type naive struct{ uri string }
	n := naive{"https://storage.googleapis.com" + secrettest.Path}
	for _, text := range []string{fmt.Sprint(n), fmt.Sprintf("%#v", n), fmt.Sprintf("%x", n), fmt.Sprintf("%X", n), fmt.Sprintf("%q", n), fmt.Sprintf("% x", n.uri), fmt.Sprint([]byte(n.uri)), fmt.Sprintf("%#v", []byte(n.uri))} {
		if !secrettest.In(text) {
			t.Errorf("In(%s) = false, want true", text)
		}
	}
}
