package upload

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"

	"gcsup/session"
	"gcsup/session/bucket"
	"gcsup/upload/internal/engine"
)

// DeleteFolders deletes those of the named folders that are empty, if the bucket of l has hierarchical namespace: such a
// bucket keeps a folder after its last object was deleted. In another bucket it makes one request, and deletes nothing.
// The names end in a slash, are in the order of their raw bytes, and have the prefix of l. Managed folders are never
// deleted, because they have an IAM policy.
//
// It yields each folder that was deleted, and each one that could not be deleted with the error, which wraps
// [session.ErrPermission] if a permission is missing: storage.folders.delete, or storage.managedFolders.get, without
// which it is not known whether a folder is managed. A folder that is not empty is not yielded. If it cannot be read
// whether the bucket has folders, the only pair has no name, unless the service refuses to tell. Failures are handled
// like those of [Uploader.Delete]. DeleteFolders calls names in another goroutine.
func (u *Uploader) DeleteFolders(ctx context.Context, l Listing, names iter.Seq[string]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		c := newDeleteCall(ctx, u, "folder")
		defer c.cancel()
		switch has, err := c.hierarchical(l); {
		case err != nil:
			yield("", err)
			return
		case !has:
			return
		}
		var tree folderTree
		// The last deleter in a folder continues with it.
		work := func(d *deleter, n *folderNode, emit func(string, error)) {
			for n != nil {
				deleted := false
				if !n.kept { // no other goroutine has n now
					err := d.try(Spec{Bucket: l.Bucket, Object: n.name, UserProject: l.UserProject}, func(x *engine.Exchanger) (err error) {
						deleted, err = d.folder(x)
						return err
					})
					if deleted || err != nil {
						emit(n.name, err)
					}
				}
				n = tree.finish(n, deleted)
			}
		}
		runDeletions(c, defaultDeletions, tree.innermost(names), work, yield)
	}
}

// folderTree has the folders of a call of [Uploader.DeleteFolders]. In memory are the folder that is read last and
// those that are being deleted, with their parents. The zero folderTree is ready to use.
type folderTree struct{ mu sync.Mutex }

// folderNode is a folder that is deleted after the folders in it. The mutex of the tree guards it.
type folderNode struct {
	name   string
	parent *folderNode
	waits  int  // for the folders in it that are known, and until all of them are
	kept   bool // one of them was not deleted
}

// innermost yields the folders that wait for no other. A folder is complete when a name follows that is not in it.
func (t *folderTree) innermost(names iter.Seq[string]) iter.Seq[*folderNode] {
	return func(yield func(*folderNode) bool) {
		var last *folderNode
		leave := func(name string) bool { // all folders that name is not in
			for last != nil && !strings.HasPrefix(name, last.name) {
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
			last = &folderNode{name: name, parent: last, waits: 1}
			t.mu.Unlock()
		}
		leave("\x00") // no folder has this prefix
	}
}

// ready removes one wait of a folder, and reports whether that was the last.
func (t *folderTree) ready(n *folderNode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.waits--
	return n.waits == 0
}

// finish returns the parent of a folder if all folders in it are finished, and otherwise nil.
func (t *folderTree) finish(n *folderNode, deleted bool) *folderNode {
	p := n.parent
	if p == nil {
		return nil
	}
	t.mu.Lock()
	p.kept = p.kept || !deleted
	t.mu.Unlock()
	if !t.ready(p) {
		return nil
	}
	return p
}

// hierarchical reports whether the bucket has folders. It has none if the service does not tell.
func (c *deleteCall) hierarchical(l Listing) (has bool, err error) {
	d := c.newDeleter()
	defer d.close()
	err = d.try(Spec{Bucket: l.Bucket, Object: l.Prefix, UserProject: l.UserProject}, func(x *engine.Exchanger) error {
		_, err := x.Ask(c.ctx, session.Request{Optional: true}, func(ctx context.Context) session.Reply {
			return x.Plain(ctx, session.OpBucket, func(ctx context.Context, s *session.Client) (r session.Reply) {
				has, r = bucket.Hierarchical(ctx, s, l.Bucket, l.Prefix, l.UserProject)
				return r
			})
		})
		return err
	})
	if engine.Refusal(err) && !errors.Is(err, session.ErrCredentials) {
		return false, nil
	}
	return has, err
}

// folder deletes the folder of x, unless it is managed or not empty.
func (d *deleter) folder(x *engine.Exchanger) (deleted bool, err error) {
	var managed bool
	_, err = x.Ask(d.ctx, session.Request{}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, session.OpFolderDelete, func(ctx context.Context, c *session.Client) (r session.Reply) {
			managed, r = bucket.DeleteFolder(ctx, c, x.Spec.Bucket, x.Spec.Object, x.Spec.UserProject)
			return r
		})
	})
	if failed, ok := errors.AsType[*session.Error](err); ok && failed.Op == session.OpFolderDelete && failed.Status == http.StatusConflict && engine.Refusal(err) {
		return false, nil // it is not empty
	}
	return err == nil && !managed, err
}
