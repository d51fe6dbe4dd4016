//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// TestReadme runs the commands of README.md in their order, as they stand, in one shell and with an
// empty home directory. Each block prints the lines of the block below it, among others.
func TestReadme(t *testing.T) {
	t.Parallel()
	if testsize.Full(1, 0) == 0 {
		t.Skip("links the program twice; needs GCSUP_TEST_FULL=1")
	}
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	if lines := strings.Count(string(page), "\n"); lines > 80 {
		t.Errorf("README.md has %d lines, want at most 80", lines)
	}
	if !strings.Contains(string(page), "`go test ./...` runs the tests") {
		t.Error("README.md does not name the command that runs the tests")
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(?:```\n(.*?)^```\n)?").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 2 {
		t.Fatalf("found %d blocks", len(blocks))
	}

	home := t.TempDir()
	const mark = "--- the next block"
	var script strings.Builder
	// On a slow machine, the upload may not have begun after the time that the page waits.
	script.WriteString(`sleep() { command sleep "$1"; until [ -n "$(find ~/.local/state/gcsup/emulator -size +1M)" ]; do command sleep 0.1; done; }` + "\n")
	for _, b := range blocks {
		fmt.Fprintf(&script, "%secho '%s'\n", b[1], mark)
	}
	cmd := exec.Command("bash", "-e", "-c", script.String())
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "STORAGE_EMULATOR_HOST=", "GOPATH=", "GOBIN=",
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), // it compiles and downloads nothing twice
		"GOFLAGS=-ldflags=-w") // links faster
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, printed := range strings.Split(string(out), mark+"\n")[:len(blocks)] {
		rest := withoutValues(printed)
		for line := range strings.Lines(withoutValues(blocks[i][2])) {
			_, after, found := strings.Cut("\n"+rest, "\n"+line)
			if !found {
				t.Fatalf("README.md says that\n%sprints\n%sbut it prints\n%s", blocks[i][1], line, printed)
			}
			rest = after
		}
	}
}

// goEnv returns a setting of the go command.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
