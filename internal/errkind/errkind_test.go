package errkind

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// libraries are the packages whose sentinel errors have a kind.
var libraries = []string{"backoff", "chunk", "session", "session/state", "session/state/bucketstore", "upload", "upload/gcs", "upload/manifest", "upload/mirror", "upload/tree"}

// TestEverySentinel checks that each sentinel error of the library has a kind, and that the kind has
// its name, unless the documentation of the package has it as an exception.
func TestEverySentinel(t *testing.T) {
	table := tableOfKinds(t)
	page := exceptions(t)
	found := 0
	for _, library := range libraries {
		for name, alias := range sentinels(t, library) {
			found++
			full := path.Base(library) + "." + name
			kind, ok := table[full]
			switch {
			case !ok && (table[alias] != "" || hasAlias(t, full, table)):
			case !ok:
				t.Errorf("%s has no kind", full)
			case kind != snake(name) && !strings.Contains(page, "["+full+"]") && !grouped[full]:
				t.Errorf("%s has the kind %q, which is no exception; want %q", full, kind, snake(name))
			}
		}
	}
	if found < 40 {
		t.Errorf("found %d sentinels", found)
	}
}

// grouped are the exceptions that the documentation of the package has as a group.
var grouped = map[string]bool{
	"manifest.ErrFormat": true, "manifest.ErrUnsorted": true, "manifest.ErrClosed": true,
	"tree.ErrSymlink": true, "tree.ErrNotRegular": true, "tree.ErrName": true, "tree.ErrLeftOut": true,
}

// hasAlias reports whether another package exports the sentinel error by a name in the table.
func hasAlias(t *testing.T, full string, table map[string]string) bool {
	for _, library := range libraries {
		for name, alias := range sentinels(t, library) {
			if alias == full && table[path.Base(library)+"."+name] != "" {
				return true
			}
		}
	}
	return false
}

// sentinels returns the exported variables Err… of a package, with what they are an alias of.
func sentinels(t *testing.T, library string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(library), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", library, err)
	}
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, d := range parse(t, file).Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if len(v.Values) != len(v.Names) || !strings.HasPrefix(name.Name, "Err") {
						continue
					}
					found[name.Name] = nameOf(v.Values[i], path.Base(library))
				}
			}
		}
	}
	return found
}

// tables are the files that have rows of the table of kinds, with the name of their package.
var tables = map[string]string{"errkind.go": "errkind", "../../upload/errorkind.go": "upload"}

// tableOfKinds returns the table of kinds by the names of the sentinel errors in it.
func tableOfKinds(t *testing.T) map[string]string {
	t.Helper()
	table := map[string]string{}
	for file, pkg := range tables {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			c, ok := n.(*ast.CompositeLit)
			if !ok || c.Type != nil || len(c.Elts) != 2 {
				return true
			}
			kind := map[string]string{"LocalIO": LocalIO, "kindLocalIO": LocalIO, "NoInput": NoInput}
			switch k := c.Elts[1].(type) {
			case *ast.BasicLit:
				table[nameOf(c.Elts[0], pkg)], _ = strconv.Unquote(k.Value)
			case *ast.Ident:
				table[nameOf(c.Elts[0], pkg)] = kind[k.Name]
			}
			return true
		})
	}
	if len(table) < 50 || slices.Contains(slices.Collect(maps.Values(table)), "") {
		t.Fatalf("read %d rows of the table: %v", len(table), table)
	}
	return table
}

// nameOf returns pkg.Name for a selector or a name of package pkg, else "".
func nameOf(e ast.Expr, pkg string) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.X.(*ast.Ident).Name + "." + e.Sel.Name
	case *ast.Ident:
		return pkg + "." + e.Name
	}
	return ""
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	return f
}

// exceptions returns the lines that document the kinds without the name of a sentinel error.
func exceptions(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^//\t\w+ +\[.*\]`)
	var all []string
	for file, pkg := range tables {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := strings.Join(line.FindAllString(string(text), -1), "\n")
		all = append(all, strings.ReplaceAll(found, "[Err", "["+pkg+".Err"))
	}
	return strings.Join(all, "\n")
}

// snake returns a name such as ErrURIMismatch as uri_mismatch.
func snake(name string) string {
	name = strings.ReplaceAll(strings.TrimPrefix(name, "Err"), "URI", "Uri")
	return strings.ToLower(strings.Join(regexp.MustCompile(`[A-Z][a-z]*`).FindAllString(name, -1), "_"))
}

// TestOf checks which of two sentinel errors decides the kind.
func TestOf(t *testing.T) {
	missing := func() error { _, err := chunk.Open(filepath.Join(t.TempDir(), "a")); return err }()
	for _, c := range []struct {
		err  error
		kind string
	}{
		{session.ErrUnexpectedData, "unexpected_data"},
		{errors.New("unheard of"), LocalIO},
		{missing, NoInput},
		{fmt.Errorf("%w: %w", chunk.ErrRead, errors.New("disk")), LocalIO},
		{&state.HeldError{}, "in_use"},
		{backoff.ErrRetriesExhausted, "retries_exhausted"},
		{fmt.Errorf("%w: %w", upload.ErrNotTried, session.ErrNotFound), "not_found"},
		{upload.ErrNotTried, "not_tried"},
		{fmt.Errorf("%w (before that: %w)", context.Canceled, session.ErrCredentials), "interrupted"},
		{&session.Error{Kind: session.ErrRetriesExhausted, Err: session.ErrStalled}, "retries_exhausted"},
		{&session.Error{Kind: session.ErrRetriesExhausted, Err: context.DeadlineExceeded}, "retries_exhausted"},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, bucketstore.ErrSlow), "retries_exhausted"},
		{fmt.Errorf("%w: %w", context.Canceled, bucketstore.ErrSlow), "interrupted"},
		{fmt.Errorf("%w: %w", state.ErrInUse, bucketstore.ErrSlow), "in_use"},
	} {
		for _, err := range []error{c.err, fmt.Errorf("while testing: %w", c.err)} {
			if kind := Of(err); kind != c.kind {
				t.Errorf("%q: %s, want %s", err, kind, c.kind)
			}
		}
	}
}
