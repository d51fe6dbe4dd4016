package closecheck

import (
	"go/types"
	"iter"
	"regexp"

	"golang.org/x/tools/go/ssa"
)

// flow has the values of a function that are a Writer, or pass bytes to it.
type flow struct {
	same  map[ssa.Value]bool // the Writer itself, also as an interface
	cells map[ssa.Value]bool // the addresses of variables that have it
	feed  map[ssa.Value]bool // other values that can write to it, such as a gzip.Writer or a closure
}

// trace returns the flow of the Writers and of the variables with Writers in fn.
func trace(fn *ssa.Function, same, cells []ssa.Value) *flow {
	f := &flow{map[ssa.Value]bool{}, map[ssa.Value]bool{}, map[ssa.Value]bool{}}
	for _, v := range same {
		f.same[v] = true
	}
	for _, v := range cells {
		f.cells[v] = true
	}
	for before := -1; before != len(f.same)+len(f.cells)+len(f.feed); {
		before = len(f.same) + len(f.cells) + len(f.feed)
		for i := range instructions(fn) {
			f.step(i)
		}
	}
	return f
}

// step adds what i copies.
func (f *flow) step(i ssa.Instruction) {
	copyOf := func(to ssa.Value, from ...ssa.Value) {
		for _, v := range from {
			if f.same[v] {
				f.same[to] = true
			}
			if f.feed[v] {
				f.feed[to] = true
			}
		}
	}
	switch i := i.(type) {
	case *ssa.MakeInterface:
		copyOf(i, i.X)
	case *ssa.ChangeInterface:
		copyOf(i, i.X)
	case *ssa.ChangeType:
		copyOf(i, i.X)
	case *ssa.TypeAssert:
		copyOf(i, i.X)
	case *ssa.Phi:
		copyOf(i, i.Edges...)
	case *ssa.Slice:
		copyOf(i, i.X)
	case *ssa.UnOp:
		if f.cells[i.X] {
			f.same[i] = true
		} else if f.feed[i.X] {
			f.feed[i] = true
		}
	case *ssa.FieldAddr: // a field of the Writer has its settings
		if f.feed[i.X] {
			f.feed[i] = true
		}
	case *ssa.IndexAddr:
		copyOf(i, i.X)
	case *ssa.Store:
		if _, variable := i.Addr.(*ssa.Alloc); variable && f.same[i.Val] {
			f.cells[i.Addr] = true
		} else if f.same[i.Val] || f.feed[i.Val] {
			f.feed[base(i.Addr)] = true
		}
	case *ssa.MakeClosure:
		for _, b := range i.Bindings {
			if f.touches(b) {
				f.feed[i] = true
			}
		}
	case *ssa.Call:
		r := receiver(&i.Call)
		if (r == nil || !f.same[r]) && f.used(&i.Call) && writes(i.Type()) {
			f.feed[i] = true
		}
	case *ssa.Extract:
		if c, ok := i.Tuple.(*ssa.Call); ok && f.used(&c.Call) && writes(i.Type()) {
			f.feed[i] = true
		} else if _, ok := i.Tuple.(*ssa.TypeAssert); ok && i.Index == 0 {
			copyOf(i, i.Tuple)
		}
	}
}

// base returns the variable that has the element or field at addr.
func base(addr ssa.Value) ssa.Value {
	for {
		switch a := addr.(type) {
		case *ssa.FieldAddr:
			addr = a.X
		case *ssa.IndexAddr:
			addr = a.X
		default:
			return addr
		}
	}
}

var writeMethod = regexp.MustCompile(`^(Write|Encode|Append|Read)`)

// writes reports whether a value of type t can pass bytes on. An io.TeeReader does it in Read.
func writes(t types.Type) bool {
	methods := types.NewMethodSet(t)
	for m := range methods.Methods() {
		if writeMethod.MatchString(m.Obj().Name()) {
			return true
		}
	}
	_, slice := t.Underlying().(*types.Slice) // append(writers, w)
	return slice
}

// touches reports whether v is the Writer, or leads to it.
func (f *flow) touches(v ssa.Value) bool { return f.same[v] || f.cells[v] || f.feed[v] }

// used reports whether c gets the Writer, or something that leads to it.
func (f *flow) used(c *ssa.CallCommon) bool {
	if f.touches(c.Value) {
		return true
	}
	for _, a := range c.Args {
		if f.touches(a) {
			return true
		}
	}
	return false
}

// closes reports whether c closes the Writer, or calls a function that gets its method Close, or that gets the Writer
// and has "close" in its name.
func (f *flow) closes(c *ssa.CallCommon) bool {
	_, name := callee(c)
	if r := receiver(c); r != nil {
		if f.same[r] {
			return name == "Close"
		}
		if f.feed[r] {
			return false // of a gzip.Writer
		}
	}
	if m, ok := c.Value.(*ssa.MakeClosure); ok && f.boundClose(m) {
		return true
	}
	for _, a := range c.Args {
		if m, ok := a.(*ssa.MakeClosure); ok && f.boundClose(m) || f.same[a] && closes.MatchString(name) {
			return true
		}
	}
	return false
}

