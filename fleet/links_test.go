package fleet_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinksNoMetrics checks that a program with workers of its own does not link the client of Prometheus, which is
// for the command.
func TestLinksNoMetrics(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "gcsup/fleet").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "gcsup/fleet\n") || strings.Contains(string(out), "github.com/prometheus/") {
		t.Errorf("package fleet links\n%s", out)
	}
}
