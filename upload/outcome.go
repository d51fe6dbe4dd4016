package upload

import (
	"context"
	"errors"
	"log/slog"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// finish delivers the last event and returns the Result of an upload that ended
// with err.
func (j *job) finish(ctx context.Context, err error) (*Result, error) {
	err = j.callError(endedBy(ctx, err, j.journal))
	j.requests.Retry.Close()
	q := j.requests
	res := j.result.snapshot(&j.progress)
	if j.file != nil && err == nil {
		res.Source = j.file.Identity()
	}
	res.Retries, res.Waited = res.Retries+q.Retry.Retries, res.Waited+q.Retry.Waited() // and those of parts
	res.Resumable = err != nil && !errors.Is(err, ErrIncomplete) && (j.journal.Saved() || j.withheld(ctx, err))
	if res.Resumed || err != nil {
		j.u.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "upload ended",
			slog.String("id", res.ID), slog.Int64("resumed_from", res.ResumedFrom), slog.Int64("committed", q.Pos.Committed.Load()), slog.Any("err", err))
	}
	return j.conclusion(ctx, res, err)
}

// withheld reports whether the upload is saved, although this call could not use it
// because of err: another process has its lease, or this program may not read it.
func (j *job) withheld(ctx context.Context, err error) bool {
	unusable := func(err error) bool {
		return errors.Is(err, state.ErrTokenVersion) || errors.Is(err, state.ErrInsecurePermissions)
	}
	if !errors.Is(err, state.ErrInUse) {
		return unusable(err)
	}
	ctx, cancel := saved.Lingering(ctx)
	defer cancel()
	_, err = j.u.opts.Store.Load(ctx, j.result.label.get().id) // the other process may have finished it
	return err == nil || unusable(err)
}

// conclusion delivers the last event and returns what the call returns.
func (j *job) conclusion(ctx context.Context, res Result, err error) (*Result, error) {
	if e, ok := err.(*InterruptedError); ok {
		res.Resumable = res.Resumable && !errors.Is(err, session.ErrCanceled) // Cancel removes it
		e.Resumable = res.Resumable
	}
	if (j.batch || j.rule != SkipNothing) && errors.Is(err, session.ErrPrecondition) && res.Spec.NoClobber {
		res.Skipped, err = SkipExisting, nil
	}
	if j.events != nil {
		last := terminal(ctx, res, err)
		j.events.close(ctx, &last)
	}
	return &res, err
}

// do uploads a file. Once ctx is done it does not wait for reads of the source,
// or for the store: a file server that is away can block them, and nothing can
// interrupt them. The goroutine that hangs holds the lock of the saved upload
// until the file server is back.
func (j *job) do(ctx context.Context, upload func(context.Context) error) (*Result, error) {
	if j.u.opts.Store != nil {
		ctx, j.interrupt = context.WithCancelCause(ctx)
		defer j.interrupt(nil)
	}
	var err error
	done := make(chan struct{})
	j.u.goroutines.run(func() {
		defer close(done)
		err = upload(ctx)
	})
	if awaitDone(ctx, done, abandonAfter) {
		return j.finish(ctx, err)
	}
	go func() {
		<-done
		j.requests.Retry.Close()
	}()
	res := j.result.snapshot(&j.progress)
	res.Resumable = j.result.saved.Load().Saved()
	return j.conclusion(ctx, res, j.callError(engine.NewInterruption(ctx, errors.New("a file or the store does not answer"))))
}

// callError returns err as the call returns it: an interruption with the progress of the upload.
func (j *job) callError(err error) error {
	why, ok := err.(*engine.Interruption)
	if !ok {
		return err
	}
	_, sent, _, committed := j.progress.position()
	return &InterruptedError{Committed: committed, Sent: max(sent, committed), why: *why}
}

// endedBy returns err, with which something ended, or an interruption if ctx is done:
// whatever failed after that may have failed because of it, and errors that the
// context's cause brings along are not this upload's.
func endedBy(ctx context.Context, err error, journal *saved.Journal) error {
	if lost := journal.LeaseLost(); lost != nil && err != nil {
		return lost
	}
	if err == nil || ctx.Err() == nil {
		return err
	}
	if why, ok := errors.AsType[*engine.Interruption](err); ok && why.Of(ctx) {
		return why
	}
	return engine.NewInterruption(ctx, err)
}
