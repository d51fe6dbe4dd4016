package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gcsup/upload"
)

// A Placed is an argument of a command, and its place at the destination.
type Placed struct {
	// Source has the path as given. Its Name is the whole name of the object, or, for a
	// directory, what the names of the objects begin with. [New] must therefore get a Spec
	// without an Object.
	Source

	// IsDir reports that Path is a directory.
	IsDir bool

	// Err is not nil if the argument cannot be uploaded: the error of the operating system,
	// or [ErrNotRegular] for a directory without recursive.
	Err error
}

// Place returns where the arguments of a command are placed at a destination, and a prefix
// of the names of all their objects. gcsup cp and gcsup-fleet submit use it:
//
//	args     destination          object
//	a/b      gs://bkt/x           x
//	a/b      gs://bkt, gs://bkt/  b
//	a/b      gs://bkt/x/          x/b
//	a b      gs://bkt/x/          x/a, x/b
//	a b      gs://bkt/x           refused (ErrUsage); x/a, x/b if recursive is set
//	dir      gs://bkt/x, …/x/     x/dir/… if recursive is set
//	dir/.    gs://bkt/x, …/x/     x/… if recursive is set
//
// spec has the destination, of the form gs://BUCKET/OBJECT. Arguments that are empty or begin
// with gs:// are refused with ErrUsage. Place reads no directory. Without arguments, it returns
// the prefix of the objects of a [List].
func Place(args []string, spec upload.Spec, recursive bool) (placed []Placed, prefix string, err error) {
	into := spec.Object == "" || strings.HasSuffix(spec.Object, "/")
	if len(args) > 1 && !into && !recursive {
		return nil, "", fmt.Errorf("%w: %d sources cannot become one object %s; end the destination with \"/\"", ErrUsage, len(args), spec.URL())
	}
	prefix = join(spec.Object, "")
	for _, arg := range args {
		switch {
		case arg == "":
			return nil, "", fmt.Errorf("%w: a source is an empty string", ErrUsage)
		case strings.HasPrefix(arg, "gs://"):
			return nil, "", fmt.Errorf("%w: source %q: only files and directories are uploaded; objects are not downloaded or copied", ErrUsage, arg)
		}
		p := Placed{Source: Source{Path: arg}}
		info, err := os.Stat(arg)
		p.IsDir, p.Err = err == nil && info.IsDir(), err
		switch {
		case p.IsDir && recursive:
			p.Name = prefix + Sources(arg)[0].Name
		case len(args) == 1 && !into:
			p.Name, prefix = spec.Object, spec.Object
		default:
			p.Name = prefix + base(arg)
		}
		if p.IsDir && !recursive {
			p.Err = fmt.Errorf("%s: %w: it is a directory", arg, ErrNotRegular)
		}
		placed = append(placed, p)
	}
	return placed, prefix, nil
}

// base returns the last element of the absolute path of a file.
func base(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Base(path)
}
