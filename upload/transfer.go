package upload

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/session"
)

// transfer is one upload under way: the loop that feeds the service's replies
// to the decision table, and does what the table says.
type transfer struct {
	u    *Uploader
	spec Spec

	content content
	file    *fileContent // content, when it is a file
	small   []byte       // the whole object, when it goes in one request
	uri     session.URI
	state   session.State
	token   *session.Token // what the store has, or is to have; nil without a store
	saved   bool           // the store has it
	taken   *session.Token // of an earlier process, until the server has said what it holds

	agreed  int64 // the last offset at which the server's checksum was compared
	differs bool  // what the server holds is not of this copy of the source
	looked  bool  // preconditions were held against the destination
	unmet   error // they do not hold, and whether the bucket exists is still to be seen

	bound   *bound
	cutFrom int64 // where a request began that was cut after cutLen bytes, until a query tells what is left of it
	cutLen  int64
	budget  backoff.Budget
	failing time.Time      // first failure since the last progress
	waits   []session.Wait // since the last progress
	tries   int            // requests since the last progress
	retry   bool           // the next request replaces one that failed

	handed   int64     // the highest offset that this call handed to the network
	sent     int64     // of the request under way
	reported time.Time // the last Progress
	checked  time.Time // the last checkpoint

	began time.Time
	res   Result
}

// run is the loop. It returns nil when the object is there, verified.
func (t *transfer) run(ctx context.Context, first session.Kind) error {
	action := session.Action{Kind: first}
	for {
		switch action.Kind {
		case session.Done:
			return t.accept(ctx, action.Object)
		case session.Fail:
			return t.failed(action.Err, nil)
		}
		if action.Wait {
			if err := t.backOff(ctx, action); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return t.interrupted(ctx, nil)
		}
		reply, err := t.perform(ctx, action.Kind)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return t.interrupted(ctx, reply.Err)
		}
		if action, err = t.learn(ctx, reply); err != nil {
			return err
		}
	}
}

// perform makes the exchange that an action asks for. Its error is a local one:
// of the source or the store.
func (t *transfer) perform(ctx context.Context, kind session.Kind) (session.Reply, error) {
	switch kind {
	case session.Begin:
		return t.begin(ctx)
	case session.Send:
		return t.send(ctx)
	case session.Finish:
		crc, err := t.content.whole(ctx)
		if err != nil {
			return session.Reply{}, t.sourceFailed(ctx, err)
		}
		end := chunk.Range{From: t.state.Size, To: t.state.Size}
		return t.exchange(ctx, func(ctx context.Context, _ *watch) session.Reply {
			return t.u.client.Finalize(ctx, t.uri, end, t.state.Size, crc, nil)
		}), nil
	case session.Check:
		return t.stat(ctx)
	default:
		return t.exchange(ctx, func(ctx context.Context, _ *watch) session.Reply {
			return t.u.client.Query(ctx, t.uri)
		}), nil
	}
}

// exchange makes one request under the watch for stalls, and counts it.
func (t *transfer) exchange(ctx context.Context, do func(context.Context, *watch) session.Reply) session.Reply {
	ctx, w := watched(ctx, t.u.opts.StallTimeout, t.u.opts.StallRate)
	defer w.stop()
	began := time.Now()
	r := do(ctx, w)
	t.res.Requests++
	t.tries++
	t.u.opts.Logger.LogAttrs(ctx, slog.LevelDebug, string(r.Op),
		slog.String("id", t.res.ID), slog.Int("status", r.Status), slog.Any("err", r.Err), slog.Int64("offset", t.state.Committed),
		slog.Int64("sent", r.Sent), slog.Int64("held", r.Committed), slog.Duration("took", time.Since(began)))
	return r
}

// learn takes a reply in: the table decides, and what the reply says of the
// bytes is held against the source.
func (t *transfer) learn(ctx context.Context, r session.Reply) (session.Action, error) {
	before := t.state
	t.state.Replayable = t.content.replayable()
	var action session.Action
	t.state, action = session.Decide(t.state, r)

	opened := r.Op == session.OpStart && !r.URI.IsZero()
	if opened || action.Kind == session.Done || t.state.Committed > before.Committed {
		// Not for a query that is answered while data is refused.
		t.u.throttle.Succeeded(t.retry)
		t.retry = false
	}
	if t.state.Restarts > before.Restarts {
		t.taken, t.agreed = nil, 0
		t.event(Event{Kind: Restarted, Cause: r.Cause()})
		t.budget.AtStake = max(t.budget.AtStake, t.handed)
		return action, nil
	}
	if r.Status != 308 || action.Kind == session.Fail {
		return action, nil
	}
	if r.Op == session.OpQuery && t.cutLen > 0 {
		t.bound.cut(t.cutLen, t.state.Committed > t.cutFrom)
		t.cutLen = 0
	}
	if t.taken != nil && !action.Wait {
		if err := t.takeOver(ctx); err != nil {
			return action, err
		}
	}
	if t.state.Committed > before.Committed {
		t.progress()
	}
	if err := t.agree(ctx, r); err != nil {
		return action, err
	}
	t.content.committed(t.state.Committed)
	return action, nil
}

// progress notes that the server holds more than before.
func (t *transfer) progress() {
	t.budget.Progress()
	t.budget.AtStake = max(t.budget.AtStake, t.state.Committed)
	t.waits, t.tries = nil, 0
	t.sent = max(t.sent, t.state.Committed)
	t.event(Event{Kind: Progress})
}

