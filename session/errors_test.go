package session_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestErrorTable checks that errors.go declares all sentinel errors, and that its
// table has each of them once, in the same order.
func TestErrorTable(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var declared, listed []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			vars, ok := decl.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				name := spec.(*ast.ValueSpec).Names[0].Name
				if !strings.HasPrefix(name, "Err") {
					continue
				}
				if path != "errors.go" {
					t.Errorf("%s is in %s, not in errors.go", name, path)
				}
				declared = append(declared, name)
			}
			for line := range strings.Lines(vars.Doc.Text()) {
				if row, indented := strings.CutPrefix(line, "\tErr"); indented {
					listed = append(listed, "Err"+strings.Fields(row)[0])
				}
			}
		}
	}
	if len(declared) == 0 || !slices.Equal(declared, listed) {
		t.Errorf("errors.go declares\n%v\nand its table lists\n%v", declared, listed)
	}
}
