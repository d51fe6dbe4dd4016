package cmdline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/shell"
	"gcsup/upload/tree"
)

// TreeFlags choose files.
type TreeFlags struct {
	FilesFrom string // the file with the list of paths; "-" is standard input
	Null      bool   // the paths of the list end in a NUL byte
	Dir       string // the paths of the list are relative to it

	Include, Exclude []string
	FollowSymlinks   bool
	IgnoreSymlinks   bool
	Strict           bool

	Private []string // directories that are left out with a warning; set by the command

	flags                    *pflag.FlagSet // that have these; nil without Add
	includeFrom, excludeFrom []string
	minSize, maxSize         sizeFlag
	minAge, maxAge           ageFlag
}

// Add adds the flags to those of a command.
func (f *TreeFlags) Add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.FilesFrom, "files-from", "", "take the files whose paths are in `FILE`, one per line; - is standard input")
	flags.BoolVarP(&f.Null, "null", "0", false, "paths in a list end in a NUL byte, not in a newline")
	flags.StringVarP(&f.Dir, "directory", "C", "", "paths in a list are relative to `DIR`, which is no part of the objects' names")
	flags.StringArrayVar(&f.Include, "include", nil, "take only files that match this `PATTERN`, such as '*.csv'; repeat the flag for more")
	flags.StringArrayVar(&f.Exclude, "exclude", nil, "leave out files and directories that match this `PATTERN`; repeat the flag for more")
	flags.StringArrayVar(&f.includeFrom, "include-from", nil, "take only files that match a pattern in `FILE`, one per line; # and ; begin comments")
	flags.StringArrayVar(&f.excludeFrom, "exclude-from", nil, "leave out what matches a pattern in `FILE`, one per line; # and ; begin comments")
	flags.Var(&f.minSize, "min-size", "leave out files that are smaller, such as 100K; without a unit in KiB, as for rclone")
	flags.Var(&f.maxSize, "max-size", "leave out files that are larger, such as 5G; without a unit in KiB, as for rclone")
	flags.Var(&f.minAge, "min-age", "leave out files that are younger, such as 1h; or that were modified after a time")
	flags.Var(&f.maxAge, "max-age", "leave out files that are older, such as 7d; or that were modified before a time")
	flags.BoolVar(&f.FollowSymlinks, "follow-symlinks", false, "follow symbolic links to files and directories, also out of the source")
	flags.BoolVar(&f.IgnoreSymlinks, "ignore-symlinks", false, "leave out all symbolic links without a warning")
	flags.BoolVar(&f.Strict, "strict", false, "fail for links that are not followed, FIFOs, sockets and devices, instead of skipping them")
	Common(flags, "include", "exclude")
}

// TreeExclusive are the flags that exclude each other.
var TreeExclusive = []string{"follow-symlinks", "ignore-symlinks"}

// Selecting are the flags that leave out files.
var Selecting = []string{"include", "exclude", "include-from", "exclude-from", "min-size", "max-size", "min-age", "max-age"}

// Check refuses flags that contradict each other. list reports whether the paths are in a
// list.
func (f *TreeFlags) Check(list bool) error {
	fromStdin := 0
	for _, name := range slices.Concat([]string{f.FilesFrom}, f.includeFrom, f.excludeFrom) {
		if name == stdin {
			fromStdin++
		}
	}
	switch {
	case fromStdin > 1:
		return exit.Usagef("two of --files-from, --include-from and --exclude-from are -, but standard input can be read only once")
	case f.Null && !list:
		return exit.Usagef("--null needs --files-from")
	case f.Dir != "" && !list:
		return exit.Usagef("-C (--directory) is for the paths in a list: it needs --files-from")
	}
	return nil
}

// FromStdin returns what is read from standard input, for people, or "" if nothing is.
func (f *TreeFlags) FromStdin() string {
	switch {
	case f.FilesFrom == stdin:
		return "the paths of files"
	case slices.Contains(f.includeFrom, stdin), slices.Contains(f.excludeFrom, stdin):
		return "patterns"
	}
	return ""
}

