package tree

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// maxOpenRivals is the number of sources that are open for look-ups.
const maxOpenRivals = 64

// rivals finds objects that have more than one source.
type rivals struct {
	tree *Tree
	open map[*source]*rival
}

// A rival is a directory in which names of other sources are looked up.
type rival struct {
	root   *os.Root
	err    error  // the error of opening root
	path   string // of root, with a separator at the end or ""
	follow bool   // links are followed anywhere

	// The last directory that was looked up, because most names follow another
	// one of their directory.
	dir   string
	isDir bool
}

// check returns an error if a source other than s also becomes object.
func (r *rivals) check(s *source, object string) error {
	if other := r.tree.files[object]; other != nil && other != s {
		if info, err := inspectPath(other.Path, r.tree.opts.IgnoreSymlinks); err == nil && r.tree.opts.within(info) {
			return r.collision(object, other.path)
		}
	}
	for _, other := range s.rivals {
		rel, ok := strings.CutPrefix(object, other.object)
		if ok && rel != "" && r.holds(other, rel) {
			return r.collision(object, other.path+rel)
		}
	}
	return nil
}

func (r *rivals) collision(object, other string) error {
	return fmt.Errorf("%w: %s is also the source of gs://%s/%s; give one of them, or exclude it", ErrCollision, other, r.tree.spec.Bucket, object)
}

// holds reports whether the walk of s uploads the file rel.
func (r *rivals) holds(s *source, rel string) bool {
	if path.Clean(rel) != rel || strings.HasPrefix(rel, "../") || !r.tree.filter.path(nil, rel) {
		return false
	}
	v := r.get(s)
	if v.err != nil {
		return false
	}
	if i := strings.LastIndexByte(rel, '/'); i >= 0 && !v.hasDir(rel[:i]) {
		return false
	}
	var info fs.FileInfo
	var err error
	if v.follow {
		info, err = inspectFollowed(v.path + rel)
	} else {
		info, err = inspect(v.root, "", v.root, rel, &r.tree.opts)
	}
	return err == nil && r.tree.opts.within(info)
}

// get returns the rival for s, and opens it first if necessary.
func (r *rivals) get(s *source) *rival {
	if v := r.open[s]; v != nil {
		return v
	}
	if len(r.open) >= maxOpenRivals {
		for s, v := range r.open { // any of them
			v.close()
			delete(r.open, s)
			break
		}
	}
	v := &rival{path: s.path, follow: r.tree.opts.FollowSymlinks}
	v.root, v.err = os.OpenRoot(s.Path)
	if r.open == nil {
		r.open = map[*source]*rival{}
	}
	r.open[s] = v
	return v
}

// hasDir reports whether dir is a directory that a walk enters: none of its
// elements is a symbolic link or, if links are followed, leads to one above it.
func (v *rival) hasDir(dir string) bool {
	if dir == v.dir {
		return v.isDir
	}
	v.dir, v.isDir = dir, true
	var above []fs.FileInfo
	if v.follow {
		info, err := v.root.Stat(".")
		v.isDir = err == nil
		above = append(above, info)
	}
	for i := 0; i <= len(dir) && v.isDir; i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if !v.follow {
			info, err := v.root.Lstat(dir[:i])
			v.isDir = err == nil && info.IsDir()
			continue
		}
		info, err := os.Stat(v.path + dir[:i])
		v.isDir = err == nil && info.IsDir() && !slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) })
		above = append(above, info)
	}
	return v.isDir
}

func (v *rival) close() {
	if v.root != nil {
		_ = v.root.Close()
	}
}

func (r *rivals) close() {
	for _, v := range r.open {
		v.close()
	}
	r.open = nil
}

// findRivals returns an error for sources that would make every object twice. It
// records other directories whose objects may have the same names: those of which one
// object prefix starts with the other.
func (t *Tree) findRivals() error {
	t.files = map[string]*source{}
	dirs := map[string][]*source{}
	for _, s := range t.sources {
		switch {
		case s.skip:
		case s.isDir:
			for _, other := range dirs[s.object] {
				if os.SameFile(s.info, other.info) {
					return fmt.Errorf("%w: %s and %s are the same directory, and both go to gs://%s/%s", ErrCollision, other.Path, s.Path, t.spec.Bucket, s.object)
				}
			}
			dirs[s.object] = append(dirs[s.object], s)
		default:
			if other := t.files[s.object]; other != nil {
				return fmt.Errorf("%w: %s and %s both go to gs://%s/%s", ErrCollision, other.Path, s.Path, t.spec.Bucket, s.object)
			}
			t.files[s.object] = s
		}
	}
	for _, s := range t.sources {
		if s.skip {
			continue
		}
		t.addRivals(s, dirs[""])
		for i := range len(s.object) {
			if s.object[i] == '/' {
				t.addRivals(s, dirs[s.object[:i+1]])
			}
		}
	}
	return nil
}

// addRivals records that s and each of others may have the same objects.
func (t *Tree) addRivals(s *source, others []*source) {
	for _, other := range others {
		if other == s {
			continue
		}
		s.rivals = append(s.rivals, other)
		if s.isDir && other.object != s.object {
			other.rivals = append(other.rivals, s)
		}
	}
}
