package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// TestRewrite checks which words are import paths.
func TestRewrite(t *testing.T) {
	tree := []string{"go.mod", "upload/upload.go", "cmd/gcsup/main.go", "fleet/go.mod", ".ci/run"}
	// The name is not gcsup, because publish rewrites this file, too.
	first := newRewriter("tool", target{"example.com/you/tool", "v0.1.0", ""}, tree)
	again := newRewriter("example.com/you/tool", target{"example.org/tool", "v0.2.0-rc.1", "@a/team"}, tree)
	for name, c := range map[string]struct {
		r                rewriter
		file, text, want string
	}{
		"imports":         {first, "a.go", "package a\n\nimport (\n\t\"tool/upload\"\n\t\"example.com/a\"\n)\n", "package a\n\nimport (\n\t\"example.com/a\"\n\t\"example.com/you/tool/upload\"\n)\n"},
		"a command":       {first, "a.md", "`go install tool/cmd/tool`", "`go install example.com/you/tool/cmd/tool`"},
		"all packages":    {first, "run", "go vet tool/... tool/upload/...", "go vet example.com/you/tool/... example.com/you/tool/upload/..."},
		"documentation":   {first, "a.md", "https://pkg.go.dev/tool/upload", "https://pkg.go.dev/example.com/you/tool/upload"},
		"a linker's flag": {first, "Makefile", "-X tool/upload.version=1", "-X example.com/you/tool/upload.version=1"},
		"other words":     {first, "a.md", "/etc/tool/upload ~/tool/cmd tool/uploads tool/config.yaml tool/devel my-tool/upload tool cp", ""},
		"a module":        {first, "upload/otel/go.mod", "module tool/upload/otel\n\nrequire tool v0.0.0\n\nreplace tool => ../..\n", "module example.com/you/tool/upload/otel\n\nrequire example.com/you/tool v0.1.0\n\nreplace example.com/you/tool => ../..\n"},
		"a dependency":    {first, "go.mod", "module tool\n\nrequire example.com/you/other v1.0.0\n", "module example.com/you/tool\n\nrequire example.com/you/other v1.0.0\n"},
		"an owner":        {first, ".github/CODEOWNERS", "* @OWNER\n", "* @you\n"},
		"a named owner":   {again, ".github/CODEOWNERS", "* @OWNER\n", "* @a/team\n"},
		"a passage":       {first, "a.md", "a\n<!-- unpublished -->\nb\n<!-- published\ngo get tool/upload\n-->\nc\n", "a\ngo get example.com/you/tool/upload\nc\n"},
		"words":           {first, "a.md", "Build it<!-- unpublished -->: it is not published<!-- published, or run `go install tool/cmd/tool@latest`-->.\n", "Build it, or run `go install example.com/you/tool/cmd/tool@latest`.\n"},
		"a second time":   {again, "a.md", "`example.com/you/tool/upload` https://pkg.go.dev/example.com/you/tool/upload", "`example.org/tool/upload` https://pkg.go.dev/example.org/tool/upload"},
		"a new version":   {again, "go.mod", "module example.com/you/tool/fleet\n\nrequire example.com/you/tool v0.1.0\n", "module example.org/tool/fleet\n\nrequire example.org/tool v0.2.0-rc.1\n"},
	} {
		if c.want == "" {
			c.want = c.text
		}
		if got, err := c.r.rewrite(c.file, []byte(c.text)); err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// TestRefused checks that bad values, and a tree with changes that are not committed, are refused before
// anything is written.
func TestRefused(t *testing.T) {
	for _, c := range []target{
		{"gcsup", "v0.1.0", ""}, {"you/gcsup", "v0.1.0", ""}, {"https://example.com/you/gcsup", "v0.1.0", ""}, {"example.com/you/gcsup/", "v0.1.0", ""}, {"example.com", "v0.1.0", ""},
		{"example.com/gcsup", "0.1.0", ""}, {"example.com/gcsup", "v2.0.0", ""}, {"example.com/gcsup", "latest", ""},
		{"example.com/gcsup", "v0.1.0", "you"},
	} {
		if err := c.publish(t.TempDir()); err == nil || strings.Contains(err.Error(), "git") {
			t.Errorf("%v: %v", c, err)
		}
	}
	dir := repository(t, map[string]string{"go.mod": "module gcsup\n"})
	write(t, filepath.Join(dir, "go.mod"), "module gcsup\n\ngo 1.26\n")
	if err := (target{"example.com/gcsup", "v0.1.0", ""}).publish(dir); err == nil || !strings.Contains(err.Error(), "commit") {
		t.Errorf("with a change that is not committed: %v", err)
	}
}

// TestPublishedTree publishes a copy of this tree. With GCSUP_TEST_FULL it looks at all modules, for which it
// may download what they need, tests the copy, and compiles a program outside of it, which gets the modules
// from a proxy. Nothing else is compiled: in the copy only import paths differ, and go list -deps -test finds
// those that are wrong.
func TestPublishedTree(t *testing.T) {
	if testing.Short() {
		t.Skip("copies the tree")
	}
	files := tracked(t)
	texts := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		} else if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	dir := repository(t, texts)
	// The go command stores the modules in its cache. A path that no other test uses permits to remove them.
	module, version := fmt.Sprintf("gcsup-test.invalid/r%d/gcsup", rand.Uint64()), "v0.1.0"
	require.NoError(t, (target{module: module, version: version}).publish(dir))
	full := testsize.Full(1, 0) == 1
	for _, name := range files {
		text := read(t, filepath.Join(dir, name))
		if strings.HasSuffix(name, ".md") && regexp.MustCompile(`(?i)\b(not|nothing is) published yet`).MatchString(text) {
			t.Errorf("%s: put what is true only before a publication between <!-- unpublished --> and <!-- published", name)
		}
		if filepath.Base(name) == "CODEOWNERS" && strings.Contains(text, "@OWNER") {
			t.Errorf("%s has the placeholder", name)
		}
		if name == "go.mod" || full && filepath.Base(name) == "go.mod" {
			at := filepath.Join(dir, filepath.Dir(name))
			run(t, at, "go", "list", "-deps", "-test", "./...") // fails if an import is not found
			run(t, at, "go", "mod", "tidy", "-diff")
		}
	}
	if !full {
		return
	}
	run(t, dir, "go", "test", "-short", "./internal/deptest", "./internal/publish") // their tests know the paths of packages
	testProgram(t, dir, module, version)
}

// testProgram compiles a program outside of the tree, with the two modules that programs import.
func testProgram(t *testing.T, dir, module, version string) {
	cache := strings.TrimSpace(run(t, dir, "go", "env", "GOMODCACHE"))
	downloads := filepath.Join(cache, "cache", "download")
	t.Cleanup(func() {
		for _, at := range []string{cache, downloads} {
			if err := os.RemoveAll(filepath.Join(at, filepath.Dir(module))); err != nil {
				t.Error(err)
			}
			os.Remove(filepath.Join(at, "gcsup-test.invalid")) // unless another test uses it
		}
	})
	proxy := t.TempDir()
	for _, sub := range []string{"", "/upload/otel"} {
		addModule(t, proxy, dir, module, sub, version)
	}
	// The modules of others were downloaded by the tests of the tree.
	t.Setenv("GOPROXY", fileURL(proxy)+","+fileURL(downloads))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOWORK", "off")
	program := t.TempDir()
	run(t, program, "go", "mod", "init", "example.org/program")
	get := []string{"get"}
	for _, pkg := range []string{"upload/otel", "upload", "upload/gcs", "session/state", "cmd/gcsup"} {
		get = append(get, module+"/"+pkg+"@"+version)
	}
	compile(t, program, module, "go", get...)
	run(t, program, "go", "list", "-deps", module+"/cmd/gcsup") // fails if an import or an embedded file is missing
}

// addModule adds a module of the tree to a proxy: https://go.dev/ref/mod#goproxy-protocol.
func addModule(t *testing.T, proxy, dir, module, sub, version string) {
	t.Helper()
	at := filepath.Join(proxy, filepath.FromSlash(module+sub), "@v")
	require.NoError(t, os.MkdirAll(at, 0o777))
	root := filepath.Join(dir, filepath.FromSlash(sub))
	write(t, filepath.Join(at, version+".info"), fmt.Sprintf(`{"Version":%q}`, version))
	write(t, filepath.Join(at, version+".mod"), read(t, filepath.Join(root, "go.mod")))
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || d.Name() == ".git" {
				return filepath.SkipDir // another module
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		w, err := z.Create(module + sub + "@" + version + "/" + filepath.ToSlash(rel))
		if err == nil {
			_, err = w.Write([]byte(read(t, name)))
		}
		return err
	})
	require.NoError(t, errors.Join(err, z.Close()))
	write(t, filepath.Join(at, version+".zip"), archive.String())
}

