package deptest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed lists the packages outside the standard library that each package may
// link, directly or indirectly. An entry is an exact path, or a module with
// "/...". The test fails for a package that is not listed.
var allowed = map[string][]string{
	"gcsup/backoff":                     {},
	"gcsup/chunk":                       {},
	"gcsup/session":                     {"gcsup/backoff", "gcsup/chunk", "github.com/gofrs/flock/...", "golang.org/x/sys/..."},
	"gcsup/upload":                      {"gcsup/backoff", "gcsup/chunk", "gcsup/session", "github.com/gofrs/flock/...", "golang.org/x/sys/...", "golang.org/x/sync/semaphore", "golang.org/x/time/rate"},
	"gcsup/upload/gcs":                  {"*"},
	"gcsup/upload/internal/runsort":     {},
	"gcsup/cmd/gcsup":                   {"*"},
	"gcsup/fakegcs":                     {"gcsup/fakegcs/internal/..."},
	"gcsup/fakegcs/fakegcstest":         {"gcsup/fakegcs", "gcsup/fakegcs/internal/..."},
	"gcsup/fakegcs/memnet":              {},
	"gcsup/fakegcs/internal/blob":       {},
	"gcsup/fakegcs/internal/connlimit":  {},
	"gcsup/fakegcs/internal/faultplan":  {"gcsup/fakegcs/internal/strictjson"},
	"gcsup/fakegcs/internal/strictjson": {},
	"gcsup/fakegcs/internal/disk":       {"gcsup/fakegcs/internal/blob"},
	"gcsup/internal/benchmany":          {},
	"gcsup/internal/deptest":            {},
	"gcsup/internal/retrysim":           {"gcsup/backoff"},
	"gcsup/internal/e2e":                {}, // tests only
	"gcsup/internal/compat/live":        {"*"},
	"gcsup/internal/compat/official":    {"cloud.google.com/...", "github.com/...", "go.opentelemetry.io/...", "golang.org/...", "google.golang.org/...", "cel.dev/..."},
}

// Only these packages may import packages above the libraries.
var tops = []string{"gcsup/upload/gcs", "gcsup/cmd/gcsup", "gcsup/internal/compat/live"}

func TestImportArrows(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}", "gcsup/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		rules, known := allowed[pkg]
		if !known {
			t.Errorf("%s is not in the table: add the packages that it may link", pkg)
			continue
		}
		for _, dep := range dependencies(t, pkg) {
			if dep != pkg && !matches(rules, dep) {
				t.Errorf("%s links %s", pkg, dep)
			}
			if slices.Contains(tops, dep) && !slices.Contains(tops, pkg) {
				t.Errorf("%s links %s, which is in a higher layer", pkg, dep)
			}
		}
	}
}

// TestNoSDK checks that upload and session, which other programs import, do not
// link a Google SDK.
func TestNoSDK(t *testing.T) {
	for _, dep := range dependencies(t, "gcsup/upload", "gcsup/session") {
		if strings.HasPrefix(dep, "cloud.google.com/") || strings.HasPrefix(dep, "google.golang.org/") {
			t.Errorf("upload or session links %s", dep)
		}
	}
}

// TestNoTesting checks that no program links package testing, which would give
// it the flags of a test: fakegcs has an interface for what it needs.
func TestNoTesting(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "gcsup/cmd/gcsup", "gcsup/fakegcs").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if dep == "testing" || dep == "net/http/httptest" {
			t.Errorf("gcsup links %s", dep)
		}
	}
}

// dependencies returns all packages outside the standard library that the
// packages link, on each supported platform.
func dependencies(t *testing.T, pkgs ...string) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, pkgs...)...)
		cmd.Env = append(cmd.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list on %s: %v", goos, err)
		}
		for _, dep := range strings.Fields(string(out)) {
			seen[dep] = true
		}
	}
	var deps []string
	for dep := range seen {
		deps = append(deps, dep)
	}
	slices.Sort(deps)
	return deps
}

func matches(rules []string, dep string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool {
		module, tree := strings.CutSuffix(rule, "/...")
		return rule == "*" || rule == dep || tree && (dep == module || strings.HasPrefix(dep, module+"/"))
	})
}
