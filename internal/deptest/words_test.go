package deptest_test

import (
	"errors"
	"os/exec"
	"testing"
)

// words are the words that must not occur, and the one of docs/start/glossary.md that replaces each.
// Where has the files: any, or those with a prefix.
var words = []struct{ where, pattern, use string }{
	{"", `\bgcsup sessions\b`, "gcsup uploads"},
	{"", `\bsaved [Ss]essions?\b`, "saved upload"},
	{"", `\bstate\.Token\b|\bErrNoToken\b|\bErrCorruptToken\b|\bErrTokenVersion\b`, "state.Upload, ErrNotFound, ErrCorrupt, ErrVersion"},
	{"", `\bpaced_ms\b|\bpaced by\b|\b(is|are) paced\b`, "throttled"},
	{"", `\bunfit\b`, "unhealthy"},
	{"", `\bin trouble\b`, "unhealthy"},
	{"cmd/gcsup/", `\bdurable bytes\b`, "committed"},
	{"internal/cli/", `\bdurable\b|\bbytes acknowledged\b`, "committed"},
	{"", `\bbackoff\.(Gate|NoGate|Tries)\b|\bOptions\.Gate\b`, "backoff.Breaker, NoBreaker, Retries"},
	{"", `\bInParts\(|\bAutoParts\(|\bInSpool\b`, "upload.Parts, upload.Spool"},
	{"", `\bCommitEvery\b`, "ChunkSize"},
	{"", `\bSmallLimiter\b|\bLargeLimiter\b`, "Jobs"},
	{"", `\bupload\.Held\b|"type":"held"`, "LeaseHeld, lease_held"},
	{"", `\bmake walk\b`, "make model-check"},
	{"docs/", `\b[0-9]+ tries\b`, "retries, or attempts"},
	{"upload/outbox/", `\btries +uint|\.tries\b`, "failures"},
	{"", `no-gate\b|noGate\b|reason=gate\b|\+gate\b`, "no-circuit-breaker, circuit breaker"},
	{"internal/retrysim/", `\btries\b`, "retries"},
	{"fleet/", `--tries\b|"tries\b|\bTries\b`, "failures"},
}

// TestWords checks that no file has a word that another one replaced.
func TestWords(t *testing.T) {
	for _, w := range words {
		args := []string{"-C", "../..", "grep", "-nE", "-e", w.pattern, "--", ":!*words_test.go"}
		for _, kind := range []string{"*.go", "*.md", "*.txtar", "*.html", "Makefile"} {
			args = append(args, w.where+kind)
		}
		out, err := exec.Command("git", args...).CombinedOutput()
		if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 1 { // 1: no such line
			t.Errorf("use %s (%v):\n%s", w.use, err, out)
		}
	}
}
