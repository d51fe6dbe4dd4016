// Package treeflags has the flags that choose files of directories and of lists, and
// the warnings about what they leave out.
package treeflags

import (
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/program"
	"gcsup/upload/tree"
)

// Flags choose files.
type Flags struct {
	Include, Exclude []string
	FollowSymlinks   bool
	IgnoreSymlinks   bool
	Strict           bool
}

// Add adds the flags to those of a command.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.Include, "include", nil, "take only files that match this `PATTERN`, such as '*.csv'; repeat the flag for more")
	fs.StringArrayVar(&f.Exclude, "exclude", nil, "leave out files and directories that match this `PATTERN`; repeat the flag for more")
	fs.BoolVar(&f.FollowSymlinks, "follow-symlinks", false, "follow symbolic links to files and directories, also out of the source")
	fs.BoolVar(&f.IgnoreSymlinks, "ignore-symlinks", false, "leave out all symbolic links without a warning")
	fs.BoolVar(&f.Strict, "strict", false, "fail for links that are not followed, FIFOs, sockets and devices, instead of skipping them")
}

// Exclusive are the flags that exclude each other.
var Exclusive = []string{"follow-symlinks", "ignore-symlinks"}

// Check refuses flags that contradict each other.
func (f *Flags) Check() error {
	if f.FollowSymlinks && f.IgnoreSymlinks {
		return failure.Usagef("--follow-symlinks and --ignore-symlinks exclude each other")
	}
	return nil
}

// Options returns the options of a tree whose jobs n counts.
func (f *Flags) Options(n *Notes) tree.Options {
	n.strict = f.Strict
	return tree.Options{Include: f.Include, Exclude: f.Exclude, FollowSymlinks: f.FollowSymlinks, IgnoreSymlinks: f.IgnoreSymlinks, Unmatched: n.unmatched}
}

// Notes are the warnings about a tree. It is safe for concurrent use.
type Notes struct {
	strict bool

	mu               sync.Mutex
	skipped          map[tree.Kind]skips
	include, exclude []string // the patterns that matched nothing
}

// skips are the skipped entries of a kind.
type skips struct {
	count   int
	example string // the first path in the order of bytes
}

// Skip returns the kind of an entry that is skipped because it is not a file, and
// counts it. It returns "" for all other errors, and for all if the flag --strict is
// set.
func (n *Notes) Skip(path string, err error) tree.Kind {
	entry, ok := errors.AsType[*tree.EntryError](err)
	if !ok || n.strict {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.skipped == nil {
		n.skipped = map[tree.Kind]skips{}
	}
	s := n.skipped[entry.Kind]
	s.count++
	if s.example == "" || path < s.example {
		s.example = path
	}
	n.skipped[entry.Kind] = s
	return entry.Kind
}

// Skipped returns the number of entries that were skipped.
func (n *Notes) Skipped() (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.skipped {
		count += s.count
	}
	return count
}

func (n *Notes) unmatched(include, exclude []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.include, n.exclude = include, exclude
}

// kindTexts has the names of kinds for people, in the order of the warnings.
var kindTexts = []struct {
	kind      tree.Kind
	one, many string
	advice    string
}{
	{tree.LinkToDirectory, "symbolic link to a directory", "symbolic links to directories", follow},
	{tree.LinkOutside, "symbolic link that is absolute or leaves its source", "symbolic links that are absolute or leave their source", follow},
	{tree.LinkDangling, "dangling symbolic link", "dangling symbolic links", ""},
	{tree.LinkLoop, "symbolic link in a loop", "symbolic links in a loop", ""},
	{tree.FIFO, "FIFO", "FIFOs", ""},
	{tree.Socket, "socket", "sockets", ""},
	{tree.Device, "device", "devices", ""},
	{tree.Irregular, "irregular file", "irregular files", ""},
}

const follow = "; to upload what they lead to, add --follow-symlinks"

// Warnings returns one warning for each kind of entry that was skipped, and for each
// pattern that matched nothing.
func (n *Notes) Warnings() (texts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range kindTexts {
		switch s := n.skipped[k.kind]; s.count {
		case 0:
		case 1:
			texts = append(texts, fmt.Sprintf("1 %s was skipped: %s%s", k.one, s.example, k.advice))
		default:
			texts = append(texts, fmt.Sprintf("%d %s were skipped, such as %s%s", s.count, k.many, s.example, k.advice))
		}
	}
	for _, pattern := range n.include {
		texts = append(texts, "nothing matches --include="+program.Quote(pattern))
	}
	for _, pattern := range n.exclude {
		texts = append(texts, "nothing matches --exclude="+program.Quote(pattern))
	}
	return texts
}
