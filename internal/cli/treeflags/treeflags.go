// Package treeflags has the flags that choose files of directories and of lists, and
// the warnings about their effect.
package treeflags

import (
	"sync"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/program"
	"gcsup/upload/tree"
)

// Flags choose files.
type Flags struct {
	Include, Exclude []string
	IgnoreSymlinks   bool
}

// Add adds the flags to those of a command.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.Include, "include", nil, "take only files that match this `PATTERN`, such as '*.csv'; repeat the flag for more")
	fs.StringArrayVar(&f.Exclude, "exclude", nil, "leave out files and directories that match this `PATTERN`; repeat the flag for more")
	fs.BoolVar(&f.IgnoreSymlinks, "ignore-symlinks", false, "leave out symbolic links without an error")
}

// Options returns the options of a tree. The tree reports to n what it leaves out.
func (f *Flags) Options(n *Notes) tree.Options {
	return tree.Options{Include: f.Include, Exclude: f.Exclude, IgnoreSymlinks: f.IgnoreSymlinks, Unmatched: n.unmatched}
}

// Notes are the warnings of a run. The zero value has none. It is safe for concurrent
// use.
type Notes struct {
	mu       sync.Mutex
	warnings []string
}

func (n *Notes) unmatched(include, exclude []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pattern := range include {
		n.warnings = append(n.warnings, "nothing matches --include="+program.Quote(pattern))
	}
	for _, pattern := range exclude {
		n.warnings = append(n.warnings, "nothing matches --exclude="+program.Quote(pattern))
	}
}

// Warnings returns the warnings, at the end of a run.
func (n *Notes) Warnings() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.warnings
}
