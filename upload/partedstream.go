package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
	"gcsup/upload/internal/stream"
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
	// firstWindow is how long the first window of a stream may take if the caller gives a number of connections. With
	// Parts.Auto, it may take as long as one connection needs at lowLimit: one connection then suffices for the source.
	firstWindow = 10 * time.Second

	// endWait is how long a stream that may be short is read before parts of it are sent. Over a link of 20 ms, parts
	// took 0.2 s longer than a session.
	endWait = 250 * time.Millisecond

	// removeEarlier bounds the removal of what earlier streams left.
	removeEarlier = 10 * time.Second
)

// ofPartedStream reports whether a saved upload is that of a stream in parts.
func ofPartedStream(doc *state.Upload) bool {
	return doc.Parts != nil && doc.Parts.Over && doc.Parts.Size == 0
}

// notPartedStream returns an error if the saved upload with an ID is that of a stream in parts, whose process may run.
func (u *Uploader) notPartedStream(ctx context.Context, id string) error {
	if strings.HasPrefix(id, streamID) && saved.Exists(ctx, u.opts.Store, id) {
		return errOnlyRemovable(id)
	}
	return nil
}

// errOnlyRemovable is the reason why a stream in parts can neither be paused nor resumed.
func errOnlyRemovable(id string) error {
	return fmt.Errorf("%w: upload %s is a stream in parts, which can only be removed, because no other process has its bytes", session.ErrInvalid, id)
}

// undivided returns why a stream is sent over one connection, as far as that is known before it is read. It has no
// reason if the caller did not ask for parts.
func (c *call) undivided() (divisible bool, why parts.Reasons) {
	o := &c.u.opts
	switch {
	case o.Parallel == nil:
		return false, nil
	case o.Store == nil:
		return false, parts.Reasons{"there is no store, so that its parts could not be removed after a crash"}
	case o.Parallel.Auto && o.ChunkSize > 0:
		return false, parts.Reasons{"its requests have a maximum size"}
	}
	why = streamPlanner(c, "").StreamRefused()
	return len(why) == 0, why
}

// patience returns how long the first window of a stream may take.
func (o *Options) patience() time.Duration {
	if !o.Parallel.Auto {
		return firstWindow
	}
	return time.Duration(cmp.Or(int64(o.Window), stream.DefaultWindow)) * time.Second / lowLimit
}

// holdStream makes a stream read little until it is known whether it is divided: its first window, and with Parts.Auto
// three more, because a short stream is not divided. noticed is closed when it has one of these.
func holdStream(o *Options, stream *source.Stream) (noticed <-chan struct{}) {
	if !o.Parallel.Auto {
		return stream.Hold(0, 0)
	}
	window := cmp.Or(int64(o.Window), lowLimit)
	return stream.Hold(3*window, window)
}

// endsSoon reports whether a stream ends within the windows that it reads ahead, or returns what was found out meanwhile
// about the destination. A stream in parts has about ten requests more than a session. Therefore it waits no
// longer than these take.
func endsSoon(ctx context.Context, c *call, stream *source.Stream, noticed <-chan struct{}) (ends bool, d parts.Destination, err error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting, stop := context.WithTimeout(ctx, endWait)
	defer stop()
	asked := make(chan parts.Destination, 1)
	go func() {
		select {
		case <-noticed:
		case <-waiting.Done():
		}
		var d parts.Destination
		if asking.Err() == nil {
			d = streamPlanner(c, "").AskBefore(asking)
		}
		asked <- d
	}()
	ends, err = stream.Ahead(waiting)
	if waiting.Err() != nil {
		err = nil // the source is slow, or the upload was canceled
	}
	if ends || err != nil {
		cancel()
	}
	stop()
	d = <-asked
	if err != nil {
		err = engine.SourceFailed(ctx, err)
	}
	return ends, d, err
}

// divideStream returns the upload of a stream in parts, or nil if it is sent over one connection. Until then, the
// stream reads no more than holdStream lets it.
func divideStream(ctx context.Context, c *call, stream *source.Stream, noticed <-chan struct{}) (*partedStream, error) {
	long, before, err := isLong(ctx, c, stream, noticed)
	if !long || err != nil {
		return nil, err
	}
	plan, err := startStream(c.storeContext(ctx), c, before)
	if err != nil || plan.Parts == nil {
		c.reportUndivided("stream", plan.Why)
		return nil, err
	}
	c.uplink.Permit = nil // a lost lease does no harm: no other process can continue the stream
	p := parts.NewStream(division(c, nil), plan.Parts, stream)
	c.showParts(p)
	c.warnOfLimit(plan)
	return &partedStream{c, p}, nil
}

// isLong reports whether a stream, or a file that is compressed, is long and fast enough for parts, and returns what was
// found out meanwhile about the destination.
func isLong(ctx context.Context, c *call, stream *source.Stream, noticed <-chan struct{}) (long bool, before parts.Destination, err error) {
	what := "stream"
	if c.most > 0 {
		what = "file"
	}
	patience := c.u.opts.patience()
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n, whole, err := stream.First(first)
	switch {
	case err != nil && first.Err() != nil && ctx.Err() == nil:
		c.reportUndivided(what, slowSource(patience))
		return false, before, nil
	case err != nil:
		return false, before, engine.SourceFailed(ctx, err)
	case whole:
		return false, before, nil
	case !parts.StreamWindow(n, c.u.memory.Share()):
		c.reportUndivided(what, parts.Reasons{"its memory is too small for parts"})
		return false, before, nil
	}
	var ends bool
	if noticed != nil {
		ends, before, err = endsSoon(ctx, c, stream, noticed)
	}
	return !ends, before, err
}

