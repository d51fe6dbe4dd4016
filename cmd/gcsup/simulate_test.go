package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/cli/exit"
)

// simulate runs the command in this process.
func simulate(t *testing.T, args ...string) (code int, out, messages string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), append([]string{"simulate"}, args...), stdio{strings.NewReader(""), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

// TestSimulate checks the JSON output and the chart of gcsup simulate.
func TestSimulate(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "chart.svg")
	args := []string{"--clients", "50", "--capacity", "10", "--outage", "20s", "--policy", "exponential,bidmanager", "--json", "--svg", chart}
	code, out, messages := simulate(t, args...)
	if code != exit.OK || messages != "" {
		t.Fatalf("exit code %d, %s", code, messages)
	}
	var names []string
	for line := range strings.Lines(out) {
		var result map[string]any
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		for _, key := range []string{"policy", "requests", "wasted", "peak_per_s", "p50_s", "p99_s", "all_s", "max_wait_s", "failed"} {
			if _, ok := result[key]; !ok {
				t.Errorf("no %q in %s", key, line)
			}
		}
		names = append(names, result["policy"].(string))
	}
	if got := strings.Join(names, " "); got != "exponential bidmanager" {
		t.Errorf("policies %q", got)
	}
	svg, err := os.ReadFile(chart)
	if err != nil || !bytes.HasPrefix(svg, []byte("<svg ")) {
		t.Errorf("the chart is %.20q, %v", svg, err)
	}
	if _, again, _ := simulate(t, args...); again != out {
		t.Error("the same seed gives different output")
	}
	if _, other, _ := simulate(t, append(args, "--seed", "2")...); other == out {
		t.Error("another seed gives the same output")
	}
}