// agree compares the checksum of what the server says it holds with ours, so
// that damage is noticed at the first reply after it and not at the end.
//
// The service reports an MD5, and of late a CRC32C. The MD5 is not kept while
// sending, for it costs more than all the rest; it is compared where a short
// prefix can be read again, when an upload goes on after a failure.
func (t *transfer) agree(ctx context.Context, r session.Reply) error {
	offset := r.Committed
	if offset <= 0 || offset != t.state.Committed || offset == t.agreed {
		return nil
	}
	differ := func(what string) error {
		// Which of the two is the wrong one?
		if err := t.content.unchanged(ctx); err != nil {
			return t.sourceFailed(ctx, err)
		}
		if t.file != nil && t.file.copied {
			t.differs = true
			return t.sourceFailed(ctx, fmt.Errorf("%w: its first %d bytes are not those that the server holds", session.ErrSourceChanged, offset))
		}
		return t.failed(&session.Error{Op: r.Op, Status: r.Status, Offset: offset, Kind: session.ErrChecksum},
			fmt.Errorf("the %s of the first %d bytes at the server is not that of the source", what, offset))
	}
	proven := func() {
		t.agreed = offset
		if t.file != nil {
			t.file.copied = false
		}
	}
	if r.RunningCRC32C != nil {
		switch ours, ok := t.content.prefix(offset); {
		case !ok:
			t.agreed = offset
		case ours != *r.RunningCRC32C:
			return differ("CRC32C")
		default:
			proven()
		}
		return nil
	}
	if r.Op != session.OpQuery || !r.HasRangeMD5 {
		return nil
	}
	if head := t.content.head(ctx, offset); head != nil {
		h := md5.New()
		switch n, err := io.Copy(h, head); {
		case err != nil || n != offset:
			t.agreed = offset // whoever needs these bytes next says what is wrong
		case [16]byte(h.Sum(nil)) != r.RangeMD5:
			return differ("MD5")
		default:
			proven()
		}
	}
	return nil
}

// backOff waits before the next try, or says that the budget is spent.
func (t *transfer) backOff(ctx context.Context, a session.Action) error {
	if t.budget.Failures() == 0 {
		t.failing = time.Now()
	}
	t.budget.Failed()
	retryAfter, cause := a.RetryAfter, cause(a.Err)
	for {
		delay, ok := t.budget.Next(t.u.opts.Policy, rand.Float64(), retryAfter, time.Since(t.failing))
		if !ok {
			err := *a.Err
			return t.failed(&err, session.ErrBudget)
		}
		t.waits = append(t.waits, session.Wait{Delay: delay, Cause: cause})
		t.event(Event{Kind: Waiting, Delay: delay, Retry: t.budget.Failures(), Cause: cause})
		timer := time.NewTimer(delay)
		start := time.Now()
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		t.res.Waited += time.Since(start)
		if ctx.Err() != nil {
			return t.interrupted(ctx, a.Err)
		}
		if t.u.throttle.Allow() {
			t.retry = true
			t.res.Retries++
			return nil
		}
		t.budget.Throttled()
		retryAfter, cause = 0, cause+", and other uploads fail too"
	}
}

func cause(err *session.Error) string {
	if err.Status != 0 {
		return fmt.Sprint(err.Status)
	}
	return err.Cause()
}

// accept compares the finished object with the source.
func (t *transfer) accept(ctx context.Context, o *session.Object) error {
	ours, err := t.content.whole(ctx)
	if err != nil {
		return t.sourceFailed(ctx, err)
	}
	size := t.content.total()
	foreign := func(why string) error {
		return t.failed(&session.Error{Op: session.OpFinalize, Status: 200, Offset: t.state.Committed, Kind: session.ErrForeignWriter}, errors.New(why))
	}
	switch {
	case o.Size != size:
		return foreign(fmt.Sprintf("the object at the destination (generation %d) has %d bytes, the source %d", o.Generation, o.Size, size))
	case o.HasCRC32C && o.CRC32C != ours:
		return foreign(fmt.Sprintf("the object at the destination (generation %d) has crc32c %s, the source %s",
			o.Generation, chunk.EncodeCRC32C(o.CRC32C), chunk.EncodeCRC32C(ours)))
	}
	if o.Bucket != "" && o.Bucket != t.spec.Bucket || o.Name != "" && o.Name != t.spec.Object {
		return foreign(fmt.Sprintf("the session made gs://%s/%s", o.Bucket, o.Name))
	}
	done := *o
	done.Bucket, done.Name = t.spec.Bucket, t.spec.Object
	done.CRC32C, done.HasCRC32C = ours, true
	t.res.Object = &done
	if t.taken != nil {
		t.res.Resumed, t.res.ResumedFrom = true, o.Size // finished by the earlier process
	}
	t.state.Committed, t.sent = o.Size, o.Size
	t.event(Event{Kind: Progress})
	return nil
}

// failed completes the error of an exchange with the history. kind, when it is
// not one of the table's, is a sentinel or says more.
func (t *transfer) failed(e *session.Error, more error) error {
	e.Attempts, e.Waits = t.tries, t.waits
	switch {
	case more == nil:
	case e.Kind == nil:
		e.Kind = more
	default:
		e.Err = more
	}
	return e
}

// interrupted is the error of an upload whose context ended; last is what was
// wrong before, if anything.
func (t *transfer) interrupted(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	// What was sent and not acknowledged may well be there.
	where := fmt.Sprintf("upload interrupted, %d bytes acknowledged of %d sent", t.state.Committed, max(t.sent, t.state.Committed))
	if last == nil || errors.Is(last, cause) {
		return fmt.Errorf("%s: %w", where, cause)
	}
	return fmt.Errorf("%s: %w (before that: %w)", where, cause, last)
}

// event completes an event and hands it to the observer.
func (t *transfer) event(e Event) {
	e.ID, e.Spec, e.Size, e.Sent, e.Committed = t.res.ID, t.spec, t.res.Size, t.sent, t.state.Committed
	t.u.opts.Observer(e)
}
