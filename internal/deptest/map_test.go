package deptest_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gcsup/internal/require"
)

var update = flag.Bool("update", false, "write the numbers in CONTRIBUTING.md, and docs/reference/api.txt")

// mapRow is a row of the map in CONTRIBUTING.md: a directory, and thousands of lines of code and of tests.
var mapRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([0-9.]+) \\| ([0-9.]+) \\|")

// TestMap checks that the map in CONTRIBUTING.md has all Go files, and that its numbers are roughly true:
// within a quarter, or 500 lines.
func TestMap(t *testing.T) {
	name := filepath.Join(root, "CONTRIBUTING.md")
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	rows := map[string]*[2]float64{}
	for _, m := range mapRow.FindAllSubmatch(page, -1) {
		rows[string(m[1])] = new([2]float64)
	}
	list, err := exec.Command("git", "-C", root, "ls-files", "*.go").Output()
	if err != nil {
		t.Skipf("the tree is no clone: %v", err)
	}
	for _, file := range strings.Fields(string(list)) {
		dir := path.Dir(file)
		for rows[dir] == nil && dir != "." {
			dir = path.Dir(dir)
		}
		if rows[dir] == nil {
			t.Errorf("%s has no row for %s", name, file)
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // deleted, and not committed yet
		}
		kind := 0
		if strings.HasSuffix(file, "_test.go") {
			kind = 1
		}
		rows[dir][kind] += float64(bytes.Count(text, []byte("\n"))) / 1000
	}
	if *update {
		page = mapRow.ReplaceAllFunc(page, func(row []byte) []byte {
			dir := string(mapRow.FindSubmatch(row)[1])
			return fmt.Appendf(nil, "| `%s` | %.1f | %.1f |", dir, rows[dir][0], rows[dir][1])
		})
		require.NoError(t, os.WriteFile(name, page, 0o644))
	}
	for _, m := range mapRow.FindAllSubmatch(page, -1) {
		for kind, what := range []string{"code", "tests"} {
			said, _ := strconv.ParseFloat(string(m[2+kind]), 64)
			if now := rows[string(m[1])][kind]; math.Abs(said-now) > max(0.5, now/4) {
				t.Errorf("%s says %.1f thousand lines of %s for %s, which has %.1f: go test ./internal/deptest -run TestMap -update writes the numbers", name, said, what, m[1], now)
			}
		}
	}
}

// TestContributing checks that the files, tests and make targets that CONTRIBUTING.md names exist.
func TestContributing(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	checked := 0
	for _, m := range regexp.MustCompile("(?m)[`^]make ([a-z-]+)((?:[^`\\n]*`, `[a-z-]+)*)").FindAllStringSubmatch(string(page), -1) {
		for _, target := range regexp.MustCompile("[a-z-]+").FindAllString(m[1]+m[2], -1) {
			checked++
			if !regexp.MustCompile(`(?m)^` + target + `[ :]`).Match(makefile) {
				t.Errorf("the Makefile has no target %s", target)
			}
		}
	}
	for _, m := range regexp.MustCompile("`(?:cd (\\S+) && )?go test (?:\\./(\\S+) )?-run (\\w+)").FindAllStringSubmatch(string(page), -1) {
		checked++
		files, _ := filepath.Glob(filepath.Join(root, m[1]+m[2], "*_test.go"))
		found := false
		for _, file := range files {
			text, _ := os.ReadFile(file)
			found = found || regexp.MustCompile(`(?m)^func Test\w*`+strings.TrimPrefix(m[3], "Test")).Match(text)
		}
		if !found {
			t.Errorf("%s: no such test", m[0])
		}
	}
	if checked < 20 {
		t.Errorf("checked only %d names", checked)
	}
}
