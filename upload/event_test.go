package upload_test

import (
	"strings"
	"testing"

	"gcsup/upload"
)

// TestEveryEventKindHasAName checks that each kind has a different name.
func TestEveryEventKindHasAName(t *testing.T) {
	seen := map[string]bool{}
	for kind := range upload.KindCount {
		name := kind.String()
		if name == "" || strings.Contains(name, "(") || seen[name] {
			t.Errorf("kind %d is %q", int(kind), name)
		}
		seen[name] = true
	}
	if got := upload.EventKind(99).String(); got != "EventKind(99)" {
		t.Errorf("an unknown kind is %q", got)
	}
}
