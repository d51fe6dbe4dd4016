package upload

import (
	"context"
	"fmt"

	"gcsup/session"
)

// queryParts asks what the service holds of a saved upload in parts. An upload of which
// it holds nothing is gone.
func queryParts(ctx context.Context, j *job, token *session.Token) (Holding, error) {
	p := newParallel(j, token)
	if p.finished() {
		// An earlier call may have made the object.
		if o, err := p.joiner.joined(ctx); o != nil || err != nil {
			return Holding{State: SessionFinished, Object: o}, err
		}
	}
	return p.joiner.query(ctx, token)
}

// cancelParts removes from the service what it has of a saved upload in parts, and deletes
// the saved upload.
func (j *job) cancelParts(ctx context.Context, token *session.Token, journal *journal) error {
	if err := j.adopt(token); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	journal.events = j.events
	journal.adopt(token)
	j.journal = journal
	if err := j.abandon(ctx, token); err != nil {
		return err
	}
	return journal.discard()
}

// decideParts deletes an upload in parts if it cannot be resumed, with what the service has
// of it.
func (p *pruner) decideParts(ctx context.Context, j *job, token *session.Token, lease session.Lease, pruned *Pruned) error {
	useless := token.Parts.Over || pruned.lost() || pruned.State == SessionFinished
	pruned.SourceMissing = !useless && p.opts.MissingSource && token.SourceIdentity == "" && missing(token.SourcePath)
	if !useless && !pruned.SourceMissing {
		return nil
	}
	if p.opts.DryRun {
		pruned.Deleted = true
		return nil
	}
	if err := j.abandon(ctx, token); err != nil {
		return err
	}
	longer, cancel := lingering(ctx)
	defer cancel()
	err := lease.Delete(longer)
	pruned.Deleted = err == nil
	return err
}
