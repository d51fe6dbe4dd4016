package upload

import (
	"context"
	"errors"
	"fmt"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// chooseParts chooses the parts of the file. They are nil if the file must be sent over one connection, for the reason
// why, which has no text if there is nothing to report.
func (j *job) chooseParts(ctx context.Context) (chosen *state.Parts, why parts.Reason, err error) {
	if j.u.opts.Parallel == nil || j.spec.Gzip {
		return nil, parts.Reason{}, nil
	}
	way := j.u.opts.Parallel.way
	plan := parts.Plan{
		Division: j.division(), Multipart: way != ByCompose, Compose: way != ByMultipart,
		Buckets: j.u.buckets, Size: j.file.Total(), ID: j.result.label.get().id,
	}
	chosen, err = plan.Choose(ctx)
	if err == nil {
		return chosen, parts.Reason{}, nil
	}
	if why, undivided := err.(parts.Reason); undivided {
		return nil, why, nil
	}
	return nil, parts.Reason{}, err
}

// reportUndivided reports why a file is not sent in parts: as a Warning with InParts, because
// the caller asked for parts, and as Undivided with AutoParts. A reason without a text is not reported.
func (j *job) reportUndivided(why parts.Reason) {
	if why.Text == "" {
		return
	}
	if j.u.opts.Parallel.orOne().Auto {
		j.events.post(Event{Kind: Undivided, Cause: why.Text})
		return
	}
	j.events.post(Event{Kind: Warning, Cause: "the file is sent over one connection: " + why.Text})
}

// division returns what the job needs to send the file in the parts of its journal.
func (j *job) division() parts.Division {
	return parts.Division{
		Wire: j.wire(), Uplink: j.uplink, Journal: j.journal, File: j.file, Expect: j.expect, Began: j.result.began,
		Memory: j.u.memory, Options: j.u.opts.Parallel.orOne(), Link: j.u.link,
	}
}

// inParts returns the file of the job in the parts of its journal. fresh reports that the upload
// was just started.
func (j *job) inParts(fresh bool) *parts.Upload {
	p := parts.NewUpload(j.division(), fresh)
	j.progress.parts.Store(&partsView{p.Position, func() *PartsProgress {
		count, done, sending := p.Progress()
		return &PartsProgress{Count: count, Done: done, Connections: sending}
	}})
	return p
}

// sendParts makes the object of a file in parts.
func (j *job) sendParts(ctx context.Context, p *parts.Upload) error {
	guarded, stop := j.journal.Guard(ctx)
	defer stop()
	object, err := p.Send(guarded)
	if err == nil {
		j.reportUnverified(p.Unverified)
		j.events.committed()
	}
	err = endedBy(ctx, err, j.journal)
	j.result.update(func(r *Result) {
		r.Object = object
		r.ResumedFrom, r.Retries, r.Waited = p.Sums()
		if u := p.Used; u != nil {
			count, _, _ := p.Progress()
			r.Parts = &PartsResult{Count: count, Connections: u.Connections, Rate: int64(u.Rate), RateOfOne: int64(u.Each)}
		}
	})
	e := j.endOf(ofParts, err)
	e.dead = factOf(e.refused && e.dead == yes) // parts that are lost are sent again
	switch ending(e) {
	case remove:
		return j.removeStored(ctx, p, err)
	case removeOrphaned:
		j.disown(ctx, p)
	case keep:
		j.journal.Keep()
	}
	return err
}

// removeStored removes what the service stores for an upload that ended with err, and then its Token. If something
// cannot be removed, the Token stays, so that Prune or the next call tries again.
func (j *job) removeStored(ctx context.Context, p *parts.Upload, err error) error {
	clean := p.Finish
	if err != nil {
		clean = p.Abandon
	}
	left := clean(ctx)
	j.leave(left)
	switch {
	case !j.journal.Saved():
	case left != nil:
		j.journal.Keep()
	default:
		return j.discarded(err, j.journal.Discard())
	}
	return err
}

// disown abandons an upload whose Token was deleted by another process while this one had
// the lease. That process may not have known what the service stores.
func (j *job) disown(ctx context.Context, p *parts.Upload) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.Grace)
	defer cancel()
	if !j.journal.Deleted(ctx) {
		return // the other process finishes the work
	}
	j.uplink.Permit = nil
	j.leave(p.Clean(ctx))
}

