package tree

import (
	"fmt"
	"path/filepath"
)

// checkDisjoint returns an error if two sources may have the same objects, or if a source is
// below another one. It reads no directory.
func (t *Tree) checkDisjoint() error {
	dirs := map[string]*source{} // by absolute path without symbolic links
	paths := make([]string, len(t.sources))
	for i, s := range t.sources {
		if s.skip {
			continue
		}
		if len(s.rivals) > 0 {
			return fmt.Errorf("%w: %s and %s may have files for the same objects, and the files are removed: upload them one after the other, or to other places", ErrCollision, s.Path, s.rivals[0].Path)
		}
		path, err := filepath.EvalSymlinks(s.Path)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err == nil {
			path, err = filepath.EvalSymlinks(path) // the current directory may have links
		}
		if err != nil {
			return err
		}
		if paths[i] = path; s.isDir {
			if other := dirs[path]; other != nil {
				return fmt.Errorf("%w: %s and %s are the same directory, whose files are removed", ErrCollision, other.Path, s.Path)
			}
			dirs[path] = s
		}
	}
	for i, path := range paths {
		if path == "" {
			continue
		}
		for dir := filepath.Dir(path); dir != path; path, dir = dir, filepath.Dir(dir) {
			if above := dirs[dir]; above != nil {
				return fmt.Errorf("%w: the source %s is in the source %s, whose files are removed: leave it out", ErrCollision, t.sources[i].Path, above.Path)
			}
		}
	}
	return nil
}
