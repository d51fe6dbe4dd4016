package deptest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words are the words that must not occur, and the one of docs/glossary.md that replaces each.
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
	const root = "../.."
	list, err := exec.Command("git", "-C", root, "ls-files", "*.go", "*.md", "*.txtar", "*.html", "Makefile").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		re := regexp.MustCompile(w.pattern)
		for name := range strings.FieldsSeq(string(list)) {
			if !strings.HasPrefix(name, w.where) || filepath.Base(name) == "words_test.go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, name))
			if os.IsNotExist(err) {
				continue // deleted, and not committed yet
			}
			if err != nil {
				t.Fatal(err)
			}
			for n, line := range bytes.Split(text, []byte("\n")) {
				if at := re.Find(line); at != nil {
					t.Errorf("%s:%d: %q, use %s", name, n+1, at, w.use)
				}
			}
		}
	}
}
