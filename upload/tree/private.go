package tree

import (
	"os"
	"path/filepath"
)

// privateDirs finds the directories of Options.Private. Nothing but the newest answer is kept: such a
// directory can be made during a walk.
type privateDirs struct {
	paths []string

	last    string // the newest directory of has
	lastWas bool
}

// isRoot reports whether an open directory is private.
func (p *privateDirs) isRoot(dir *os.Root) (bool, error) {
	if len(p.paths) == 0 {
		return false, nil
	}
	info, err := dir.Stat(".")
	return err == nil && p.is(info), err
}

// is reports whether a directory is private.
func (p *privateDirs) is(dir os.FileInfo) bool {
	for _, path := range p.paths {
		if at, err := os.Stat(path); err == nil && os.SameFile(at, dir) {
			return true
		}
	}
	return false
}

// has reports whether the file at path is in a private directory, or in one below it.
func (p *privateDirs) has(path string) bool {
	if len(p.paths) == 0 {
		return false
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if dir := filepath.Dir(abs); dir != p.last {
		p.last, p.lastWas = dir, p.contains(dir)
	}
	return p.lastWas
}

// contains reports whether an absolute path is that of a private directory, or of one below it.
func (p *privateDirs) contains(path string) bool {
	for {
		if info, err := os.Stat(path); err == nil && p.is(info) {
			return true
		}
		above := filepath.Dir(path)
		if above == path {
			return false
		}
		path = above
	}
}
