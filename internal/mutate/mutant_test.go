package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// code has each kind of mutant.
const code = `package p

import "errors"

type T struct{ n int }

func (t *T) Add(n int) (bool, error) {
	if n < 0 && !zero(n) {
		return false, errors.New("negative")
	}
	t.n += n
	_ = n
	for range n {
		defer done()
		t.n++
	}
	if zero(n) {
		return true, nil
	}
	return n == 1, nil
}
`

func TestMutants(t *testing.T) {
	all, err := mutants("p.go", []byte(code))
	require.NoError(t, err)
	var got []string
	for _, m := range all {
		got = append(got, m.String())
		changed := code[:m.off] + m.with + code[m.end:]
		if _, err := mutants("p.go", []byte(changed)); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	want := []string{
		`p.go:8: T.Add: n < 0 -> n <= 0`,
		`p.go:8: T.Add: n < 0 -> n >= 0`,
		`p.go:8: T.Add: n < 0 && !zero(n) -> n < 0 || !zero(n)`,
		`p.go:9: T.Add: return false, errors.New("negative") -> return true, errors.New("negative")`,
		`p.go:9: T.Add: return false, errors.New("negative") -> return false, nil`,
		`p.go:11: T.Add: t.n += n -> `,
		`p.go:14: T.Add: defer done() -> `,
		`p.go:15: T.Add: t.n++ -> t.n--`,
		`p.go:17: T.Add: zero(n) -> !zero(n)`,
		`p.go:18: T.Add: return true, nil -> return false, nil`,
		`p.go:20: T.Add: n == 1 -> n != 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestShuffle checks that the order depends on the seed only, and that a change of the code keeps most of it.
func TestShuffle(t *testing.T) {
	source := func(file string, functions ...int) []mutant {
		src := "package p\n"
		for _, i := range functions {
			src += fmt.Sprintf("func f%d(n int) bool {\n\treturn n < %d\n}\n", i, i)
		}
		all, err := mutants(file, []byte(src))
		require.NoError(t, err)
		return all
	}
	first := func(all []mutant, seed uint64) []string {
		shuffle(all, seed)
		var changes []string
		for _, m := range all {
			changes = append(changes, m.function+": "+m.new)
		}
		return changes
	}
	var functions []int
	for i := range 50 {
		functions = append(functions, i)
	}
	order := first(source("p.go", functions...), 1)
	if len(order) != 100 {
		t.Fatalf("%d mutants, want 100", len(order))
	}
	if slices.Equal(order, first(source("p.go", functions...), 2)) {
		t.Error("two seeds give the same order")
	}
	slices.Reverse(functions)
	moved := append(source("a.go", functions[25:]...), source("z.go", functions[:25]...)...)
	if got := first(moved, 1); !slices.Equal(got, order) {
		t.Errorf("after functions moved, the order is\n%q, want\n%q", got, order)
	}
	without := slices.DeleteFunc(slices.Clone(order), func(change string) bool { return strings.HasPrefix(change, "f7:") })
	functions = slices.DeleteFunc(functions, func(i int) bool { return i == 7 })
	if got := first(source("p.go", functions...), 1); !slices.Equal(got, without) {
		t.Errorf("without f7, the order is\n%q, want\n%q", got, without)
	}
}

// TestSuite runs the tests of a module with its mutants.
func TestSuite(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":      "module m\n",
		"p/p.go":      "package p\n\nfunc F(n int) bool { return n < 1 }\n\nfunc G() string { return \"a\" + \"b\" }\n\nfunc H() {\n\tfor i := 0; i < 1; i++ {\n\t}\n}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tH()\n\tif F(2) {\n\t\tt.Error(2)\n\t}\n}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	all, err := find("p")
	require.NoError(t, err)
	s := suite{tests: []string{"p"}, tmp: t.TempDir(), limit: 2 * time.Second}
	var got []string
	for _, m := range append([]mutant{{}}, all...) {
		r, err := s.test(m)
		require.NoError(t, err)
		got = append(got, m.new+": "+string(r))
	}
	want := []string{
		": survived",
		"n <= 1: survived",
		"n >= 1: killed",
		`"a" - "b": does not compile`,
		"i <= 1: survived",
		"i >= 1: survived",
		"i--: timed out",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