// Options returns the options of a tree whose jobs n counts. It reads the files with
// patterns.
func (f *TreeFlags) Options(n *Notes, in Stdin) (tree.Options, error) {
	n.strict, n.given = f.Strict, f.given()
	now := time.Now()
	o := tree.Options{
		Dir: f.Dir, ModifiedFrom: f.maxAge.limit(now), ModifiedTo: f.minAge.limit(now), MaxSize: f.maxSize.bytes,
		FollowSymlinks: f.FollowSymlinks, IgnoreSymlinks: f.IgnoreSymlinks, Unmatched: n.unmatched, Private: f.Private,
	}
	if f.minSize.bytes != nil {
		o.MinSize = *f.minSize.bytes
	}
	var err error
	if o.Include, err = in.patterns("include", f.Include, f.includeFrom); err != nil {
		return o, err
	}
	o.Exclude, err = in.patterns("exclude", f.Exclude, f.excludeFrom)
	switch {
	case err != nil:
		return o, err
	case len(f.includeFrom) > 0 && len(o.Include) == 0: // which would select all files
		return o, exit.Usagef("--include-from: no pattern in %s", strings.Join(f.includeFrom, ", "))
	case o.MaxSize != nil && *o.MaxSize < o.MinSize:
		return o, exit.Usagef("--min-size %s is larger than --max-size %s", &f.minSize, &f.maxSize)
	case !o.ModifiedTo.IsZero() && o.ModifiedTo.Before(o.ModifiedFrom):
		return o, exit.Usagef("--min-age %s is more than --max-age %s", &f.minAge, &f.maxAge)
	}
	return o, nil
}

// given returns the patterns of the command line. Those of the environment and of the configuration file
// are, like those of files with patterns, for many trees.
func (f *TreeFlags) given() (patterns []string) {
	for name, values := range map[string][]string{"include": f.Include, "exclude": f.Exclude} {
		if f.flags != nil && !inherited(f.flags.Lookup(name)) {
			patterns = append(patterns, values...)
		}
	}
	return patterns
}

// Limits returns the texts of the limits of size and age: minimum and maximum size, minimum and
// maximum age. A limit that is not set is "".
func (f *TreeFlags) Limits() []string {
	return []string{f.minSize.String(), f.maxSize.String(), f.minAge.String(), f.maxAge.String()}
}

// OpenList opens the list of paths, and returns the byte in which they end.
func (f *TreeFlags) OpenList(in Stdin) (list io.ReadCloser, sep byte, err error) {
	if f.Dir != "" {
		if err := isDir(f.Dir); err != nil {
			return nil, 0, unreadable("directory", err)
		}
	}
	sep = '\n'
	if f.Null {
		sep = 0
	}
	list, err = in.open("files-from", f.FilesFrom)
	return list, sep, err
}

// isDir returns an error if path is not a directory.
func isDir(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return err
}

// Notes are the warnings about a tree. It is safe for concurrent use.
type Notes struct {
	strict bool
	given  []string // the patterns of --include and --exclude on the command line

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
// counts it. It returns "" for all other errors. With the flag --strict, only a private
// directory is skipped.
func (n *Notes) Skip(path string, err error) tree.Kind {
	entry, ok := errors.AsType[*tree.EntryError](err)
	if !ok || n.strict && entry.Kind != tree.Private {
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

// unmatched records the patterns of the command line that matched nothing.
func (n *Notes) unmatched(include, exclude []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.include, n.exclude = n.ofFlags(include), n.ofFlags(exclude)
}

// ofFlags returns the patterns that are values of flags.
func (n *Notes) ofFlags(patterns []string) []string {
	return slices.DeleteFunc(patterns, func(p string) bool { return !slices.Contains(n.given, p) })
}

// kindTexts has the names of kinds for people, in the order of the warnings.
var kindTexts = []struct {
	kind      tree.Kind
	one, many string
	advice    string
}{
	{tree.Link, "symbolic link", "symbolic links", "; to upload links as files, leave out --remove-source"},
	{tree.LinkToDirectory, "symbolic link to a directory", "symbolic links to directories", follow},
	{tree.LinkOutside, "symbolic link that is absolute or leaves its source", "symbolic links that are absolute or leave their source", follow},
	{tree.LinkDangling, "dangling symbolic link", "dangling symbolic links", ""},
	{tree.LinkLoop, "symbolic link in a loop", "symbolic links in a loop", ""},
	{tree.FIFO, "FIFO", "FIFOs", ""},
	{tree.Socket, "socket", "sockets", ""},
	{tree.Device, "device", "devices", ""},
	{tree.Irregular, "irregular file", "irregular files", ""},
	{tree.Private, "directory or file of gcsup, which can have secrets,", "directories or files of gcsup, which can have secrets,", ""},
	{tree.Vanished, "file that was removed during the run", "files that were removed during the run", ""},
}

const follow = "; to upload what they lead to, add --follow-symlinks"

// Warnings returns one warning for each kind of entry that was skipped, and for each
// pattern of the command line that matched nothing.
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
		texts = append(texts, "nothing matches --include="+shell.Quote(pattern))
	}
	for _, pattern := range n.exclude {
		texts = append(texts, "nothing matches --exclude="+shell.Quote(pattern))
	}
	return texts
}
