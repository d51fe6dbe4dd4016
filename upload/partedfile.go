package upload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// partedFile is a file in the parts of the journal of its call.
type partedFile struct {
	*call
	parts *parts.Upload
}

// newPartedFile returns the file of the call in the parts of its journal. file is nil if no bytes are sent. fresh reports that
// the upload was just started.
func newPartedFile(c *call, file *source.File, fresh bool) *partedFile {
	return newParted(c, division(c, file), fresh)
}

// newParted is newPartedFile for a division.
func newParted(c *call, d parts.Division, fresh bool) *partedFile {
	p := parts.NewUpload(d, fresh)
	c.showParts(p)
	return &partedFile{c, p}
}

// partSums has the sums over the parts of a file or of a stream.
type partSums interface {
	Position() (size, sent, arrived, committed int64)
	Progress() (count, done, sending int)
	Sums() (resumed int64, retries int, waited time.Duration)
}

// showParts makes the events of the call show the progress of its parts.
func (c *call) showParts(p partSums) {
	c.progress.parts.Store(&partsView{p.Position, func() *PartsProgress {
		count, done, sending := p.Progress()
		return &PartsProgress{Count: count, Done: done, Connections: sending}
	}})
}

// reportParts puts what the parts did into the Result. u is nil if no part was sent, and object if it was not made.
func (c *call) reportParts(p partSums, u *connections.Usage, object *session.Object) {
	c.result.update(func(r *Result) {
		r.Object = object
		r.ResumedFrom, r.Retries, r.Waited = p.Sums()
		if u != nil {
			count, _, _ := p.Progress()
			r.Parts = &PartsResult{Count: count, Connections: u.Connections, Rate: int64(u.Rate), RateOfOne: int64(u.Each)}
		}
	})
}

// division returns what a file needs to be sent in the parts of the journal.
func division(c *call, file *source.File) parts.Division {
	return parts.Division{
		Wire: c.wire(), Uplink: c.uplink, Journal: c.journal, File: file, Expect: c.expect, Began: c.result.began,
		Memory: c.u.memory, Options: c.u.opts.Parallel.options(), Link: c.u.link,
	}
}

// planParts returns how the file of a new upload is sent.
func planParts(ctx context.Context, c *call, file *source.File) (parts.Plan, error) {
	if c.u.opts.Parallel == nil {
		return parts.Plan{}, nil
	}
	way := c.u.opts.Parallel.Join
	planner := parts.Planner{
		Division: division(c, file), Multipart: way != ByCompose, Compose: way != ByMultipart,
		Buckets: c.u.buckets, Size: file.Total(), ID: c.result.label.get().id,
	}
	return planner.Plan(ctx)
}

// reportUndivided reports why a source is not sent in parts: as a Warning if
// the caller asked for parts, and as Undivided with Parts.Auto.
func (c *call) reportUndivided(source string, why parts.Reasons) {
	if len(why) == 0 {
		return
	}
	if c.u.opts.Parallel.options().Auto {
		c.events.post(Event{Kind: Undivided, Cause: why.String()})
		return
	}
	c.events.post(Event{Kind: Warning, Cause: "the " + source + " is sent over one connection: " + why.String()})
}

// makeObject makes the object.
func (f *partedFile) makeObject(ctx context.Context) error {
	p := f.parts
	guarded, stop := f.journal.Guard(ctx)
	defer stop()
	object, err := p.Send(guarded)
	if err == nil {
		f.reportUnverified(p.Unverified)
		f.events.committed()
	}
	f.reportParts(p, p.Used, object)
	return endedBy(ctx, err, f.journal)
}

// end decides what is left of a file, of which makeObject returned err.
func (f *partedFile) end(ctx context.Context, err error) error {
	e := f.endOf(ofParts, err)
	failed, ok := errors.AsType[*session.Error](err)
	e.dead = factOf(e.refused && ok && !failed.Early) // parts that are lost are sent again
	switch ending(e) {
	case remove:
		return f.removeStored(ctx, err, func() error { return nil })
	case removeOrphaned:
		f.disown(ctx)
	case keep:
		f.journal.Keep()
	}
	return err
}

// removeStored removes what the service stores for an upload that ended with err, then its files with discard, and then
// its saved upload. If something cannot be removed, the saved upload stays, so that Prune or the next call tries again.
func (f *partedFile) removeStored(ctx context.Context, err error, discard func() error) error {
	clean := f.parts.Finish
	if err != nil {
		clean = f.parts.Abandon
	}
	left := clean(ctx)
	f.leave(left)
	failed := discard()
	switch {
	case !f.journal.Saved():
	case left != nil:
		f.journal.Keep()
	case failed == nil:
		failed = f.journal.Discard()
	}
	return f.discarded(err, failed)
}

// disown abandons an upload whose saved upload was deleted by another process while this one had
// the lease. That process may not have known what the service stores.
func (f *partedFile) disown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace.Requests)
	defer cancel()
	if !f.journal.Deleted(ctx) {
		return // the other process finishes the work
	}
	f.uplink.Permit = nil
	f.leave(f.parts.Clean(ctx))
}

// leave reports what is left at the service, if err is not nil.
func (c *call) leave(err error) {
	if err == nil {
		return
	}
	c.result.update(func(r *Result) { r.Leftover = err })
	c.events.post(Event{Kind: Warning, Cause: err.Error(), Err: err})
}

// remove removes everything that the service stores for a saved upload. The error describes what is left.
func (f *partedFile) remove(ctx context.Context) error {
	defer f.progress.parts.Store(nil)
	return f.parts.Abandon(ctx)
}

// abandon is remove for an upload that starts over. What the service refuses to remove is saved under an ID of its own.
func (f *partedFile) abandon(ctx context.Context) error {
	left := f.remove(ctx)
	if lost := f.journal.LeaseLost(); lost != nil && left != nil {
		return lost // another process may continue the upload
	}
	if left == nil || ctx.Err() != nil || errors.Is(left, session.ErrRetriesExhausted) {
		return left // in an outage the upload would fail, too
	}
	id, err := saved.Retire(ctx, f.u.opts.Store, f.journal.Doc()) // not as it was loaded: the multipart upload may be another
	if err != nil {
		return errors.Join(left, err)
	}
	f.result.update(func(r *Result) { r.Leftover = left })
	f.events.post(Event{Kind: Warning, Cause: fmt.Sprintf("%v (saved as %s, to be removed)", left, id), Err: left})
	return nil
}

// stored requests from the service what it stores for a saved upload, or the object that an earlier call made.
func (f *partedFile) stored(ctx context.Context) (engine.Held, *session.Object, error) {
	if o, err := f.parts.Settle(ctx); o != nil || err != nil {
		return engine.Held{}, o, err
	}
	held, err := f.parts.Committed(ctx)
	return held, nil, err
}
