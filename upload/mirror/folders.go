package mirror

import (
	"context"
	"errors"
	"strings"

	"gcsup/internal/bucket"
	"gcsup/session"
	"gcsup/upload"
)

// FoldersLeft describes folders of a bucket with hierarchical namespace that may be empty after a run.
type FoldersLeft struct {
	Names []string // of the first folders; they end in a slash
	Count int64    // of all; 0 if it is not known: there may be none
	Err   error    // why the first one was not deleted
}

// maxNamed is the greatest number of FoldersLeft.Names.
const maxNamed = 3

// addFolders adds the folders of an object below prefix that the object before it, in the order of the names, does not
// have. The folder that is the prefix itself is kept.
func (v *survey) addFolders(prefix, before string, o *session.Object) error {
	for _, folder := range bucket.Folders(o.Name) {
		if len(folder) <= len(prefix) || strings.HasPrefix(before, folder) {
			continue
		}
		if err := v.folders.add(&session.Object{Name: folder}, NoReason); err != nil {
			return err
		}
	}
	return nil
}

// deleteFolders deletes the folders whose objects the run deleted, if they are empty and the bucket has folders. Their
// failure is not that of the run: the objects are as they should be. If the service is down, it is not waited for again.
func (v *survey) deleteFolders(ctx context.Context, m *Mirror, u *upload.Uploader) {
	if v.folders.n == 0 {
		return
	}
	if v.down != nil {
		m.foldersLeft(FoldersLeft{Err: v.down})
		return
	}
	var failed error // written by the goroutine that reads the names, which ends before the loop
	names := func(yield func(string) bool) {
		for e, err := range v.folders.entries() {
			if failed = err; err != nil || !yield(e.object.Name) {
				return
			}
		}
	}
	var left FoldersLeft
	for name, err := range u.DeleteFolders(ctx, m.listing, names) {
		switch {
		case err == nil:
			continue
		case name != "":
			left.Count++
			if len(left.Names) < maxNamed {
				left.Names = append(left.Names, name)
			}
		}
		if left.Err == nil || errors.Is(left.Err, upload.ErrNotTried) {
			left.Err = err
		}
	}
	switch {
	case left.Err == nil:
		left.Err = failed
	case ctx.Err() != nil && left.Count == 0:
		return // it is not known whether there are folders
	case ctx.Err() != nil:
		left = FoldersLeft{Err: context.Cause(ctx)} // the other names were not read
	}
	if left.Err != nil {
		m.foldersLeft(left)
	}
}

func (m *Mirror) foldersLeft(left FoldersLeft) {
	if m.opts.FoldersLeft != nil {
		m.opts.FoldersLeft(left)
	}
}
