package upload_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestErrorTable checks that the table in the package documentation has every
// sentinel and every error type of this package and of package session once, and
// that it agrees with the table of session about what is resumable.
func TestErrorTable(t *testing.T) {
	const resumableAt = "resumable"
	listed := map[string]string{} // the error and whether it is resumable
	column := 0
	for line := range strings.Lines(packageDoc(t, "doc.go")) {
		row, indented := strings.CutPrefix(line, "\t")
		switch name, _, _ := strings.Cut(row, " "); {
		case !indented:
		case name == "error":
			column = strings.Index(row, resumableAt)
		case column > 0:
			if _, twice := listed[name]; twice {
				t.Errorf("the table has %s twice", name)
			}
			listed[name] = strings.Fields(row[column:])[0]
		}
	}
	foreign := []string{"chunk.ErrRead", "chunk.ErrNotRegular", "*fs.PathError", "fs.ErrExist"}
	own, _ := errorsOf(t, ".")
	sessions, resumable := errorsOf(t, "../session")
	want := slices.Concat(own, foreign)
	for _, name := range sessions {
		qualified := "session." + name
		if kind, is := strings.CutPrefix(name, "*"); is {
			qualified = "*session." + kind
		}
		want = append(want, qualified)
		if is, ok := resumable[name]; ok && listed[qualified] != is {
			t.Errorf("%s is resumable: %s, and %s in session", qualified, listed[qualified], is)
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
	if len(resumable) == 0 || len(want) < 20 {
		t.Errorf("found %d errors, and %d rows in the table of session", len(want), len(resumable))
	}
}

// packageDoc returns the documentation of the package in a file.
func packageDoc(t *testing.T, path string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	return file.Doc.Text()
}

// errorsOf returns the exported sentinels of a package, and its exported error
// types with a star. resumable is the third column of the table above the
// sentinels, if there is one.
func errorsOf(t *testing.T, dir string) (names []string, resumable map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	resumable = map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
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
					switch {
					case indented && strings.HasPrefix(row, "sentinel"):
						column = strings.Index(row, "resumable")
					case indented && column > 0 && strings.HasPrefix(row, "Err"):
						resumable[strings.Fields(row)[0]] = strings.Fields(row[column:])[0]
					}
				}
			}
		}
	}
	return names, resumable
}