// slowSource is the reason for one connection if the first window takes longer than patience.
func slowSource(patience time.Duration) parts.Reasons {
	return parts.Reasons{fmt.Sprintf("its first bytes took more than %v: its source is slow", patience)}
}

// warnOfLimit warns if the parts of a stream hold less than an object can have.
func (c *call) warnOfLimit(plan parts.Plan) {
	if plan.Way != parts.Multipart || len(plan.Why) == 0 {
		return
	}
	c.events.post(Event{Kind: Warning, Cause: fmt.Sprintf(
		"the stream fails if it has more than %d bytes, which its parts hold: %v", streamPlanner(c, "").StreamLimit(), plan.Why)})
}

// streamPlanner returns the planner of a stream with an ID.
func streamPlanner(c *call, id string) *parts.Planner {
	way, size := c.u.opts.Parallel.Join, int64(0)
	if o := c.u.opts.Spool; o != nil && c.most == 0 {
		size = o.limit()
	}
	return &parts.Planner{
		Division: division(c, nil), Multipart: way != ByCompose, Compose: way == ByEither, Buckets: c.u.buckets, Size: -1, ID: id,
		SpoolSize: size, Most: c.most,
	}
}

// startStream starts the multipart upload of a stream, and saves it to be removed. The plan has no parts if the stream
// is sent over one connection.
func startStream(ctx context.Context, c *call, before parts.Destination) (parts.Plan, error) {
	draft := state.Upload{ID: streamID + strings.ToLower(rand.Text()), SourceIdentity: "-"}
	if _, _, err := c.openJournal(ctx, draft, nil); err != nil {
		return parts.Plan{Why: unsavable(err)}, nil
	}
	plan, err := startParts(ctx, c, draft.ID, before, c.journal.BeginRemoval)
	if err != nil || plan.Parts == nil {
		c.closeJournal()
	}
	return plan, err
}

// startParts starts the multipart upload of a stream with an ID, and saves it. begin makes the saved upload.
func startParts(ctx context.Context, c *call, id string, before parts.Destination, begin func(*state.Parts)) (parts.Plan, error) {
	planner := streamPlanner(c, id)
	planner.Before = before
	plan, err := planner.PlanStream(ctx)
	if err == nil && plan.Parts != nil {
		begin(plan.Parts)
		if failed := c.journal.Persist(ctx); failed != nil {
			planner.AbortStream(ctx, plan.Parts)
			plan = parts.Plan{Why: unsavable(failed)}
		}
	}
	return plan, err
}

// unsavable is the reason for one connection if the store fails.
func unsavable(err error) parts.Reasons {
	return parts.Reasons{"the upload cannot be saved, so that its parts could not be removed after a crash: " + err.Error()}
}

// removeEarlierStreams begins to remove what streams in parts left at the service because their processes were killed.
// In a store with leases it removes nothing: a process whose lease has expired may live, and go on when its network
// does. wait must be called when the upload has ended. The rest is left to the next stream.
func (c *call) removeEarlierStreams(ctx context.Context) (wait func()) {
	if _, leases := c.u.opts.Store.(state.Leaser); leases {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, removeEarlier)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ids, _ := c.u.opts.Store.List(ctx)
		for _, id := range ids {
			if strings.HasPrefix(id, streamID) || strings.HasPrefix(id, spooledID) {
				c.removeEarlierStream(ctx, id)
			}
		}
	}()
	return func() {
		select {
		case <-done:
		case <-ctx.Done():
		case <-time.After(grace.Requests):
		}
		cancel()
		select {
		case <-done:
		case <-time.After(grace.Store): // it may ignore its context
		}
	}
}

// removeEarlierStream removes what a stream left, unless its process runs. If the service refuses that, only Prune and
// Cancel try again.
func (c *call) removeEarlierStream(ctx context.Context, id string) {
	err := inspect(ctx, c.u, id, c.u.newBudget(), func(s *savedCall, lease state.Lease) error {
		if !ofPartedStream(s.doc) && !unfinishable(s.doc) || s.usable() != nil {
			return nil
		}
		if left := s.removeParts(ctx); left != nil {
			if failed, ok := errors.AsType[*session.Error](left); !ok || !engine.Refusal(failed) {
				return nil // the next stream tries again
			}
			retired, err := saved.Retire(ctx, c.u.opts.Store, s.doc)
			if err != nil {
				return err
			}
			c.warn(fmt.Errorf("what an earlier stream left: %w (saved as %s, to be removed)", left, retired))
		}
		return withSpool(ctx, s.doc, func() error { return saved.Delete(ctx, lease) })()
	})
	if err != nil && !errors.Is(err, state.ErrInUse) && !errors.Is(err, state.ErrNotFound) && ctx.Err() == nil {
		c.warn(fmt.Errorf("what an earlier stream left: %w", err))
	}
}

// send makes the object, or removes the parts.
func (s *partedStream) send(ctx context.Context) error {
	defer s.closeJournal()
	defer s.removeEarlierStreams(ctx)()
	defer s.parts.Close()
	object, err := s.parts.Send(s.storeContext(ctx))
	if err == nil {
		s.reportUnverified(s.parts.Unverified)
		s.events.committed()
	}
	err = endedBy(ctx, err, &saved.Journal{})
	s.reportFailure(err) // before the removal, which a Write need not wait for
	s.reportParts(s.parts, s.parts.Used, object)
	if s.endOf(ofStream, err).canceled {
		return err // Cancel removes the parts and the saved upload
	}
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
