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

// sendInParts sends a new upload in parts. done is false if the file must be sent over one
// connection.
func (j *job) sendInParts(ctx context.Context) (done bool, err error) {
	send, err := j.divide(ctx)
	if send == nil {
		return false, err
	}
	return true, send(ctx)
}

// divide chooses the parts of the file, and returns the step that sends them. The step is nil if the
// file must be sent over one connection, which is then reported or measured.
func (j *job) divide(ctx context.Context) (func(context.Context) error, error) {
	way := j.u.opts.Parallel.way
	plan := parts.Plan{
		Division: j.division(), Multipart: way != ByCompose, Compose: way != ByMultipart,
		Buckets: j.u.buckets, Size: j.file.Total(), ID: j.result.label.get().id,
	}
	chosen, err := plan.Choose(ctx)
	why, undivided := err.(parts.Reason)
	switch {
	case undivided && why.Unmeasured:
		j.measureFirst()
		return nil, nil
	case undivided:
		j.reportUndivided(why)
		return nil, nil
	case err != nil || chosen == nil:
		return nil, err
	}
	return func(ctx context.Context) error {
		j.journal.Begin(j.file.Identity(), chosen)
		return j.sendParts(ctx, j.inParts(true))
	}, nil
}

// reportUndivided reports why a file is not sent in parts: as a Warning with InParts, because
// the caller asked for parts, and as Undivided with AutoParts.
func (j *job) reportUndivided(why parts.Reason) {
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

// sendParts makes the object of a file in parts. After success it cleans up. After a failure it
// keeps the saved upload and all that the service stores, unless no later call can use them.
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
	_, unexpected := errors.AsType[*engine.UnexpectedBytes](err)
	unmet, _ := errors.AsType[*session.Error](err)
	hopeless := unexpected || errors.Is(err, session.ErrPrecondition) && (!unmet.Early || j.spec.NoClobber)
	switch {
	case err == nil:
		j.finishParts(ctx, p)
		return nil
	case j.journal.Lease() == nil:
		j.leave(p.Abandon(ctx))
		return err
	case !j.journal.Saved():
		j.disown(ctx, p) // nothing was sent yet, or another process has the lease
		return err
	case hopeless:
		left := p.Abandon(ctx)
		if left == nil {
			return errors.Join(err, j.journal.Discard())
		}
		j.leave(left)
	}
	j.journal.Keep()
	return err
}

// finishParts cleans up after a finished upload and deletes its Token. If something cannot be
// removed from the service, the Token stays, so that Prune or the next call tries again.
func (j *job) finishParts(ctx context.Context, p *parts.Upload) {
	left := p.Finish(ctx)
	j.leave(left)
	switch {
	case !j.journal.Saved():
	case left != nil:
		j.journal.Keep()
	default:
		if err := j.journal.Discard(); err != nil {
			j.events.post(Event{Kind: Warning, Cause: err.Error(), Err: err})
		}
	}
}

// disown abandons an upload whose Token was deleted by another process while this one had
// the lease. That process may not have known what the service stores.
func (j *job) disown(ctx context.Context, p *parts.Upload) {
	if j.journal.LeaseLost() == nil {
		return
	}
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

// resumeParts continues a saved upload in parts. spec is the Spec with which it was started.
func (j *job) resumeParts(ctx context.Context, token *state.Token, spec Spec) error {
	spec.NoClobber = spec.NoClobber || j.spec.NoClobber
	j.setSpec(spec)
	over, why := token.Parts.Over, ""
	if err := j.sameSource(ctx, token); err != nil {
		switch {
		case !errors.Is(err, session.ErrSourceChanged):
			return err
		case !over && !j.u.opts.RestartChanged:
			return engine.SourceError(err)
		}
		why = err.Error()
	}
	p := j.inParts(false)
	if over && why == "" {
		made, err := p.Find(ctx)
		if err != nil {
			return err
		}
		if made == nil {
			why = "it had ended, and only its cleanup was left"
		}
	}
	if why != "" {
		if err := j.abandonParts(ctx, token); err != nil {
			return err
		}
		return &startOver{why: why}
	}
	if p.Started() {
		j.result.update(func(r *Result) { r.Resumed = true })
		j.events.post(Event{Kind: Resumed})
	}
	return j.sendParts(ctx, p)
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
