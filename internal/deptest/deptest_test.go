package deptest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// imports lists what packages and trees of packages may import, besides the standard library:
// packages of this module without its path, and whole modules. The longest path applies. A tree
// may import itself. session/internal/secret reveals session URIs: few rows have it.
var imports = map[string]string{
	// These import only the standard library.
	"fakegcs/... internal/breaker internal/brief internal/checksum internal/contenttype internal/grace internal/lend internal/marks internal/nolink internal/ownconn " +
		"internal/pagecache internal/regular session/internal/... upload/internal/atrisk upload/internal/runsort": "",
	"backoff":                            "internal/breaker",
	"chunk":                              "internal/checksum internal/nolink internal/regular",
	"session":                            "backoff chunk internal/brief internal/checksum internal/lend internal/marks internal/objectmeta internal/ownconn session/internal/oneline session/internal/secret",
	"internal/bucket internal/multipart": "chunk internal/checksum internal/objectmeta session",
	"internal/decide":                    "backoff internal/breaker internal/bucket internal/multipart session",
	"internal/storeretry":                "backoff",
	"internal/objectmeta":                "chunk internal/checksum",
	"session/internal/secrettest":        "session session/internal/secret",
	"session/state":                      "backoff chunk internal/multipart internal/nolink session session/internal/oneline session/internal/secret github.com/gofrs/flock/... golang.org/x/sys/...",
	"session/state/bucketstore":          "backoff chunk internal/bucket internal/checksum internal/storeretry session session/state",
	"session/state/storetest":            "chunk session session/state session/internal/secret",
	"upload":                             "backoff chunk internal/bucket internal/decide internal/grace internal/objectmeta internal/sourcefile internal/storeretry session session/state session/state/bucketstore upload/internal/... golang.org/x/sync/semaphore",
	"upload/gcs":                         "backoff internal/congestion internal/marks session upload upload/internal/netconn cloud.google.com/... golang.org/x/oauth2/... google.golang.org/api/... github.com/googleapis/enterprise-certificate-proxy/...",
	"upload/internal/batch":              "backoff internal/bucket internal/decide internal/grace session golang.org/x/sync/semaphore", // no sources
	"upload/internal/connections":        "upload/internal/atrisk",                                                                     // no files
	"upload/internal/content":            "chunk",
	"upload/internal/engine":             "backoff chunk internal/brief internal/bucket internal/checksum internal/decide internal/grace internal/lend internal/multipart internal/ownconn session upload/internal/atrisk upload/internal/content upload/internal/netconn", // no files, saved uploads or parts
	"upload/internal/netconn":            "internal/congestion",
	"upload/internal/parts":              "chunk internal/bucket internal/checksum internal/decide internal/grace internal/multipart session session/state upload/internal/atrisk upload/internal/connections upload/internal/engine upload/internal/saved upload/internal/source upload/internal/spool upload/internal/stream", // no batches
	"internal/errkind":                   "upload upload/manifest upload/mirror upload/tree",
	"upload/internal/stream":             "chunk internal/checksum internal/lend",
	"upload/internal/saved":              "chunk internal/grace internal/sourcefile session session/state",
	"upload/internal/source":             "chunk internal/checksum internal/sourcefile session upload/internal/content upload/internal/stream",
	"upload/internal/spool":              "chunk internal/checksum internal/nolink session session/state upload/internal/content",
	"upload/manifest":                    "chunk internal/checksum internal/objectmeta internal/sourcefile session session/state/bucketstore upload upload/internal/batch upload/internal/parts upload/internal/runsort github.com/gofrs/flock/...",
	"upload/mirror":                      "internal/bucket session session/state/bucketstore upload upload/tree upload/internal/batch upload/internal/parts upload/internal/runsort",
	"upload/outbox":                      "backoff chunk internal/decide internal/errkind internal/nolink internal/sourcefile session session/state upload upload/internal/batch upload/internal/netconn upload/manifest github.com/fsnotify/fsnotify/... golang.org/x/sys/...",
	"upload/tree":                        "chunk internal/sourcefile upload upload/internal/runsort",
	"fakegcs/fakegcstest":                "fakegcs/... internal/clientcheck",
	"cmd/fakegcs":                        "internal/emulator",
	"internal/clientcheck":               "fakegcs/...",
	"internal/emulator":                  "fakegcs/... internal/cli/shell internal/clientcheck",
	"internal/sourcefile":                "chunk internal/nolink internal/pagecache internal/regular",
	"internal/cli/...":                   "backoff chunk internal/bucket internal/checksum internal/decide internal/errkind internal/grace internal/multipart internal/objectmeta session/... upload/... filippo.io/age/... github.com/dustin/go-humanize github.com/prometheus/... github.com/spf13/... go.yaml.in/yaml/v3 golang.org/x/...",
	"internal/...":                       "backoff chunk session/... upload/... fakegcs/... cloud.google.com/... github.com/googleapis/... golang.org/x/... google.golang.org/api/...",
	"cmd/gcsup":                          "backoff chunk fakegcs/... internal/bucket internal/checksum internal/cli/... internal/congestion internal/contenttype internal/decide internal/emulator internal/grace internal/objectmeta internal/retrysim internal/sourcefile internal/storeretry session/... upload/... github.com/coreos/go-systemd/v22/... github.com/spf13/... golang.org/x/...",
}

// never lists what packages may not even link.
var never = []struct{ packages, links string }{
	{"upload session", "cloud.google.com/... google.golang.org/..."}, // other programs import them
	{"backoff chunk fakegcs/... session/... upload/...", "github.com/prometheus/..."},
	{"cmd/gcsup fakegcs", "testing net/http/httptest"}, // testing gives a program the flags of a test
}

// TestImports checks the imports of all packages on all platforms.
func TestImports(t *testing.T) {
	rows, used := map[string]string{}, map[string]bool{} // by package or tree
	for packages, allowed := range imports {
		for entry := range strings.FieldsSeq(packages) {
			rows[entry] = allowed
		}
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-f", `{{.ImportPath}};{{join .Imports " "}};{{join .Deps " "}}`, "gcsup/...")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		out, err := cmd.Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(line, ";")
			path, row := strings.TrimPrefix(fields[0], module), ""
			for entry := range rows {
				if len(entry) > len(row) && matches(entry, path) {
					row = entry
				}
			}
			used[row] = true
			for _, dep := range strings.Fields(fields[1]) {
				own, ours := strings.CutPrefix(dep, module)
				if (ours || strings.Contains(dep, ".")) && !matches(rows[row]+" "+row, own) { // no path of the standard library has a dot
					t.Errorf("%s: %s imports %s, which the row %q does not allow", goos, path, own, row)
				}
			}
			for _, dep := range strings.Fields(fields[2]) {
				for _, rule := range never {
					if matches(rule.packages, path) && matches(rule.links, dep) {
						t.Errorf("%s: %s links %s", goos, path, dep)
					}
				}
			}
		}
	}
	for entry := range rows {
		if !used[entry] {
			t.Errorf("no package uses the row %q", entry)
		}
	}
}

// matches reports whether a list of packages and trees contains a package.
func matches(list, path string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(entry string) bool {
		top, tree := strings.CutSuffix(entry, "/...")
		return path == top || tree && strings.HasPrefix(path, top+"/")
	})
}