// leave reports what is left at the service, if err is not nil.
func (j *job) leave(err error) {
	if err == nil {
		return
	}
	j.result.update(func(r *Result) { r.Leftover = err })
	j.events.post(Event{Kind: Warning, Cause: err.Error(), Err: err})
}

// resumeParts continues a saved upload in parts.
func (f *fileUpload) resumeParts(ctx context.Context) error {
	if f.divided == nil {
		f.divided = f.inParts(false)
	}
	if f.divided.Started() {
		f.result.update(func(r *Result) { r.Resumed = true })
		f.events.post(Event{Kind: Resumed})
	}
	return f.sendParts(ctx, f.divided)
}

// removeParts removes everything that the service stores for a saved upload.
func (j *job) removeParts(ctx context.Context) error {
	defer j.progress.parts.Store(nil)
	return j.inParts(false).Abandon(ctx)
}

// abandonParts removes everything that the service stores for a saved upload, because the job
// starts over. What the service refuses to remove is saved under an ID of its own.
func (j *job) abandonParts(ctx context.Context, token *state.Token) error {
	left := j.removeParts(ctx)
	if lost := j.journal.LeaseLost(); lost != nil && left != nil {
		return lost // another process may continue the upload
	}
	if left == nil || ctx.Err() != nil || errors.Is(left, session.ErrRetriesExhausted) {
		return left // in an outage the upload would fail, too
	}
	id, err := saved.Retire(ctx, j.u.opts.Store, token)
	if err != nil {
		return errors.Join(left, err)
	}
	j.result.update(func(r *Result) { r.Leftover = left })
	j.events.post(Event{Kind: Warning, Cause: fmt.Sprintf("%v (saved as %s, to be removed)", left, id), Err: left})
	return nil
}

// queryParts requests the state of a saved upload in parts from the service. If the
// service has nothing of it, the state is SessionGone.
func (j *job) queryParts(ctx context.Context) (Holding, error) {
	p := j.inParts(false)
	// An earlier call may have made the object.
	if o, err := p.Settle(ctx); o != nil || err != nil {
		return Holding{State: SessionFinished, Object: o}, err
	}
	held, err := p.Stored(ctx)
	return holdingOf(held), err
}

// compareParts compares the source with the saved checksums of all parts.
func (j *job) compareParts(ctx context.Context, token *state.Token) error {
	for i, part := range token.Parts.List {
		rng := token.Parts.Range(i, token.Source.Size)
		known := part.Checkpoints
		if part.Finished() {
			known = []chunk.Checkpoint{{Offset: rng.Len(), CRC32C: part.CRC32C}}
		}
		if err := j.file.Section(rng).CompareAll(ctx, source.Saved{Checkpoints: known}); err != nil {
			return err
		}
	}
	j.file.Proven()
	return nil
}

// cancelParts removes everything that the service stores for a saved upload in parts,
// and deletes the saved upload.
func (j *job) cancelParts(ctx context.Context, token *state.Token) error {
	if err := j.adopt(token); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := j.removeParts(ctx); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	return j.journal.Discard()
}

// resumeRemoval removes what an upload in parts left that has ended. If its object was not
// made, it was canceled, and the error wraps ErrNoToken.
func (j *job) resumeRemoval(ctx context.Context, token *state.Token) error {
	holding, err := j.queryHolding(ctx, token)
	if err != nil {
		return err
	}
	if err := j.cancelParts(ctx, token); err != nil {
		return err
	}
	if holding.State != SessionFinished {
		return fmt.Errorf("%w: upload %s was canceled, and what it had left at the service is removed now", state.ErrNoToken, token.ID)
	}
	j.result.update(func(r *Result) {
		if r.Object = holding.Object; j.u.removal.wanted {
			r.SourceKept = fmt.Errorf("%w: only the cleanup of the upload was left, and the source was not compared with the object: upload it again to remove it, and skip it if it is identical", session.ErrOutcomeUnknown)
		}
	})
	return nil
}
