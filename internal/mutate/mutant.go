package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a change of a file: its bytes from off to end are replaced.
type mutant struct {
	file     string
	off, end int
	with     string
	line     int
	function string
	old, new string // what changes, in one line each
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s -> %s", m.file, m.line, m.function, m.old, m.new)
}

// find returns the mutants of the Go files in a directory that are no tests, and that this platform compiles.
func find(dir string) ([]mutant, error) {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range pkg.GoFiles {
		file := filepath.Join(dir, name)
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := mutants(file, src)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mutants returns the mutants of a file, in its order.
func mutants(file string, src []byte) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, decl := range tree.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		offset := func(pos token.Pos) int { return set.Position(pos).Offset }
		// replace adds the change of a node: its bytes from pos to end become with.
		replace := func(node ast.Node, pos, end token.Pos, with string) {
			text := func(from, to int) string { return string(src[from:to]) }
			m := mutant{file: file, off: offset(pos), end: offset(end), with: with, line: set.Position(pos).Line, function: nameOf(f)}
			from, to := offset(node.Pos()), offset(node.End())
			m.old = oneLine(text(from, to))
			m.new = oneLine(text(from, m.off) + with + text(m.end, to))
			all = append(all, m)
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			visit(n, f, replace)
			return true
		})
	}
	slices.SortStableFunc(all, func(a, b mutant) int { return a.off - b.off })
	return all, nil
}

// operators lists what replaces a binary operator.
var operators = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.GEQ: {token.GTR, token.LSS},
	token.GTR: {token.GEQ, token.LEQ}, token.LEQ: {token.LSS, token.GTR},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
}

// visit calls replace for each mutant of a node without its children. The types are not known: some mutants
// do not compile.
func visit(n ast.Node, f *ast.FuncDecl, replace func(node ast.Node, pos, end token.Pos, with string)) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, op := range operators[n.Op] {
			replace(n, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
		}
	case *ast.IncDecStmt:
		with := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		replace(n, n.TokPos, n.End(), with)
	case *ast.IfStmt:
		switch cond := n.Cond.(type) {
		case *ast.BinaryExpr: // its operator is replaced
		case *ast.UnaryExpr:
			if cond.Op == token.NOT {
				replace(cond, cond.Pos(), cond.X.Pos(), "")
			}
		default:
			replace(cond, cond.Pos(), cond.Pos(), "!")
		}
	case *ast.ReturnStmt:
		for _, result := range n.Results {
			if id, ok := result.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
				replace(n, id.Pos(), id.End(), map[string]string{"true": "false", "false": "true"}[id.Name])
			}
		}
		if last, ok := lastResult(n); ok {
			replace(n, last.Pos(), last.End(), "nil")
		}
	case *ast.BlockStmt:
		remove(n.List, replace)
	case *ast.CaseClause:
		remove(n.Body, replace)
	case *ast.CommClause:
		remove(n.Body, replace)
	}
}

// remove makes a mutant without each statement that is a call, an assignment or a defer.
func remove(list []ast.Stmt, replace func(node ast.Node, pos, end token.Pos, with string)) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if id, ok := s.Lhs[0].(*ast.Ident); s.Tok == token.DEFINE || ok && id.Name == "_" {
				continue
			}
		case *ast.ExprStmt, *ast.DeferStmt, *ast.SendStmt:
		default:
			continue
		}
		replace(s, s.Pos(), s.End(), "")
	}
}

// lastResult returns the last result of a return, if its name says that it is an error that is not nil.
func lastResult(n *ast.ReturnStmt) (ast.Expr, bool) {
	if len(n.Results) == 0 {
		return nil, false
	}
	last := n.Results[len(n.Results)-1]
	switch e := last.(type) {
	case *ast.Ident:
		return last, e.Name == "err"
	case *ast.CallExpr:
		fun, ok := e.Fun.(*ast.SelectorExpr)
		return last, ok && (fun.Sel.Name == "Errorf" || fun.Sel.Name == "New")
	}
	return nil, false
}

// nameOf returns the name of a function or method without those of its package and file, which often change.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// shuffle sorts mutants by a hash of the seed, the function and the change. After a change of the tree, the first mutants are
// therefore mostly the same ones, even if their functions have moved.
func shuffle(all []mutant, seed uint64) {
	type key [sha256.Size]byte
	keys := map[mutant]key{}
	times := map[string]int{}
	for _, m := range all {
		change := m.function + "\x00" + m.old + "\x00" + m.new
		times[change]++
		text := fmt.Sprintf("%s\x00%d", change, times[change])
		keys[m] = sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), text...))
	}
	slices.SortFunc(all, func(a, b mutant) int {
		ka, kb := keys[a], keys[b]
		return cmp.Or(slices.Compare(ka[:], kb[:]), strings.Compare(a.file, b.file), a.off-b.off)
	})
}
