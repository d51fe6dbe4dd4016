package upload

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"gcsup/session"
	"gcsup/session/bucket"
	"gcsup/upload/internal/batch"
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
		if u.invalid != nil {
			yield("", u.invalid)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		d := &folderCall{u: u, ctx: ctx, l: l, budget: u.newBudget(), queue: make(chan *folderNode), ended: make(chan folderEnd)}
		d.budget.Reached.Store(true) // the service listed the objects
		d.breaker = batch.NewBreaker(d.budget.Progress)
		defer cancel()
		switch has, err := d.hierarchical(); {
		case err != nil:
			yield("", err)
			return
		case !has:
			return
		}
		d.start(names)
		defer func() {
			cancel()
			for range d.ended {
			}
		}()
		for e := range d.ended {
			if !yield(e.name, e.err) {
				return
			}
		}
	}
}

// folderCall is one call of [Uploader.DeleteFolders].
type folderCall struct {
	u       *Uploader
	ctx     context.Context
	l       Listing
	budget  *engine.Budget
	breaker *batch.Breaker
	queue   chan *folderNode
	ended   chan folderEnd

	mu sync.Mutex // guards the nodes
}

// folderEnd is a folder that was deleted, or why it was not.
type folderEnd struct {
	name string
	err  error
}

// folderNode is a folder that is deleted after the folders in it. The nodes in memory are those of
// the folder that is read last, with its parents, and those of the requests under way, with theirs.
type folderNode struct {
	name   string
	parent *folderNode
	waits  int  // for the folders in it that are known, and until all of them are
	kept   bool // one of them was not deleted
}

// start starts the goroutines. The last of them closes d.ended.
func (d *folderCall) start(names iter.Seq[string]) {
	var running sync.WaitGroup
	running.Go(func() {
		defer close(d.queue)
		d.read(names)
	})
	for range defaultDeletions {
		running.Go(d.work)
	}
	go func() {
		running.Wait()
		close(d.ended)
	}()
}

// read makes the nodes of the names. A folder is complete when a name follows that is not in it.
func (d *folderCall) read(names iter.Seq[string]) {
	var last *folderNode
	leave := func(name string) (ok bool) { // all folders that name is not in
		for last != nil && !strings.HasPrefix(name, last.name) {
			left := last
			last = left.parent
			if !d.ready(left) {
				continue
			}
			select {
			case d.queue <- left:
			case <-d.ctx.Done():
				return false
			}
		}
		return true
	}
	for name := range names {
		if !leave(name) {
			return
		}
		d.mu.Lock()
		if last != nil {
			last.waits++
		}
		last = &folderNode{name: name, parent: last, waits: 1}
		d.mu.Unlock()
	}
	leave("\x00") // no folder has this prefix
}

// ready removes one wait of a folder, and reports whether that was the last.
func (d *folderCall) ready(n *folderNode) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n.waits--
	return n.waits == 0
}

// work deletes the folders of the queue. The last worker in a folder continues with it.
func (d *folderCall) work() {
	var of label
	p := progress{whole: engine.NewPosition(-1)}
	events := newEvents(d.ctx, d.u, &of, p.describe)
	defer events.close(d.ctx, nil)
	link := d.u.newUplink(d.budget, new(engine.Tally), &reporter{events, d.u.opts.Logger, func() []slog.Attr {
		spec := of.get().spec
		return []slog.Attr{slog.String("bucket", spec.Bucket), slog.String("folder", spec.Object)}
	}})
	for n := range d.queue {
		for n != nil {
			deleted := false
			if !n.kept { // no other goroutine has n now
				spec := Spec{Bucket: d.l.Bucket, Object: n.name, UserProject: d.l.UserProject}
				of.set(func(names *names) { names.spec = spec })
				var err error
				if deleted, err = d.delete(engine.NewRequester(link, 0, p.whole).To(spec)); deleted || err != nil {
					d.ended <- folderEnd{n.name, err}
				}
			}
			n = d.finish(n, deleted)
		}
	}
}

// finish returns the parent of a folder if all folders in it are finished, and otherwise nil.
func (d *folderCall) finish(n *folderNode, deleted bool) *folderNode {
	p := n.parent
	if p == nil {
		return nil
	}
	d.mu.Lock()
	p.kept = p.kept || !deleted
	d.mu.Unlock()
	if !d.ready(p) {
		return nil
	}
	return p
}

// hierarchical reports whether the bucket has folders. It has none if the service does not tell.
func (d *folderCall) hierarchical() (has bool, err error) {
	spec := Spec{Bucket: d.l.Bucket, Object: d.l.Prefix, UserProject: d.l.UserProject}
	p := progress{whole: engine.NewPosition(-1)}
	events := newEvents(d.ctx, d.u, &label{names: names{spec: spec}}, p.describe)
	defer events.close(d.ctx, nil)
	link := d.u.newUplink(d.budget, new(engine.Tally), &reporter{events, d.u.opts.Logger, func() []slog.Attr {
		return []slog.Attr{slog.String("bucket", spec.Bucket), slog.String("prefix", spec.Object)}
	}})
	x := engine.NewRequester(link, 0, p.whole).To(spec)
	defer x.Retry.Close()
	_, err = x.Ask(d.ctx, session.Request{Optional: true}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, session.OpBucket, func(ctx context.Context, c *session.Client) (r session.Reply) {
			has, r = bucket.Hierarchical(ctx, c, spec.Bucket, spec.Object, spec.UserProject)
			return r
		})
	})
	switch {
	case d.ctx.Err() != nil:
		return false, callInterrupted(d.ctx, "delete folders")
	case engine.Refusal(err) && !errors.Is(err, session.ErrCredentials):
		return false, nil
	}
	return has, err
}

// delete deletes the folder of x, unless it is managed or not empty.
func (d *folderCall) delete(x *engine.Exchanger) (deleted bool, err error) {
	defer x.Retry.Close()
	spec := x.Spec
	switch why := d.breaker.Err(spec.Bucket); {
	case d.ctx.Err() != nil:
		return false, callInterrupted(d.ctx, "delete folders")
	case why != nil:
		return false, fmt.Errorf("%w: %w", ErrNotTried, why)
	}
	// The service deletes a managed folder together with its folder.
	a, err := x.Ask(d.ctx, session.Request{}, func(ctx context.Context) session.Reply {
		return x.Plain(ctx, session.OpManagedFolder, func(ctx context.Context, c *session.Client) (r session.Reply) {
			_, r = bucket.Managed(ctx, c, spec.Bucket, spec.Object, spec.UserProject)
			return r
		})
	})
	managed := a.Step != session.Absent
	if err == nil && !managed {
		_, err = x.Ask(d.ctx, session.Request{}, func(ctx context.Context) session.Reply {
			return x.Plain(ctx, session.OpFolderDelete, func(ctx context.Context, c *session.Client) session.Reply {
				return c.DeleteFolder(ctx, spec.Bucket, spec.Object, spec.UserProject)
			})
		})
		deleted = err == nil
	}
	if failed, ok := errors.AsType[*session.Error](err); ok && failed.Op == session.OpFolderDelete && failed.Status == http.StatusConflict && engine.Refusal(err) {
		err = nil // it is not empty
	}
	switch {
	case err == nil:
		x.Retry.Succeeded()
		d.budget.Progressed()
		if !managed { // the deletion was answered
			d.breaker.Succeeded(spec.Bucket)
		}
	case d.ctx.Err() != nil:
		return false, callInterrupted(d.ctx, "delete folders")
	default:
		d.breaker.Failed(spec.Bucket, err)
	}
	return deleted, err
}
