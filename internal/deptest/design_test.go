package deptest_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gcsup/internal/require"
)

const root = "../.."

// module is the beginning of the import paths of this module. make publish-as changes it.
var module = strings.TrimSuffix(reflect.TypeFor[program]().PkgPath(), "internal/deptest_test")

// designPage returns docs/maintain/design.md.
func designPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "maintain", "design.md"))
	require.NoError(t, err)
	return string(page)
}

// TestDesignDiagram checks the arrows in docs/maintain/design.md. Along each arrow there is an import, and each import
// between two boxes follows arrows. The text of a box begins with its packages.
func TestDesignDiagram(t *testing.T) {
	page := designPage(t)
	boxes := map[string][]string{} // packages by box
	for _, m := range regexp.MustCompile(`(\w+)\["([^":]+):`).FindAllStringSubmatch(page, -1) {
		names := strings.Split(m[2], ", ")
		for _, name := range names {
			if !strings.Contains(name, "/") {
				name = path.Join(path.Dir(names[0]), name) // a sibling of the first one
			}
			boxes[m[1]] = append(boxes[m[1]], name)
		}
	}
	arrows := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+)(?:\[.*?\])? --> (\w+)`).FindAllStringSubmatch(page, -1) {
		arrows[m[1]] = append(arrows[m[1]], m[2])
		if boxes[m[1]] == nil || boxes[m[2]] == nil {
			t.Errorf("the arrow from %s to %s has a box without a package", m[1], m[2])
		}
	}
	if len(boxes) < 10 || len(arrows) < 8 {
		t.Fatalf("found only %d boxes, %d with arrows", len(boxes), len(arrows))
	}
	imports := map[string][]string{} // boxes by box
	for from, packages := range boxes {
		for _, dir := range packages {
			all := importsOf(t, dir)
			for to, targets := range boxes {
				if to != from && slices.ContainsFunc(targets, func(p string) bool { return slices.Contains(all, module+p) }) {
					imports[from] = append(imports[from], to)
				}
			}
		}
	}
	var below func(from, to string) bool
	below = func(from, to string) bool {
		return from == to || slices.ContainsFunc(arrows[from], func(next string) bool { return below(next, to) })
	}
	for from := range boxes {
		for _, to := range arrows[from] {
			if !slices.Contains(imports[from], to) {
				t.Errorf("docs/maintain/design.md has an arrow from %s to %s, but none of %v imports one of %v", from, to, boxes[from], boxes[to])
			}
		}
		for _, to := range imports[from] {
			if !below(from, to) {
				t.Errorf("docs/maintain/design.md has no arrows from %s to %s, but one of %v imports one of %v", from, to, boxes[from], boxes[to])
			}
		}
	}
}

// importsOf returns what the files of a directory import on any platform, without tests.
func importsOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s is no package: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			all = append(all, imported)
		}
	}
	return all
}

// TestOutside checks that upload/otel and the examples import only what other programs can import.
func TestOutside(t *testing.T) {
	for _, dir := range []string{"upload/otel", "docs/examples"} {
		for _, path := range importsOf(t, dir) {
			if strings.Contains(path, "/internal/") {
				t.Errorf("%s imports %s", dir, path)
			}
		}
	}
}

// TestDesignPages checks that docs/maintain/design.md has a link to each DESIGN.md.
func TestDesignPages(t *testing.T) {
	page := designPage(t)
	n := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "DESIGN.md" {
			return err
		}
		n++
		link, err := filepath.Rel(filepath.Join(root, "docs", "maintain"), name)
		if link = filepath.ToSlash(link); !strings.Contains(page, "("+link+")") {
			t.Errorf("docs/maintain/design.md has no link to %s", link)
		}
		return err
	})
	if err != nil || n < 20 {
		t.Errorf("found %d pages: %v", n, err)
	}
}
