package deptest_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// allowed lists the packages outside the standard library that each package may
// link, directly or indirectly. An entry is an exact path, or a module with
// "/...". The test fails for a package that is not listed.
var allowed = map[string][]string{
	"gcsup/backoff":                        {},
	"gcsup/chunk":                          {"gcsup/internal/nolink"},
	"gcsup/session":                        {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session/internal/oneline", "gcsup/session/internal/secret"},
	"gcsup/session/bucket":                 {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/internal/..."},
	"gcsup/session/internal/oneline":       {},
	"gcsup/session/internal/secret":        {},
	"gcsup/session/internal/secrettest":    {"gcsup/session/internal/secret"},
	"gcsup/session/state":                  {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."},
	"gcsup/session/state/bucketstore":      {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."},
	"gcsup/session/state/storetest":        {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."},
	"gcsup/upload":                         {"gcsup/upload/internal/batch", "gcsup/upload/internal/content", "gcsup/upload/internal/engine", "gcsup/upload/internal/netconn", "gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "gcsup/upload/internal/parts", "gcsup/upload/internal/saved", "gcsup/upload/internal/source", "gcsup/upload/internal/spool", "github.com/gofrs/flock/...", "golang.org/x/sys/...", "golang.org/x/sync/semaphore"},
	"gcsup/upload/contenttype":             {},
	"gcsup/upload/errkind":                 uploads(),
	"gcsup/upload/gcs":                     {"*"},
	"gcsup/upload/manifest":                {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "gcsup/upload", "gcsup/upload/internal/batch", "gcsup/upload/internal/content", "gcsup/upload/internal/engine", "gcsup/upload/internal/netconn", "gcsup/upload/internal/runsort", "gcsup/upload/internal/parts", "gcsup/upload/internal/saved", "gcsup/upload/internal/source", "gcsup/upload/internal/spool", "github.com/gofrs/flock/...", "golang.org/x/sys/...", "golang.org/x/sync/semaphore"},
	"gcsup/upload/mirror":                  {"gcsup/upload", "gcsup/upload/tree", "gcsup/session/state/bucketstore", "gcsup/upload/internal/batch", "gcsup/upload/internal/content", "gcsup/upload/internal/engine", "gcsup/upload/internal/netconn", "gcsup/upload/internal/runsort", "gcsup/upload/internal/parts", "gcsup/upload/internal/saved", "gcsup/upload/internal/source", "gcsup/upload/internal/spool", "gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/...", "golang.org/x/sync/semaphore"},
	"gcsup/upload/internal/batch":          {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."},
	"gcsup/upload/internal/content":        {"gcsup/chunk", "gcsup/internal/nolink"},
	"gcsup/upload/internal/parts":          {"gcsup/upload/internal/content", "gcsup/upload/internal/engine", "gcsup/upload/internal/netconn", "gcsup/upload/internal/saved", "gcsup/upload/internal/source", "gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."}, // it knows no batches and no Options
	"gcsup/upload/internal/engine":         {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/internal/...", "gcsup/upload/internal/content", "gcsup/upload/internal/netconn"},                                                                                                                                                                                                     // no sources, saved uploads or parts
	"gcsup/upload/internal/netconn":        {},
	"gcsup/upload/internal/runsort":        {},
	"gcsup/upload/internal/saved":          {"gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."},                                                          // it knows no other package below upload
	"gcsup/upload/internal/source":         {"gcsup/upload/internal/content", "gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."}, // the bytes that package upload sends; it knows no other package below upload
	"gcsup/upload/internal/spool":          {"gcsup/upload/internal/content", "gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/..."},                         // the bytes of streams on disk; it knows no other package below upload
	"gcsup/upload/outbox":                  uploads("github.com/fsnotify/fsnotify/..."),
	"gcsup/upload/tree":                    {"gcsup/upload", "gcsup/upload/internal/batch", "gcsup/upload/internal/content", "gcsup/upload/internal/engine", "gcsup/upload/internal/netconn", "gcsup/upload/internal/runsort", "gcsup/upload/internal/parts", "gcsup/upload/internal/saved", "gcsup/upload/internal/source", "gcsup/upload/internal/spool", "gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "github.com/gofrs/flock/...", "golang.org/x/sys/...", "golang.org/x/sync/semaphore"},
	"gcsup/cmd/gcsup":                      {"*"},
	"gcsup/cmd/fakegcs":                    {"gcsup/fakegcs", "gcsup/fakegcs/faults", "gcsup/fakegcs/internal/...", "gcsup/internal/emulator", "gcsup/internal/cli/shell"}, // only the standard library
	"gcsup/internal/emulator":              {"gcsup/internal/cli/shell", "gcsup/fakegcs", "gcsup/fakegcs/faults", "gcsup/fakegcs/internal/..."},
	"gcsup/fakegcs":                        {"gcsup/fakegcs/faults", "gcsup/fakegcs/internal/..."},
	"gcsup/fakegcs/fakegcstest":            {"gcsup/fakegcs", "gcsup/fakegcs/faults", "gcsup/fakegcs/internal/..."},
	"gcsup/fakegcs/memnet":                 {},
	"gcsup/fakegcs/internal/blob":          {},
	"gcsup/fakegcs/internal/connlimit":     {},
	"gcsup/fakegcs/faults":                 {"gcsup/fakegcs/internal/strictjson"},
	"gcsup/fakegcs/internal/faultplan":     {"gcsup/fakegcs/faults", "gcsup/fakegcs/internal/strictjson"},
	"gcsup/fakegcs/internal/strictjson":    {},
	"gcsup/fakegcs/internal/disk":          {"gcsup/fakegcs/internal/blob"},
	"gcsup/fakegcs/internal/writerate":     {},
	"gcsup/internal/benchembed":            {"*"},
	"gcsup/internal/benchfile":             {"*"},
	"gcsup/internal/badlink":               {"golang.org/x/sys/..."},
	"gcsup/internal/benchlink":             {"gcsup/internal/badlink", "gcsup/internal/benchrun", "gcsup/fakegcs", "gcsup/fakegcs/faults", "gcsup/fakegcs/internal/...", "golang.org/x/sync/errgroup", "golang.org/x/sys/..."},
	"gcsup/internal/benchmany":             {"gcsup/internal/benchrun", "gcsup/fakegcs", "gcsup/fakegcs/faults", "gcsup/fakegcs/internal/..."},
	"gcsup/internal/benchrun":              {"gcsup/fakegcs", "gcsup/fakegcs/faults", "gcsup/fakegcs/internal/..."},
	"gcsup/internal/cli/cells":             {"golang.org/x/text/..."},
	"gcsup/internal/cli/cmdline":           uploads("gcsup/internal/cli/shell", "gcsup/internal/cli/exit", "gcsup/internal/cli/process", "golang.org/x/term", "filippo.io/...", "golang.org/x/crypto/...", "github.com/dustin/go-humanize", "github.com/spf13/...", "github.com/inconshreveable/mousetrap"),
	"gcsup/internal/cli/configfile":        uploads("gcsup/internal/cli/cmdline", "gcsup/internal/cli/shell", "gcsup/internal/cli/exit", "gcsup/internal/cli/process", "golang.org/x/term", "filippo.io/...", "golang.org/x/crypto/...", "github.com/dustin/go-humanize", "github.com/spf13/...", "github.com/inconshreveable/mousetrap", "go.yaml.in/yaml/v3"),
	"gcsup/internal/cli/exit":              uploads(),
	"gcsup/internal/cli/joborder":          uploads(),
	"gcsup/internal/cli/jsonline":          {},
	"gcsup/internal/cli/linequeue":         {},
	"gcsup/internal/cli/metrics":           uploads("gcsup/internal/cli/shell", "gcsup/internal/cli/exit", "github.com/prometheus/...", "github.com/beorn7/perks/...", "github.com/cespare/xxhash/...", "github.com/munnerz/goautoneg", "google.golang.org/protobuf/...", "go.yaml.in/yaml/..."),
	"gcsup/internal/cli/page":              uploads("gcsup/internal/cli/cells", "gcsup/internal/cli/jsonline", "gcsup/internal/cli/linequeue", "gcsup/internal/cli/process", "gcsup/internal/cli/readable", "gcsup/internal/cli/result", "gcsup/internal/cli/runlog", "gcsup/internal/cli/exit", "gcsup/internal/cli/shell", "filippo.io/...", "golang.org/x/crypto/...", "golang.org/x/text/...", "github.com/dustin/go-humanize"),
	"gcsup/internal/cli/process":           uploads("gcsup/internal/cli/shell", "gcsup/internal/cli/exit", "filippo.io/...", "golang.org/x/crypto/..."),
	"gcsup/internal/cli/readable":          {"github.com/dustin/go-humanize"},
	"gcsup/internal/cli/result":            uploads("gcsup/internal/cli/readable", "gcsup/internal/cli/jsonline", "gcsup/internal/cli/process", "gcsup/internal/cli/exit", "gcsup/internal/cli/shell", "filippo.io/...", "golang.org/x/crypto/...", "github.com/dustin/go-humanize"),
	"gcsup/internal/cli/runlog":            uploads("gcsup/internal/cli/cells", "gcsup/internal/cli/linequeue", "gcsup/internal/cli/readable", "gcsup/internal/cli/process", "gcsup/internal/cli/exit", "gcsup/internal/cli/shell", "filippo.io/...", "golang.org/x/crypto/...", "golang.org/x/text/...", "github.com/dustin/go-humanize"),
	"gcsup/internal/cli/savedrate":         {},
	"gcsup/internal/cli/screen":            uploads("gcsup/internal/cli/cells", "gcsup/internal/cli/jsonline", "gcsup/internal/cli/linequeue", "gcsup/internal/cli/process", "gcsup/internal/cli/readable", "gcsup/internal/cli/result", "gcsup/internal/cli/runlog", "gcsup/internal/cli/exit", "gcsup/internal/cli/shell", "gcsup/internal/cli/tty", "filippo.io/...", "golang.org/x/crypto/...", "golang.org/x/text/...", "github.com/dustin/go-humanize", "golang.org/x/term"),
	"gcsup/internal/cli/screen/screentest": {"gcsup/internal/cli/cells", "golang.org/x/text/..."},
	"gcsup/internal/cli/tty":               {"golang.org/x/term", "golang.org/x/sys/..."},
	"gcsup/internal/cli/shell":             {},
	"gcsup/internal/crowd":                 {},
	"gcsup/internal/deptest":               {},
	"gcsup/internal/dist":                  {},
	"gcsup/internal/retrysim":              {"gcsup/backoff", "gcsup/internal/crowd"},
	"gcsup/internal/testsize":              {},
	"gcsup/internal/e2e":                   {}, // tests only
	"gcsup/internal/compat/filters":        uploads("golang.org/x/sync/errgroup"),
	"gcsup/internal/compat/front":          {"gcsup/fakegcs/..."},
	"gcsup/internal/nolink":                {},
	"gcsup/internal/powerdisk":             {},
	"gcsup/internal/testprocess":           {},
	"gcsup/internal/compat/operations":     {"cloud.google.com/...", "github.com/...", "go.opentelemetry.io/...", "golang.org/...", "google.golang.org/...", "cel.dev/..."},
	"gcsup/internal/compat/suites":         {},
	"gcsup/internal/compat/live":           {"*"},
	"gcsup/internal/compat/official":       {"cloud.google.com/...", "github.com/...", "go.opentelemetry.io/...", "golang.org/...", "google.golang.org/...", "cel.dev/..."},
}

// uploads returns the rules for a package that knows the errors of uploads, trees and
// manifests, and links others too.
func uploads(others ...string) []string {
	return append(others, "gcsup/backoff", "gcsup/chunk", "gcsup/internal/nolink", "gcsup/session", "gcsup/session/bucket", "gcsup/session/state", "gcsup/session/internal/...", "gcsup/session/state/bucketstore", "gcsup/upload", "gcsup/upload/errkind", "gcsup/upload/manifest", "gcsup/upload/mirror", "gcsup/upload/tree", "gcsup/upload/internal/batch", "gcsup/upload/internal/content", "gcsup/upload/internal/engine", "gcsup/upload/internal/netconn", "gcsup/upload/internal/runsort", "gcsup/upload/internal/parts", "gcsup/upload/internal/saved", "gcsup/upload/internal/source", "gcsup/upload/internal/spool",
		"github.com/gofrs/flock/...", "golang.org/x/sys/...", "golang.org/x/sync/semaphore")
}

// Only these packages may import packages above the libraries.
var tops = []string{"gcsup/upload/gcs", "gcsup/cmd/gcsup", "gcsup/internal/compat/live"}

// TestImportArrows checks that each package links only what the table allows.
func TestImportArrows(t *testing.T) {
	for _, goos := range platforms() {
		pkgs := list(t, goos)
		for path := range pkgs {
			if !strings.HasPrefix(path, "gcsup/") {
				continue
			}
			rules, known := allowed[path]
			if !known {
				t.Errorf("%s is not in the table: add the packages that it may link", path)
				continue
			}
			for _, dep := range pkgs[path].Deps {
				if pkgs[dep].Standard {
					continue
				}
				if !matches(rules, dep) {
					t.Errorf("%s: %s links %s", goos, path, dep)
				}
				if slices.Contains(tops, dep) && !slices.Contains(tops, path) {
					t.Errorf("%s: %s links %s, which is in a higher layer", goos, path, dep)
				}
			}
		}
		for path := range allowed {
			if pkgs[path].ImportPath == "" {
				t.Errorf("%s: the table has %s, which does not exist", goos, path)
			}
		}
	}
}

// TestNoSDK checks that upload and session, which other programs import, do not
// link a Google SDK.
func TestNoSDK(t *testing.T) {
	for _, goos := range platforms() {
		pkgs := list(t, goos)
		for _, path := range []string{"gcsup/upload", "gcsup/session"} {
			for _, dep := range pkgs[path].Deps {
				if strings.HasPrefix(dep, "cloud.google.com/") || strings.HasPrefix(dep, "google.golang.org/") {
					t.Errorf("%s: %s links %s", goos, path, dep)
				}
			}
		}
	}
}

// TestSecret checks that only these packages import the one that reveals session URIs.
// Other packages below session could, and Go prevents all others.
func TestSecret(t *testing.T) {
	const secret = "gcsup/session/internal/secret"
	readers := []string{"gcsup/session", "gcsup/session/internal/secrettest", "gcsup/session/state", "gcsup/session/state/storetest"}
	for _, goos := range platforms() {
		var found []string
		for path, p := range list(t, goos) {
			if slices.Contains(p.Imports, secret) {
				found = append(found, path)
			}
		}
		if slices.Sort(found); !slices.Equal(found, readers) {
			t.Errorf("%s: %s is imported by %q, want %q", goos, secret, found, readers)
		}
	}
}

// TestNoTelemetry checks that no package or test of this module imports
// OpenTelemetry. That is for the module in upload/otel.
func TestNoTelemetry(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{if not .Indirect}}{{.Path}}{{end}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	direct := strings.Fields(string(out))
	if !slices.Contains(direct, "gcsup") {
		t.Fatalf("go list -m lists %v", direct)
	}
	for _, module := range direct {
		if strings.HasPrefix(module, "go.opentelemetry.io/") {
			t.Errorf("go.mod requires %s", module)
		}
	}
}

// TestMetricsOfCommands checks that only commands link the client of Prometheus.
func TestMetricsOfCommands(t *testing.T) {
	commands := []string{"gcsup/cmd/gcsup", "gcsup/internal/cli/metrics"}
	for _, goos := range platforms() {
		for path, p := range list(t, goos) {
			linked := slices.ContainsFunc(p.Deps, func(dep string) bool { return strings.HasPrefix(dep, "github.com/prometheus/") })
			if strings.HasPrefix(path, "gcsup/") && linked != slices.Contains(commands, path) {
				t.Errorf("%s: %s links the client of Prometheus: %t", goos, path, linked)
			}
		}
	}
}

// TestNoTesting checks that no program links package testing, which would give
// it the flags of a test. fakegcs has an interface for what it needs.
func TestNoTesting(t *testing.T) {
	for _, goos := range platforms() {
		pkgs := list(t, goos)
		for _, path := range []string{"gcsup/cmd/gcsup", "gcsup/fakegcs"} {
			for _, dep := range []string{"testing", "net/http/httptest"} {
				if slices.Contains(pkgs[path].Deps, dep) {
					t.Errorf("%s: %s links %s", goos, path, dep)
				}
			}
		}
	}
}

// platforms returns the supported platforms, and only the first with -short.
func platforms() []string {
	all := []string{"linux", "darwin", "windows"}
	if testing.Short() {
		return all[:1]
	}
	return all
}

// pkg is what the go command reports about a package.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string // direct
	Deps       []string // direct and indirect
}

var (
	listMu sync.Mutex
	lists  = map[string]map[string]pkg{}
)

// list returns all packages of this module and their dependencies on a platform.
func list(t *testing.T, goos string) map[string]pkg {
	t.Helper()
	listMu.Lock()
	defer listMu.Unlock()
	if pkgs, ok := lists[goos]; ok {
		return pkgs
	}
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "gcsup/...")
	cmd.Env = append(cmd.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pkgs := map[string]pkg{}
	for d := json.NewDecoder(out); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list on %s: %v", goos, err)
		}
		pkgs[p.ImportPath] = p
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("go list on %s: %v", goos, err)
	}
	lists[goos] = pkgs
	return pkgs
}

// matches reports whether a rule allows a dependency.
func matches(rules []string, dep string) bool {
	return slices.ContainsFunc(rules, func(rule string) bool {
		module, tree := strings.CutSuffix(rule, "/...")
		return rule == "*" || rule == dep || tree && (dep == module || strings.HasPrefix(dep, module+"/"))
	})
}
