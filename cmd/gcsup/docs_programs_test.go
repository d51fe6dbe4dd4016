package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// TestGuidePrograms runs the programs and the test in the guides, as they stand.
func TestGuidePrograms(t *testing.T) {
	t.Parallel()
	if testsize.Full(1, 0) == 0 {
		t.Skip("links three programs; needs GCSUP_TEST_FULL=1")
	}
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk.img")
	require.NoError(t, os.WriteFile(disk, make([]byte, 10<<20), 0o600))
	ran := 0
	for _, guide := range []string{"go-program.md", "tests.md"} {
		for _, block := range blocks(t, guide, "go") {
			at := t.TempDir()
			run := func(dir string, args ...string) string {
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir = dir // "" is in this module
				cmd.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+srv.URL)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %v\n%s", guide, args, err, out)
				}
				return string(out)
			}
			test := strings.HasPrefix(block, "package mypackage\n")
			file := filepath.Join(at, "main.go")
			if test {
				file = filepath.Join(at, "guide_test.go")
			}
			require.NoError(t, os.WriteFile(file, []byte(block), 0o600))
			if test {
				run("", "go", "test", file)
			} else {
				run("", "go", "build", "-o", filepath.Join(at, "program"), file)
				out, want := run(at, "./program", disk), "gs://my-bucket/disk.img 10485760 bytes\n"
				if strings.Contains(block, "NewWriter") {
					want = "report.csv 4 bytes\n"
				}
				if out != want {
					t.Errorf("%s: the program printed %q, want %q", guide, out, want)
				}
			}
			ran++
		}
	}
	if ran != 3 {
		t.Errorf("ran %d programs, want 3", ran)
	}
}

// TestGuideEffects checks that the guide names each effect of a fault.
func TestGuideEffects(t *testing.T) {
	page := documents(t)["../../docs/how-to/tests.md"]
	_, table, _ := strings.Cut(page, "\n| what fails | effects |")
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(table, -1) {
		named[m[1]] = true
	}
	for _, effect := range faults.Effects() {
		if !named[string(effect)] {
			t.Errorf("docs/how-to/tests.md does not name the effect %s", effect)
		}
		delete(named, string(effect))
	}
	for name := range named {
		t.Errorf("docs/how-to/tests.md names the effect %s, which does not exist", name)
	}
}
