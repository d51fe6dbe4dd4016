package deptest_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"gcsup/internal/require"
)

// TestReplyStatus checks that the packages of uploads do not look at the status of a reply, or at
// the reason of a refusal: the tables of package session decide what follows. Only the
// description of an exchange, upload.Exchange, has a copy of the status.
func TestReplyStatus(t *testing.T) {
	for _, path := range []string{"gcsup/upload", "gcsup/upload/internal/engine", "gcsup/upload/internal/parts"} {
		t.Run(path, func(t *testing.T) { checkReplies(t, path) })
	}
}

// checkReplies is TestReplyStatus for a package.
func checkReplies(t *testing.T, path string) {
	fset := token.NewFileSet()
	files, imports := load(t, fset, path)
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg, err := (&types.Config{Importer: imports}).Check(path, fset, files, info)
	require.NoError(t, err)
	session, err := imports.Import("gcsup/session")
	require.NoError(t, err)
	decisive := fields(t, session, "Reply", "Status", "Inner", "Reason", "Message")
	var description []types.Object
	if path == "gcsup/upload" {
		description = fields(t, pkg, "Exchange", "Status")
	}
	// in reports whether n selects one of some fields.
	in := func(n ast.Expr, fields []types.Object) bool {
		s, ok := n.(*ast.SelectorExpr)
		return ok && info.Selections[s] != nil && slices.Contains(fields, info.Selections[s].Obj())
	}
	copied := map[ast.Expr]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if len(n.Rhs) == len(n.Lhs) && in(to, description) {
						copied[n.Rhs[i]] = true
					}
				}
			case *ast.SelectorExpr:
				if in(n, decisive) && !copied[n] {
					t.Errorf("%s: it looks at Reply.%s: a table of package session must decide", fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// fields returns fields of a struct.
func fields(t *testing.T, pkg *types.Package, name string, names ...string) (list []types.Object) {
	t.Helper()
	owner := pkg.Scope().Lookup(name)
	for _, n := range names {
		field, _, _ := types.LookupFieldOrMethod(owner.Type(), true, pkg, n)
		if field == nil {
			t.Fatalf("%s.%s has no field %s", pkg.Path(), name, n)
		}
		list = append(list, field)
	}
	return list
}

// load parses the files of a package, without its tests. The importer reads what the go
// command has compiled.
func load(t *testing.T, fset *token.FileSet, path string) (files []*ast.File, imports types.Importer) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles", path).Output()
	require.NoError(t, err)
	compiled := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
		}
		require.NoError(t, d.Decode(&p))
		compiled[p.ImportPath] = p.Export
		if p.ImportPath != path {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	return files, importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
}
