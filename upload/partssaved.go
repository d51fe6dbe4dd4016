package upload

import (
	"context"
	"errors"
	"fmt"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/source"
)

// resumeParts continues a saved upload in parts. spec is the Spec with which it was started.
func resumeParts(ctx context.Context, j *job, token *state.Token, spec Spec) error {
	spec.NoClobber = spec.NoClobber || j.spec.NoClobber
	j.setSpec(spec)
	over, why := token.Parts.Over, ""
	if err := j.sameSource(ctx, token); err != nil {
		switch {
		case !errors.Is(err, session.ErrSourceChanged):
			return err
		case !over && !j.u.opts.RestartChanged:
			return sourceError(err)
		}
		why = err.Error()
	}
	p := savedParallel(j)
	if over && why == "" {
		made, err := p.find(ctx)
		if err != nil {
			return err
		}
		if made == nil {
			why = "it had ended, and only its cleanup was left"
		}
	}
	if why != "" {
		if err := abandonParts(ctx, j, token); err != nil {
			return err
		}
		return &startOver{why: why}
	}
	return p.send(ctx)
}

// removeParts removes everything that the service stores for a saved upload.
func removeParts(ctx context.Context, j *job, token *state.Token) error {
	defer j.progress.parts.Store(nil)
	return savedParallel(j).abandon(ctx)
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

// queryParts requests the state of a saved upload in parts from the service. If the
// service has nothing of it, the state is SessionGone.
func queryParts(ctx context.Context, j *job, token *state.Token) (Holding, error) {
	p := savedParallel(j)
	// An earlier call may have made the object.
	if o, err := p.find(ctx); o != nil || err != nil {
		return Holding{State: SessionFinished, Object: o}, err
	}
	if p.isMultipart() {
		return (&multipart{dividedFile: p.dividedFile}).query(ctx)
	}
	return queryTemporary(ctx, j, token)
}

// remove removes everything that the service stores for a saved upload in parts.
func (j *job) remove(ctx context.Context, token *state.Token) error {
	parts, err := j.partsOf(token)
	if err != nil {
		return err
	}
	return parts.remove(ctx, j, token)
}

// cancelParts removes everything that the service stores for a saved upload in parts,
// and deletes the saved upload.
func (j *job) cancelParts(ctx context.Context, token *state.Token) error {
	if err := j.adopt(token); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := j.remove(ctx, token); err != nil {
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
	j.result.update(func(r *Result) { r.Object = holding.Object })
	return nil
}
