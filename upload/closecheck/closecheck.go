package closecheck

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"path"
	"reflect"
	"regexp"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"
)

// Analyzer reports a Close that publishes a truncated object.
var Analyzer = &analysis.Analyzer{
	Name: "closecheck",
	Doc: `report a Close of a Writer for Cloud Storage that publishes a truncated object

Close of a *storage.Writer or *upload.Writer publishes the bytes that were written before. After a failure, such as
a read error of io.Copy, the object is truncated. Cancel the context of the Writer, or call Abort, before Close.`,
	Run:      run,
	Requires: []*analysis.Analyzer{buildssa.Analyzer},
}

func run(pass *analysis.Pass) (any, error) {
	for _, fn := range pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA).SrcFuncs {
		for _, p := range fn.Params {
			if isWriter(p.Type()) {
				check(pass, fn, p)
			}
		}
		for i := range instructions(fn) {
			switch v := i.(type) {
			case *ssa.Call:
				if isWriter(v.Type()) {
					check(pass, fn, v)
				}
			case *ssa.Extract:
				if _, ok := v.Tuple.(*ssa.Call); ok && isWriter(v.Type()) {
					check(pass, fn, v)
				}
			}
		}
	}
	return nil, nil
}

// check reports each Close of the Writer w after a failure.
func check(pass *analysis.Pass, fn *ssa.Function, w ssa.Value) {
	f := trace(fn, []ssa.Value{w}, nil)
	reported := map[token.Pos]bool{}
	open := func(i ssa.Instruction) bool {
		v, _ := i.(ssa.Value)
		return v != w && !f.ends(i)
	}
	for i := range after(fn, w, open) {
		call, ok := i.(*ssa.Call)
		if !ok || !open(i) || !mayFail(call) {
			continue
		}
		feeds := f.feeds(call)
		if feeds && f.onlyWriterFails(call) || !feeds && !f.fedAfter(fn, call, open) {
			continue
		}
		s := &search{flow: f, failed: call, opened: w, feeds: feeds}
		s.run(call)
		if s.outcome&closed == 0 || reported[s.at.Pos()] {
			continue
		}
		reported[s.at.Pos()] = true
		what := "an object that nothing was written to, or only a part"
		if feeds {
			what = "a truncated object"
		}
		pass.Report(analysis.Diagnostic{
			Pos: s.at.Pos(),
			Message: fmt.Sprintf("Close publishes %s if %s in line %d fails: %s before it",
				what, describe(&call.Call), pass.Fset.Position(call.Pos()).Line, remedy(w.Type())),
			Related: []analysis.RelatedInformation{{Pos: call.Pos(), Message: "this call may fail"}},
		})
	}
}

// isWriter reports whether t is the type of a Writer.
func isWriter(t types.Type) bool { return writerPackage(t) != "" }

func writerPackage(t types.Type) string {
	p, ok := t.(*types.Pointer)
	if !ok {
		return ""
	}
	n, ok := types.Unalias(p.Elem()).(*types.Named)
	if !ok || n.Obj().Name() != "Writer" || n.Obj().Pkg() == nil {
		return ""
	}
	switch n.Obj().Pkg().Path() {
	case "cloud.google.com/go/storage":
		return "storage"
	case uploadPath:
		return "upload"
	}
	return ""
}

// uploadPath is the import path of package upload. make publish-as changes it.
var uploadPath = path.Dir(reflect.TypeFor[flow]().PkgPath())

func remedy(t types.Type) string {
	if writerPackage(t) == "upload" {
		return "call Abort"
	}
	return "cancel the context of NewWriter"
}

var errorType = types.Universe.Lookup("error").Type()

func isError(t types.Type) bool { return types.Identical(t, errorType) }

// mayFail reports whether the last result of call is an error that something else has caused.
func mayFail(call *ssa.Call) bool {
	results := call.Call.Signature().Results()
	if results.Len() == 0 || !isError(results.At(results.Len()-1).Type()) {
		return false
	}
	switch pkg, name := callee(&call.Call); pkg {
	case "errors", "context":
		return false
	case "fmt":
		return name != "Errorf"
	case "encoding/json":
		return name != "Marshal" || !encodes(call.Call.Args[0])
	}
	return true
}

// ignoresError reports whether no variable gets the last result of call.
func ignoresError(call *ssa.Call) bool {
	n := call.Call.Signature().Results().Len()
	for _, r := range *call.Referrers() {
		if e, ok := r.(*ssa.Extract); n == 1 || ok && e.Index == n-1 {
			return false
		}
	}
	return true
}

// callee returns the package and the name of the function or method that c calls. The package is empty if it
// is not known. For a variable, the name is that of the variable.
func callee(c *ssa.CallCommon) (pkg, name string) {
	if c.IsInvoke() {
		return "", c.Method.Name()
	}
	if fn := c.StaticCallee(); fn != nil {
		o := fn.Object()
		if o == nil || o.Pkg() == nil { // a function literal, which has the name of the function around it
			return "", ""
		}
		return o.Pkg().Path(), o.Name()
	}
	v := c.Value
	if load, ok := v.(*ssa.UnOp); ok {
		v = load.X
	}
	switch v := v.(type) {
	case *ssa.Alloc:
		return "", v.Comment
	case *ssa.FieldAddr:
		if p, ok := v.X.Type().Underlying().(*types.Pointer); ok {
			if s, ok := p.Elem().Underlying().(*types.Struct); ok {
				return "", s.Field(v.Field).Name()
			}
		}
	case *ssa.Parameter, *ssa.FreeVar, *ssa.Global:
		return "", v.Name()
	}
	return "", ""
}

// describe returns the name of what c calls, for a message.
func describe(c *ssa.CallCommon) string {
	pkg, name := callee(c)
	if fn := c.StaticCallee(); pkg != "" && fn.Signature.Recv() == nil {
		return fn.Object().Pkg().Name() + "." + name
	}
	return cmp.Or(name, "the call")
}

// receiver returns the receiver of a method call, or nil.
func receiver(c *ssa.CallCommon) ssa.Value {
	if c.IsInvoke() {
		return c.Value
	}
	if fn := c.StaticCallee(); fn != nil && fn.Signature.Recv() != nil && len(c.Args) > 0 {
		return c.Args[0]
	}
	return nil
}

var (
	cancels = regexp.MustCompile(`(?i)^(cancel|abort|closewitherror)|(cancel|abort)$`)
	closes  = regexp.MustCompile(`(?i)close`)
)

// isCancel reports whether c cancels a context or aborts an upload. It does not ask which one.
func isCancel(c *ssa.CallCommon) bool {
	if pkg, name := callee(c); cancels.MatchString(name) && pkg != "context" {
		return true
	}
	n, ok := types.Unalias(c.Value.Type()).(*types.Named)
	return ok && !c.IsInvoke() && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context" // a context.CancelFunc
}
