package upload_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestErrorTable checks that the table at the sentinels has every sentinel and every
// error type of this package once, every error type of packages session and state, and the
// errors of other packages. The sentinels of these packages are in their own tables.
func TestErrorTable(t *testing.T) {
	want, listed := errorsOf(t, ".")
	want = append(want, "backoff.ErrPermanent", "chunk.ErrRead", "chunk.ErrNotRegular", "*fs.PathError", "fs.ErrExist")
	for dir, atLeast := range map[string]int{"../session": 15, "../session/state": 5} {
		below, resumable := errorsOf(t, dir)
		for _, name := range below {
			if kind, is := strings.CutPrefix(name, "*"); is {
				want = append(want, "*"+filepath.Base(dir)+"."+kind)
			} else if _, ok := resumable[name]; !ok {
				t.Errorf("the table of %s does not have %s", dir, name)
			}
		}
		if len(resumable) < atLeast {
			t.Errorf("found %d rows in the table of %s", len(resumable), dir)
		}
	}
	for _, name := range want {
		if _, ok := listed[name]; !ok {
			t.Errorf("the table does not have %s", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("the table has %s, which is not exported", name)
	}
	if len(want) < 9 {
		t.Errorf("found %d errors", len(want))
	}
}

// errorsOf returns the exported sentinels of a package, and its exported error
// types with a star. resumable is the third column of the table above the
// sentinels, if there is one.
func errorsOf(t *testing.T, dir string) (names []string, resumable map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	resumable = map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				// A method Error() string.
				if d.Recv == nil || d.Name.Name != "Error" || d.Type.Params.NumFields() != 0 {
					continue
				}
				if star, ok := d.Recv.List[0].Type.(*ast.StarExpr); ok {
					if name := star.X.(*ast.Ident).Name; ast.IsExported(name) {
						names = append(names, "*"+name)
					}
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				for _, spec := range d.Specs {
					if name := spec.(*ast.ValueSpec).Names[0].Name; strings.HasPrefix(name, "Err") {
						names = append(names, name)
					}
				}
				column := 0
				for line := range strings.Lines(d.Doc.Text()) {
					row, indented := strings.CutPrefix(line, "\t")
					name, _, _ := strings.Cut(row, " ")
					switch {
					case !indented || row == "\n":
					case column == 0:
						column = strings.Index(row, "resumable")
					default:
						if _, twice := resumable[name]; twice {
							t.Errorf("the table in %s has %s twice", path, name)
						}
						resumable[name] = strings.Fields(row[column:])[0]
					}
				}
			}
		}
	}
	return names, resumable
}
