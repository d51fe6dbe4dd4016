package deptest_test

import (
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

var updateSize = flag.Bool("update-size", false, "write testdata/size.txt")

// sizeFile has the size of the last release: a line for each package, and one for the total.
const sizeFile = "testdata/size.txt"

// TestCoreSize checks what upload, session, chunk and backoff add to a program with
// net/http: the bytes that are loaded from the binary, and the modules, gcsup included. It compares
// them with the last release, and prints the growth of each package. Before a release, and when a
// feature is worth its bytes:
//
//	go test ./internal/deptest -run CoreSize -update-size
func TestCoreSize(t *testing.T) {
	if testing.Short() {
		t.Skip("links two programs")
	}
	const tolerance, maxModules = 0.03, 4
	plain, uploads := buildProgram(t, "plain.go"), buildProgram(t, "uploads.go")
	if plain.modules == uploads.modules {
		t.Fatalf("both programs have %d modules", plain.modules)
	}
	now := map[string]int{total: uploads.loaded - plain.loaded}
	for pkg, size := range uploads.packages {
		if added := size - plain.packages[pkg]; added != 0 {
			now[pkg] = added
		}
	}
	if *updateSize {
		writeSizes(t, now)
	}
	released := readSizes(t)
	for _, pkg := range grown(now, released) {
		if growth := now[pkg] - released[pkg]; growth != 0 || pkg == total {
			t.Logf("%-40s %8d bytes, %+d since the last release", pkg, now[pkg], growth)
		}
	}
	if most := float64(released[total]) * (1 + tolerance); float64(now[total]) > most || uploads.modules > maxModules {
		t.Errorf("upload adds %d bytes and %d modules, want at most %.0f and %d", now[total], uploads.modules, most, maxModules)
	}
}

const total = "total"

// program is the size of one: the bytes that are loaded, and the symbols of each package.
type program struct {
	loaded, modules int
	packages        map[string]int
}

func buildProgram(t *testing.T, source string) program {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "program")
	// The length of root must not count. The flag -trimpath of go build would compile
	// the standard library again.
	cmd := exec.Command("go", "build", "-ldflags=-w", "-gcflags=gcsup/...=-trimpath="+root+"=>gcsup",
		"-o", path, filepath.Join("testdata", source))
	cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", source, err, out)
	}
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer file.Close()
	p := program{packages: map[string]int{}}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_LOAD {
			p.loaded += int(segment.Filesz)
		}
	}
	symbols, err := file.Symbols()
	require.NoError(t, err)
	for _, s := range symbols {
		p.packages[packageOf(s.Name)] += int(s.Size)
	}
	info, err := buildinfo.ReadFile(path)
	require.NoError(t, err)
	p.modules = len(info.Deps)
	return p
}

// packageOf returns the package of a symbol: "gcsup/upload" for "gcsup/upload.(*Uploader).File". All
// symbols without one count together.
func packageOf(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, "[") // type arguments
	dir, name := "", symbol
	if i := strings.LastIndexByte(symbol, '/'); i >= 0 {
		dir, name = symbol[:i+1], symbol[i+1:]
	}
	pkg, _, ok := strings.Cut(name, ".")
	_, below, _ := strings.Cut(dir, "/")
	if !ok || strings.ContainsAny(dir+pkg, ":*( $") || strings.Contains(below, ".") { // a method of an embedded type
		return "other"
	}
	return dir + pkg
}

// grown returns the names of both, those that have grown most first.
func grown(now, before map[string]int) []string {
	all := maps.Clone(now)
	maps.Copy(all, before)
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(now[b]-before[b], now[a]-before[a]), cmp.Compare(a, b))
	})
}

func readSizes(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(sizeFile)
	require.NoError(t, err)
	sizes := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var name string
		var size int
		if _, err := fmt.Sscan(line, &name, &size); err != nil {
			t.Fatalf("%s: %q: %v", sizeFile, line, err)
		}
		sizes[name] = size
	}
	return sizes
}

func writeSizes(t *testing.T, sizes map[string]int) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintln(&b, name, sizes[name])
	}
	require.NoError(t, os.WriteFile(sizeFile, []byte(b.String()), 0o600))
}