// TestRecipe compiles a program with the commands that the documents have until the module is published.
func TestRecipe(t *testing.T) {
	if testsize.Full(0, 1) == 1 {
		t.Skip("compiles a program, for which it may download modules; GCSUP_TEST_FULL runs it")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	module := strings.TrimSpace(run(t, root, "go", "list", "-m"))
	if strings.Contains(module, ".") {
		t.Skip("the module is published")
	}
	var documents strings.Builder
	for _, name := range tracked(t) {
		if filepath.Ext(name) == ".md" {
			documents.WriteString(read(t, filepath.Join(root, name)))
		}
	}
	program := t.TempDir()
	run(t, program, "go", "mod", "init", "example.org/program")
	recipe := regexp.MustCompile("-require ([^\\s`]+) -replace ([^\\s`]+)=/path/to/the/clone([^\\s`]*)").FindAllStringSubmatch(documents.String(), -1)
	if len(recipe) != 2 {
		t.Fatalf("the documents have commands for %d modules: %q", len(recipe), recipe)
	}
	for _, m := range recipe {
		run(t, program, "go", "mod", "edit", "-require", m[1], "-replace", m[2]+"="+root+m[3])
	}
	compile(t, program, module, "go", "mod", "tidy")
}

// compile compiles a program that imports the modules, after a command that gets them. go list -export
// compiles, and does not link.
func compile(t *testing.T, dir, module, name string, args ...string) {
	t.Helper()
	write(t, filepath.Join(dir, "main.go"), fmt.Sprintf(`package main

import (
	"fmt"

	"%[1]s/session/state"
	"%[1]s/upload"
	"%[1]s/upload/gcs"
	"%[1]s/upload/otel"
)

func main() { fmt.Println(state.OpenDir, upload.New, gcs.New, otel.New) }
`, module))
	run(t, dir, name, args...)
	run(t, dir, "go", "list", "-export", ".")
}

func fileURL(path string) string {
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") { // C:/...
		path = "/" + path
	}
	return "file://" + path
}

// tracked returns the files of this tree, as git lists them.
func tracked(t *testing.T) []string {
	t.Helper()
	list, err := output("../..", "git", "ls-files", "-z")
	if err != nil {
		t.Skipf("the tree is no clone: %v", err)
	}
	return strings.Split(strings.TrimSuffix(list, "\x00"), "\x00")
}

// repository returns a new directory in which the files are committed.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	run(t, dir, "git", "init", "-q")
	run(t, dir, "git", "add", "-A", "-f")
	run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "test")
	return dir
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o777)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o666)
	}
	require.NoError(t, err)
}
