package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program returns the words that run this program again, so that hints can be
// pasted.
func program() string {
	self, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return nameOf(os.Args[0], self, exec.LookPath)
}

// nameOf returns the words that run the program at self, which was started as
// called. It returns the bare name if look finds the program by it, else a path
// that is valid in every directory.
func nameOf(called, self string, look func(string) (string, error)) string {
	base := filepath.Base(called)
	if found, err := look(base); err == nil && sameFile(found, self) {
		return base
	}
	// go run removes the program after it ends.
	// https://pkg.go.dev/cmd/go#hdr-Compile_and_run_Go_program
	if dir := filepath.Dir(self); filepath.Base(dir) == "exe" && strings.Contains(dir, "go-build") {
		return "go run gcsup/cmd/gcsup"
	}
	if filepath.Base(called) != called {
		called = absolute(called)
	}
	return shellQuote(called)
}

func sameFile(a, b string) bool {
	ia, err := os.Stat(a)
	if err != nil {
		return false
	}
	ib, err := os.Stat(b)
	return err == nil && os.SameFile(ia, ib)
}
