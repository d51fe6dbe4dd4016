package deptest_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestAPI compares the exported names of the public packages with docs/reference/api.txt, so that a change of
// the API is seen in a review. It looks at the files for linux.
func TestAPI(t *testing.T) {
	linux := build.Default
	linux.GOOS, linux.GOARCH = "linux", "amd64"
	var got bytes.Buffer
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == "internal" || d.Name() == "testdata" || d.Name() == "cmd" || d.Name() == "docs" || len(d.Name()) > 2 && d.Name()[0] == '.':
			return filepath.SkipDir
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range names {
			if ok, err := linux.MatchFile(dir, filepath.Base(name)); !ok || err != nil || strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		if len(files) == 0 || files[0].Name.Name == "main" {
			return nil
		}
		path, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		p, err := doc.NewFromFiles(fset, files, path)
		if err != nil {
			return err
		}
		writeAPI(&got, fset, p)
		return nil
	})
	require.NoError(t, err)
	name := filepath.Join(root, "docs", "reference", "api.txt")
	if *update {
		require.NoError(t, os.WriteFile(name, got.Bytes(), 0o666))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	if line := differs(got.String(), string(want)); line != "" {
		t.Errorf("docs/reference/api.txt is not true from this line: %s\nrun: go test ./internal/deptest -run TestAPI -update", line)
	}
}

// differs returns the first line that a or b has alone.
func differs(a, b string) string {
	al, bl := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(al), len(bl)) {
		switch {
		case i >= len(al):
			return "- " + bl[i]
		case i >= len(bl):
			return "+ " + al[i]
		case al[i] != bl[i]:
			return "- " + bl[i] + "\n+ " + al[i]
		}
	}
	return ""
}

// writeAPI writes the exported declarations of a package, without bodies and comments.
func writeAPI(out *bytes.Buffer, fset *token.FileSet, p *doc.Package) {
	fmt.Fprintf(out, "\npackage %s\n\n", filepath.ToSlash(p.ImportPath))
	declare := func(decl ast.Decl) {
		var text bytes.Buffer
		_ = (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&text, fset, decl) // a Buffer has no error
		for line := range strings.Lines(text.String()) {
			if strings.TrimSpace(line) != "" { // comments left empty lines
				out.WriteString(line)
			}
		}
		out.WriteByte('\n')
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, spec := range v.Decl.Specs {
				if spec := spec.(*ast.ValueSpec); v.Decl.Tok == token.VAR && spec.Type == nil {
					spec.Values = nil // the value of a variable is not its type
				}
				declare(&ast.GenDecl{Tok: v.Decl.Tok, Specs: []ast.Spec{spec}})
			}
		}
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			f.Decl.Body = nil
			declare(f.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		declare(typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
}