// boundClose reports whether m is w.Close as a value.
func (f *flow) boundClose(m *ssa.MakeClosure) bool {
	return m.Fn.Name() == "Close$bound" && f.same[m.Bindings[0]]
}

// ends reports whether the Writer is closed, or cannot publish any more, after i.
func (f *flow) ends(i ssa.Instruction) bool {
	c, ok := i.(*ssa.Call)
	return ok && (isCancel(&c.Call) || f.closes(&c.Call))
}

// feeds reports whether c may write to the Writer.
func (f *flow) feeds(c *ssa.Call) bool {
	if !f.used(&c.Call) || f.ends(c) {
		return false
	}
	if r := receiver(&c.Call); r != nil && f.same[r] {
		_, name := callee(&c.Call)
		return writeMethod.MatchString(name)
	}
	return !f.feed[c] // bufio.NewWriter(w) writes nothing
}

var (
	inMemory = regexp.MustCompile(`^\*(bytes\.(Reader|Buffer)|strings\.Reader)$`)
	passesOn = regexp.MustCompile(`^(bufio$|compress/|encoding/)`)
)

// onlyWriterFails reports whether an error of c, which writes to the Writer, can only be that of the Writer.
func (f *flow) onlyWriterFails(c *ssa.Call) bool {
	fromMemory := func(v ssa.Value) bool {
		if m, ok := v.(*ssa.MakeInterface); ok {
			v = m.X
		}
		return inMemory.MatchString(v.Type().String())
	}
	pkg, name := callee(&c.Call)
	r := receiver(&c.Call)
	switch {
	case r == nil && pkg == "fmt", r == nil && pkg == "io" && name == "WriteString":
		return true
	case r == nil && pkg == "io" && (name == "Copy" || name == "CopyBuffer"):
		return fromMemory(c.Call.Args[1])
	case r == nil:
		return false
	case name == "ReadFrom":
		return fromMemory(c.Call.Args[len(c.Call.Args)-1])
	case name == "WriteTo":
		return fromMemory(r)
	case pkg == "encoding/json" && name == "Encode":
		return encodes(c.Call.Args[1])
	case pkg == "archive/tar" || pkg == "archive/zip": // the sizes in a header may be wrong
		return false
	case name == "Write" || name == "WriteString" || name == "WriteByte" || name == "WriteRune":
		return true
	}
	return (name == "Flush" || name == "Close") && passesOn.MatchString(pkg)
}

// encodes reports whether JSON can represent each value of the type that v had before it became an interface.
func encodes(v ssa.Value) bool {
	m, ok := v.(*ssa.MakeInterface)
	return ok && encodesType(m.X.Type(), 0)
}

func encodesType(t types.Type, depth int) bool {
	for _, method := range []string{"MarshalJSON", "MarshalText"} {
		if o, _, _ := types.LookupFieldOrMethod(t, true, nil, method); o != nil {
			return false
		}
	}
	if depth > 10 { // a list may have a cycle
		return false
	}
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return t.Info()&(types.IsBoolean|types.IsInteger|types.IsString) != 0 // NaN is not
	case *types.Pointer:
		return encodesType(t.Elem(), depth+1)
	case *types.Slice:
		return encodesType(t.Elem(), depth+1)
	case *types.Array:
		return encodesType(t.Elem(), depth+1)
	case *types.Map:
		return encodesType(t.Key(), depth+1) && encodesType(t.Elem(), depth+1)
	case *types.Struct:
		for f := range t.Fields() {
			if !encodesType(f.Type(), depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// fedAfter reports whether something may be written to the Writer after c.
func (f *flow) fedAfter(fn *ssa.Function, c *ssa.Call, open func(ssa.Instruction) bool) bool {
	for i := range after(fn, c, open) {
		if later, ok := i.(*ssa.Call); ok && f.feeds(later) {
			return true
		}
	}
	return false
}

// instructions yields the instructions of fn.
func instructions(fn *ssa.Function) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		for _, b := range fn.Blocks {
			for _, i := range b.Instrs {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// after yields the instructions of fn that may run after v, which is an instruction or a parameter. It does not pass an
// instruction for which open is false, but yields it.
func after(fn *ssa.Function, v ssa.Value, open func(ssa.Instruction) bool) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		if len(fn.Blocks) == 0 {
			return
		}
		seen := map[*ssa.BasicBlock]bool{}
		type place struct {
			b *ssa.BasicBlock
			i int
		}
		b, i := position(fn, v)
		todo := []place{{b, i}}
		for len(todo) > 0 {
			p := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			passed := true
			for _, i := range p.b.Instrs[p.i:] {
				if !yield(i) {
					return
				}
				if passed = open(i); !passed {
					break
				}
			}
			if !passed {
				continue
			}
			for _, next := range p.b.Succs {
				if !seen[next] {
					seen[next] = true
					todo = append(todo, place{next, 0})
				}
			}
		}
	}
}

// position returns the place behind v.
func position(fn *ssa.Function, v ssa.Value) (*ssa.BasicBlock, int) {
	if i, ok := v.(ssa.Instruction); ok {
		for n, other := range i.Block().Instrs {
			if other == i {
				return i.Block(), n + 1
			}
		}
	}
	return fn.Blocks[0], 0
}
