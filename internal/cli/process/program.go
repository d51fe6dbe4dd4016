package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"gcsup/internal/cli/shell"
)

// called is the name by which the process was started; "" if it is not known.
var called string

// StartedAs records the name by which the process was started, os.Args[0]. The main function
// calls it before anything else.
func StartedAs(name string) { called = name }

// Called returns the name by which the process was started.
func Called() string {
	if called == "" {
		called, _ := os.Executable()
		return called
	}
	return called
}

// Words returns the words that run this program again.
func Words() string {
	self, err := os.Executable()
	if err != nil {
		return Called()
	}
	pkg := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = info.Path
	}
	return wordsOf(Called(), self, pkg, exec.LookPath)
}

// wordsOf returns the words that run the program at self, which was started as called
// and built from pkg. It returns the bare name if look finds the program by that
// name, else a path that is valid in every directory.
func wordsOf(called, self, pkg string, look func(string) (string, error)) string {
	base := filepath.Base(called)
	if found, err := look(base); err == nil && sameFile(found, self) {
		return base
	}
	// go run removes the program after it ends.
	// https://pkg.go.dev/cmd/go#hdr-Compile_and_run_Go_program
	if dir := filepath.Dir(self); filepath.Base(dir) == "exe" && strings.Contains(dir, "go-build") {
		return "go run " + pkg
	}
	if base != called {
		called = Absolute(called)
	}
	return shell.Quote(called)
}

func sameFile(a, b string) bool {
	ia, err := os.Stat(a)
	if err != nil {
		return false
	}
	ib, err := os.Stat(b)
	return err == nil && os.SameFile(ia, ib)
}

// Absolute returns path in a form that is valid in every directory.
func Absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
