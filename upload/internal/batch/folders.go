package batch

import (
	"iter"
	"strings"
	"sync"
)

// A FolderTree has the folders that are deleted in a call. In memory are the folder that is read last and
// those that are being deleted, with their parents. The zero FolderTree is ready to use.
type FolderTree struct{ mu sync.Mutex }

// A Folder is a folder that is deleted after the folders in it. The mutex of the tree guards it.
type Folder struct {
	Name   string
	parent *Folder
	waits  int  // for the folders in it that are known, and until all of them are
	Kept   bool // one of them was not deleted
}

// Innermost yields the folders that wait for no other. A folder is complete when a name follows that is not in it.
func (t *FolderTree) Innermost(names iter.Seq[string]) iter.Seq[*Folder] {
	return func(yield func(*Folder) bool) {
		var last *Folder
		leave := func(name string) bool { // all folders that name is not in
			for last != nil && !strings.HasPrefix(name, last.Name) {
				left := last
				last = left.parent
				if t.ready(left) && !yield(left) {
					return false
				}
			}
			return true
		}
		for name := range names {
			if !leave(name) {
				return
			}
			t.mu.Lock()
			if last != nil {
				last.waits++
			}
			last = &Folder{Name: name, parent: last, waits: 1}
			t.mu.Unlock()
		}
		leave("\x00") // no folder has this prefix
	}
}

// ready removes one wait of a folder, and reports whether that was the last.
func (t *FolderTree) ready(n *Folder) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.waits--
	return n.waits == 0
}

// Finish returns the parent of a folder if all folders in it are finished, and otherwise nil.
func (t *FolderTree) Finish(n *Folder, deleted bool) *Folder {
	p := n.parent
	if p == nil {
		return nil
	}
	t.mu.Lock()
	p.Kept = p.Kept || !deleted
	t.mu.Unlock()
	if !t.ready(p) {
		return nil
	}
	return p
}
