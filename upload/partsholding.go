package upload

import (
	"context"
	"fmt"

	"gcsup/session"
)

// queryParts asks what the service holds of the parts of a saved upload. An upload of
// which it holds nothing is gone.
func queryParts(ctx context.Context, j *job, token *session.Token) (Holding, error) {
	if p := newParallel(j, token); p.finished() {
		// An earlier call may have composed them.
		if o, err := p.composed(ctx); o != nil || err != nil {
			return Holding{State: SessionFinished, Object: o}, err
		}
	}
	whole := Holding{State: SessionGone}
	for i, part := range token.Parts.List {
		n := token.Parts.Range(i, token.Source.Size).Len()
		switch {
		case part.Generation != 0:
			whole.State, whole.Stored = SessionOpen, whole.Stored+n
			continue
		case part.URI.IsZero():
			continue
		}
		alone := *token
		alone.Parts, alone.URI, alone.Created = nil, part.URI, part.Created
		alone.Source.Size, alone.Committed, alone.HighWater = n, part.Committed, part.HighWater
		held, err := j.query(ctx, &alone)
		if err != nil {
			return Holding{}, err
		}
		switch held.State {
		case SessionOpen:
			whole.State, whole.Stored = SessionOpen, whole.Stored+held.Stored
		case SessionFinished:
			whole.State, whole.Stored = SessionOpen, whole.Stored+n
		}
	}
	return whole, nil
}

// cancelParts ends the sessions of a saved upload in parts, and deletes its temporary
// objects.
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

// decideParts deletes an upload in parts if it cannot be resumed, with its temporary
// objects.
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
