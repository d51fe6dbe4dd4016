package upload

import (
	"context"
	"fmt"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// settlingAfter is the time after which an event reports that the source is being
// settled.
const settlingAfter = 200 * time.Millisecond

// settle ensures, as far as possible, that every later change of the source changes
// its identity. It records the identity.
func (j *job) settle(ctx context.Context) error {
	if j.file.settled {
		return nil
	}
	s, err := j.settleSource(ctx, j.file.src)
	if err != nil {
		return err
	}
	j.file.settled, j.file.unsynced, j.file.racy = true, s.Unsynced, s.Racy
	j.file.remember(s.Identity)
	return nil
}

// settleSource settles src. An event reports that it takes long.
func (j *job) settleSource(ctx context.Context, src *chunk.Source) (chunk.Settled, error) {
	posted := make(chan struct{})
	slow := time.AfterFunc(settlingAfter, func() {
		j.events.post(Event{Kind: Settling})
		close(posted)
	})
	s, err := src.Settle(ctx)
	if !slow.Stop() {
		<-posted
	}
	if err == nil && s.Identity.Size != src.Size() {
		err = fmt.Errorf("%w: its size was %d bytes when it was opened, and is %d", session.ErrSourceChanged, src.Size(), s.Identity.Size)
	}
	if err != nil {
		return s, j.requests.sourceFailed(ctx, err)
	}
	return s, nil
}

// settleForNew settles the source of a new session, unless a precondition shows
// that it will not be read.
func (j *job) settleForNew(ctx context.Context) error {
	if err := j.precondition.look(ctx, j.spec); err != nil || j.precondition.unmet() != nil {
		return err
	}
	return j.settle(ctx)
}
