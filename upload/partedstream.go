package upload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// partedStream is a stream that is sent in parts. No other call can resume it. Its saved upload is for the removal of
// its parts if the process ends.
type partedStream struct {
	*call
	parts *parts.Stream
}

// streamID is the beginning of the IDs of saved uploads that streams in parts have. The rest is random, because
// several streams to an object may run at a time.
const streamID = "stream-"

const (
	// firstWindow is how long the first window of a stream may take.
	firstWindow = 10 * time.Second

	// removeEarlier bounds the removal of what earlier streams left.
	removeEarlier = 10 * time.Second
)

// undivided returns why a stream is sent over one connection, as far as that is known before it is read. It has no
// reason if the caller did not ask for parts.
func (c *call) undivided() (divisible bool, why parts.Reasons) {
	p := c.u.opts.Parallel
	if p == nil || p.Auto {
		return false, nil
	}
	if c.u.opts.Store == nil {
		return false, parts.Reasons{"there is no store, so that its parts could not be removed after a crash"}
	}
	if why := streamPlanner(c).StreamRefused(); why != "" {
		return false, parts.Reasons{why}
	}
	return true, nil
}

// divideStream returns the upload of a stream in parts, or nil if it is sent over one connection. The
// stream reads nothing after its first window until then.
func divideStream(ctx context.Context, c *call, stream *source.Stream) (*partedStream, error) {
	first, cancel := context.WithTimeout(ctx, firstWindow)
	defer cancel()
	n, whole, err := stream.First(first)
	share := c.u.memory.Share()
	switch {
	case err != nil && first.Err() != nil && ctx.Err() == nil:
		c.reportUndivided("stream", parts.Reasons{fmt.Sprintf("its first bytes took more than %v: its source is slow", firstWindow)})
		return nil, nil
	case err != nil:
		return nil, engine.SourceFailed(ctx, err)
	case whole:
		return nil, nil
	case !parts.StreamWindow(n, share):
		c.reportUndivided("stream", parts.Reasons{"its memory is too small for parts"})
		return nil, nil
	}
	limit := c.u.opts.Parallel.options().StreamLimit(share)
	if size := c.expect.Size; size != nil && *size > limit {
		why := fmt.Sprintf("it has %d bytes, and its parts would hold %d with this memory", *size, limit)
		c.reportUndivided("stream", parts.Reasons{why})
		return nil, nil
	}
	chosen, why, err := startStream(c.storeContext(ctx), c)
	if err != nil || chosen == nil {
		c.reportUndivided("stream", why)
		return nil, err
	}
	c.uplink.Permit = nil // a lost lease does no harm: no other process can continue the stream
	p := parts.NewStream(division(c, nil), chosen, stream)
	c.showParts(p.Upload)
	return &partedStream{c, p}, nil
}

// streamPlanner returns the planner of a stream.
func streamPlanner(c *call) *parts.Planner {
	way := c.u.opts.Parallel.Join
	return &parts.Planner{
		Division: division(c, nil), Multipart: way != ByCompose, Compose: way == ByEither, Buckets: c.u.buckets, Size: -1,
	}
}

// startStream starts the multipart upload of a stream, and saves it to be removed. Without parts, it returns
// why the stream has none.
func startStream(ctx context.Context, c *call) (chosen *state.Parts, why parts.Reasons, err error) {
	draft := state.Upload{ID: streamID + strings.ToLower(rand.Text()), SourceIdentity: "-"}
	if _, _, err := c.openJournal(ctx, draft, nil); err != nil {
		return nil, unsavable(err), nil
	}
	plan, err := streamPlanner(c).PlanStream(ctx)
	if err == nil && plan.Parts != nil {
		c.journal.BeginRemoval(plan.Parts.Upload)
		if failed := c.journal.Persist(ctx); failed != nil {
			parts.AbortUnsaved(ctx, c.uplink, c.wire(), plan.Parts.Upload)
			plan = parts.Plan{Why: unsavable(failed)}
		}
	}
	if err != nil || plan.Parts == nil {
		c.closeJournal()
		return nil, plan.Why, err
	}
	c.removeEarlierStreams(ctx, draft.ID)
	return plan.Parts, nil, nil
}

// unsavable is the reason for one connection if the store fails.
func unsavable(err error) parts.Reasons {
	return parts.Reasons{"the upload cannot be saved, so that its parts could not be removed after a crash: " + err.Error()}
}

// removeEarlierStreams removes what streams in parts left at the service because their processes were killed. In a store
// with leases it removes nothing: a process whose lease has expired may live, and go on when its network does.
func (c *call) removeEarlierStreams(ctx context.Context, own string) {
	if _, leases := c.u.opts.Store.(state.Leaser); leases {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeEarlier)
	defer cancel()
	ids, err := c.u.opts.Store.List(ctx)
	if err != nil {
		return // the next stream tries again
	}
	for _, id := range ids {
		if !strings.HasPrefix(id, streamID) || id == own {
			continue
		}
		err := inspect(ctx, c.u, id, c.u.newBudget(), func(s *savedCall, lease state.Lease) error {
			if s.doc.Parts == nil || !s.doc.Parts.Over || s.usable() != nil {
				return nil
			}
			if err := s.removeParts(ctx); err != nil {
				return err
			}
			return saved.Delete(ctx, lease)
		})
		if err != nil && !errors.Is(err, state.ErrInUse) && !errors.Is(err, state.ErrNotFound) {
			c.warn(fmt.Errorf("what an earlier stream left is not removed: %w", err))
		}
	}
}

// send makes the object, or removes the parts.
func (s *partedStream) send(ctx context.Context) error {
	defer s.closeJournal()
	object, err := s.parts.Send(ctx)
	if err == nil {
		s.reportUnverified(s.parts.Unverified)
		s.events.committed()
	}
	err = endedBy(ctx, err, &saved.Journal{})
	s.reportFailure(err) // before the removal, which a Write need not wait for
	s.reportParts(s.parts.Upload, object)
	clean := s.parts.Finish
	if err != nil {
		clean = s.parts.Abandon
	}
	left := clean(ctx)
	s.leave(left)
	if left != nil || s.journal.LeaseLost() != nil { // then another process, or Prune, removes the saved upload
		return err
	}
	return s.discarded(err, s.journal.Discard())
}

// closeJournal closes the journal of a stream, which another call cannot resume.
func (c *call) closeJournal() {
	c.journal.Close()
	c.journal = &saved.Journal{}
	c.result.saved.Store(c.journal)
	c.uplink.Permit = nil
}
