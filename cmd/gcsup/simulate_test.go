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

// TestSimulateTable checks the table that gcsup simulate prints.
func TestSimulateTable(t *testing.T) {
	code, out, _ := simulate(t, "--scenario", "gate", "--policy", "full")
	if code != exit.OK || !strings.Contains(out, "100 clients, 10 requests/s") || !strings.Contains(out, "full") {
		t.Errorf("exit code %d, table\n%s", code, out)
	}
}

// TestSimulateBadInput checks the exit codes and messages for bad flags.
func TestSimulateBadInput(t *testing.T) {
	tests := []struct {
		args string
		code int
		want string
	}{
		{"--policy fibonacci", exit.Usage, "choose one of none"},
		{"--scenario stampede", exit.Usage, "choose one of herd"},
		{"--clients 0", exit.Usage, "0 clients: want 1 to 1000000"},
		{"--clients many", exit.Usage, "want a whole number"},
		{"--capacity -1", exit.Usage, "capacity of -1"},
		{"--outage 13h", exit.Usage, "outage of 13h0m0s: want 0 to 12h0m0s"},
		{"herd", exit.Usage, ""},
		{"--clients 5 --svg /nowhere/chart.svg", exit.IO, "/nowhere/chart.svg"},
	}
	for _, test := range tests {
		code, out, messages := simulate(t, strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(messages, test.want) || out != "" {
			t.Errorf("simulate %s: exit code %d, %s%s; want %d with %q", test.args, code, out, messages, test.code, test.want)
		}
	}
}
