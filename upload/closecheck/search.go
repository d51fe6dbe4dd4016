package closecheck

import (
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// outcome is how paths through a function end, as a set.
type outcome int

const (
	returned outcome = 1 << iota // without Close
	canceled                     // or aborted, or the failure was handled
	closed                       // Close after the failure
)

// maxSteps limits the blocks that a search visits.
const maxSteps = 5000

// search follows the paths on which a call has failed.
type search struct {
	flow   *flow
	failed *ssa.Call // nil in a deferred function
	opened ssa.Value // the Writer, as the function got it
	feeds  bool      // whether the failed call writes to the Writer
	inLoop bool      // whether the function is the body of a loop over an iterator: its Return runs no deferred call yet
	depth  int       // of function calls

	outcome outcome
	at      ssa.Instruction // the first Close
	seen    map[string]bool
}

// state is what is known at a point of a path.
type state struct {
	failure  map[ssa.Value]bool // errors that are not nil, and variables with such errors
	deferred []*ssa.Defer
	closed   ssa.Instruction // the Close after the failure of a call that writes nothing
}

// run follows the paths after the failed call.
func (s *search) run(call *ssa.Call) {
	p := state{failure: map[ssa.Value]bool{call: true}}
	if !s.feeds && ignoresError(call) {
		return // on purpose
	}
	s.inLoop = call.Parent().Synthetic == "range-over-func yield"
	b, n := position(call.Parent(), call)
	for d := b; d != nil; d = d.Idom() {
		instrs := d.Instrs
		if d == b {
			instrs = instrs[:n]
		}
		var defers []*ssa.Defer
		for _, i := range instrs {
			if i, ok := i.(*ssa.Defer); ok {
				defers = append(defers, i)
			}
		}
		p.deferred = append(defers, p.deferred...)
	}
	s.follow(b, n, nil, p)
}

func (s *search) end(o outcome, at ssa.Instruction) {
	s.outcome |= o
	if o == closed && s.at == nil {
		s.at = at
	}
}

// follow continues at instruction n of b. from is the block before b, or nil.
func (s *search) follow(b *ssa.BasicBlock, n int, from *ssa.BasicBlock, p state) {
	p.failure = maps.Clone(p.failure)
	if from != nil {
		phis(b, from, p.failure)
		if key := p.key(b); s.seen[key] || len(s.seen) > maxSteps {
			return
		} else if s.seen == nil {
			s.seen = map[string]bool{key: true}
		} else {
			s.seen[key] = true
		}
	}
	for _, i := range b.Instrs[n:] {
		if v, _ := i.(ssa.Value); v != nil && (v == s.opened || i == ssa.Instruction(s.failed)) {
			s.end(canceled, i) // another attempt
			return
		}
		if s.step(i, &p) {
			return
		}
	}
	if branch, ok := b.Instrs[len(b.Instrs)-1].(*ssa.If); ok {
		then, otherwise := s.branches(branch.Cond, p.failure)
		if then {
			s.follow(b.Succs[0], 0, b, p)
		}
		if otherwise {
			s.follow(b.Succs[1], 0, b, p)
		}
		return
	}
	for _, next := range b.Succs {
		s.follow(next, 0, b, p)
	}
}

// step carries out i. It reports whether the path ends.
func (s *search) step(i ssa.Instruction, p *state) bool {
	set := func(v ssa.Value, failure bool) {
		if failure {
			p.failure[v] = true
		} else {
			delete(p.failure, v)
		}
	}
	switch i := i.(type) {
	case *ssa.Store:
		if b := base(i.Addr); b == i.Addr || p.failure[i.Val] { // an element of the arguments of fmt.Errorf
			set(b, p.failure[i.Val])
		}
	case *ssa.UnOp:
		if i.Op == token.MUL {
			set(i, p.failure[i.X])
		}
	case *ssa.MakeInterface:
		set(i, p.failure[i.X])
	case *ssa.ChangeInterface:
		set(i, p.failure[i.X])
	case *ssa.Slice:
		set(i, p.failure[i.X])
	case *ssa.Extract:
		set(i, isError(i.Type()) && p.failure[i.Tuple])
	case *ssa.Defer:
		p.deferred = append(slices.Clone(p.deferred), i)
	case *ssa.Call:
		if s.call(&i.Call, i, p) {
			return true
		}
		if !s.feeds && s.failed != nil && s.flow.feeds(i) {
			s.end(canceled, i) // The program continues: the failed call is not the cause of a missing byte.
			return true
		}
		wraps := false
		for _, a := range i.Call.Args {
			wraps = wraps || p.failure[a]
		}
		_, several := i.Type().(*types.Tuple)
		set(i, wraps && (several || isError(i.Type())))
	case *ssa.RunDefers:
		return s.runDefers(p)
	case *ssa.Panic:
		s.end(canceled, i)
		return true
	case *ssa.Return:
		if s.inLoop && s.runDefers(p) {
			return true
		}
		if p.closed != nil && s.fails(i, p) {
			s.end(closed, p.closed)
		} else {
			s.end(returned, i)
		}
		return true
	}
	return false
}

func (s *search) runDefers(p *state) bool {
	for _, d := range slices.Backward(p.deferred) {
		if s.call(&d.Call, d, p) {
			return true
		}
	}
	return false
}

// fails reports whether the function tells its caller that it has failed, if it can.
func (s *search) fails(r *ssa.Return, p *state) bool {
	possible := false
	for _, v := range r.Results {
		if p.failure[v] {
			return true
		}
		possible = possible || isError(v.Type())
	}
	_, deferred := p.closed.(*ssa.Defer)
	return deferred && !possible
}

// call carries out c, an operand of i. It reports whether the path ends.
func (s *search) call(c *ssa.CallCommon, i ssa.Instruction, p *state) bool {
	o := returned
	switch _, name := callee(c); {
	case isCancel(c), strings.HasPrefix(name, "Fatal"):
		o = canceled
	case s.flow.closes(c):
		o = closed
	default:
		o = s.inside(c, p)
	}
	switch {
	case o == returned:
		return false
	case o == closed && !s.feeds && s.failed != nil:
		if p.closed == nil {
			p.closed = i
		}
		return false
	case o == closed:
		s.end(closed, i)
	default: // The condition of Close in the function is unknown.
		s.end(canceled, i)
	}
	return true
}

// inside returns how the function ends that c calls, if it is one of this package.
func (s *search) inside(c *ssa.CallCommon, p *state) outcome {
	fn := c.StaticCallee()
	if fn == nil || len(fn.Blocks) == 0 || s.depth > 3 {
		return returned
	}
	var same, cells []ssa.Value
	failure := map[ssa.Value]bool{}
	pass := func(inner, outer ssa.Value) {
		if s.flow.same[outer] {
			same = append(same, inner)
		}
		if s.flow.cells[outer] {
			cells = append(cells, inner)
		}
		if p.failure[outer] {
			failure[inner] = true
		}
	}
	for n, a := range c.Args {
		pass(fn.Params[n], a)
	}
	if m, ok := c.Value.(*ssa.MakeClosure); ok {
		for n, b := range m.Bindings {
			pass(fn.FreeVars[n], b)
		}
	}
	if fn.Parent() == nil && len(same)+len(cells) == 0 {
		return returned
	}
	in := &search{flow: trace(fn, same, cells), depth: s.depth + 1}
	in.follow(fn.Blocks[0], 0, nil, state{failure: failure})
	return in.outcome
}

// branches reports which branches of a condition can follow.
func (s *search) branches(cond ssa.Value, failure map[ssa.Value]bool) (then, otherwise bool) {
	switch c := cond.(type) {
	case *ssa.UnOp:
		if c.Op == token.NOT {
			otherwise, then = s.branches(c.X, failure)
			return then, otherwise
		}
	case *ssa.BinOp:
		if c.Op != token.EQL && c.Op != token.NEQ {
			break
		}
		x, y := c.X, c.Y
		if isNil(x) {
			x, y = y, x
		}
		// An error that equals another one, such as io.EOF, is no failure.
		if failure[x] || failure[y] || s.flow.same[x] && isNil(y) {
			return c.Op == token.NEQ, c.Op == token.EQL
		}
	case *ssa.Call: // errors.Is(err, io.EOF)
		for _, a := range c.Call.Args {
			if failure[a] {
				return false, true
			}
		}
	}
	return true, true
}

func isNil(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && c.IsNil()
}

// phis sets the variables that b joins.
func phis(b, from *ssa.BasicBlock, failure map[ssa.Value]bool) {
	edge := slices.Index(b.Preds, from)
	var set, unset []ssa.Value
	for _, i := range b.Instrs {
		phi, ok := i.(*ssa.Phi)
		if !ok {
			break
		}
		if failure[phi.Edges[edge]] {
			set = append(set, phi)
		} else {
			unset = append(unset, phi)
		}
	}
	for _, v := range set {
		failure[v] = true
	}
	for _, v := range unset {
		delete(failure, v)
	}
}

// key identifies b and p.
func (p *state) key(b *ssa.BasicBlock) string {
	var names []string
	for v := range p.failure {
		names = append(names, fmt.Sprintf("%p", v))
	}
	slices.Sort(names)
	return fmt.Sprintf("%d %p %d %v", b.Index, p.closed, len(p.deferred), names)
}
