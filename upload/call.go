package upload

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/decide"
	"gcsup/internal/grace"
	"gcsup/internal/storeretry"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// call is one upload: what it is called, counts, reports and returns, and how its requests are made. The types for
// the kinds of sources have one.
type call struct {
	u        *Uploader
	spec     Spec // in use
	rule     Skip // of the batch or the call
	batch    bool // the call is one of a batch
	expect   engine.Expectation
	most     int64 // bytes that a compressed file may have; otherwise 0
	uplink   *engine.Uplink
	requests *engine.Requester
	events   *events
	progress progress
	result   callResult

	journal      *saved.Journal
	interrupt    context.CancelCauseFunc // ends the context of the call; nil if the upload cannot be saved
	precondition engine.Precondition
}

// uploads counts the calls of this process, see [Event].Upload.
var uploads atomic.Int64

// newCall returns a call with ctx. It fails when b is spent. The caller must end it with finish.
func newCall(ctx context.Context, u *Uploader, spec Spec, b *engine.SharedBudget) *call {
	c := &call{u: u, spec: spec, expect: u.expect.Once(), rule: u.rule, journal: &saved.Journal{}, result: callResult{began: time.Now()}}
	c.result.saved.Store(c.journal)
	c.result.label.names = names{upload: uploads.Add(1), spec: spec}
	c.progress.whole, c.progress.tally = engine.NewPosition(-1), &c.result.tally
	c.events = newEvents(ctx, u, &c.result.label, c.progress.describe)
	c.uplink = u.newUplink(b, &c.result.tally, &reporter{c.events, u.opts.Logger, func() []slog.Attr {
		n := c.result.label.get()
		attrs := []slog.Attr{slog.String("id", n.id)}
		if n.path != "" {
			attrs = append(attrs, slog.String("source", n.path))
		}
		return append(attrs, slog.String("object", n.spec.Object))
	}})
	c.uplink.Replied = u.link.Replied
	c.requests = engine.NewRequester(c.uplink, 0, c.progress.whole)
	if size := u.expect.Size; size != nil {
		c.expectSize(*size)
	}
	return c
}

// wire returns a requester for the object at the destination.
func (c *call) wire() *engine.Requester { return c.requests.To(c.spec) }

// newTransfer returns the transfer of src to the destination, when the Spec is known. measure is as in
// [engine.TransferOptions].
func (c *call) newTransfer(src content.Source, r engine.Recorder, measure func() engine.Measure) *engine.Transfer {
	return engine.NewTransfer(c.wire(), src, r, engine.TransferOptions{Expect: c.expect, Measure: measure})
}

// expectSize sets how many bytes the source must have.
func (c *call) expectSize(size int64) {
	c.expect.Size = &size
	if !c.spec.Gzip {
		c.sized(size)
	}
}

// sized sets the number of bytes that will be sent.
func (c *call) sized(size int64) {
	c.requests.Pos.Size.Store(size)
	c.requests.Retry.Stake(size)
}

// validate checks the Spec, and finds the secret of its encryption key. With SkipExisting
// it adds the precondition.
func (c *call) validate() error {
	if c.rule == SkipExisting {
		c.spec.IfGenerationMatch, c.spec.NoClobber = new(int64), true
		c.setSpec(c.spec)
	}
	if err := c.spec.Validate(); err != nil {
		return err
	}
	if err := c.u.opts.Parallel.checkSpec(c.spec); err != nil {
		return err
	}
	key, err := c.u.opts.encryptionKey(c.spec.EncryptionKey)
	c.spec.EncryptionKey = key
	return err
}

// identify sets the ID of the upload, and the options of the object.
func (c *call) identify(id string, spec Spec) {
	c.result.label.set(func(n *names) { n.id = id })
	c.setSpec(spec)
}

// setSpec sets the options of the object, for this upload and for its saved upload.
func (c *call) setSpec(spec Spec) {
	c.spec = spec
	c.result.label.set(func(n *names) { n.spec = spec })
	c.journal.SetSpec(spec)
}

// detect sets the default content type, if it depends on the first bytes of the source, which head returns.
func (c *call) detect(head func() []byte) { c.spec = c.u.opts.detected(c.spec, head) }

// storeContext returns ctx for calls of the store in the foreground of the call.
func (c *call) storeContext(ctx context.Context) context.Context {
	return c.u.storeContext(ctx, c.events, c.uplink.Budget.AtStake)
}

// openJournal opens the journal of a saved upload. The requests of c then need its
// lease. waiting, if it is not nil, is called before each wait for the lease. The caller must
// close the journal.
func (c *call) openJournal(ctx context.Context, draft state.Upload, waiting func(context.Context)) (doc *state.Upload, damaged, err error) {
	draft.Endpoint, draft.SourceVersion = c.u.client.Endpoint(), c.u.version
	journal, doc, damaged, err := saved.Open(ctx, saved.Call{
		Store: c.u.opts.Store, Running: c.u.running, Interrupt: c.interrupt,
		Waiting: func(held *state.HeldError) {
			if waiting != nil {
				waiting(ctx)
			}
			c.events.post(Event{Kind: LeaseHeld, Delay: held.Left, Cause: held.Holder(), Err: held})
		},
		Stale: func(err error) {
			c.events.post(Event{Kind: Warning, Cause: "the upload continues, and its state cannot be saved: " + err.Error(), Err: err})
		},
		Last:       func(ctx context.Context) context.Context { return c.u.storeContext(ctx, c.events, nothingAtStake) },
		Background: func(ctx context.Context) context.Context { return c.u.storeContext(ctx, nil, nothingAtStake) },
	}, draft)
	if err != nil {
		return nil, nil, err
	}
	journal.SetSpec(c.spec)
	c.journal = journal
	c.result.saved.Store(journal)
	c.uplink.Permit = journal.Lease()
	return doc, damaged, nil
}

// reread notes that bytes of the source were read only for their checksum. The
// step that reaches the end is not reported: another event follows at once.
func (c *call) reread(n, offset, end int64) {
	c.result.tally.Reread.Add(n)
	if offset < end {
		c.events.comparing(offset, end)
	}
}

// resumed records that the service reported how much it has of the session of a saved upload.
func (c *call) resumed(offset int64) {
	c.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = true, offset })
	c.events.post(Event{Kind: Resumed})
}

// warn reports a problem that does not stop the upload.
func (c *call) warn(err error) {
	c.events.post(Event{Kind: Warning, Cause: err.Error(), Err: err})
}

// reportUnverified records why the CRC32C of the object was not compared, if err is not nil.
func (c *call) reportUnverified(err error) {
	if err == nil {
		return
	}
	c.result.update(func(r *Result) { r.Unverified = err })
	c.events.post(Event{Kind: Warning, Cause: "not verified: " + err.Error(), Err: err})
}

// reportFailure reports the error of the upload, before its session is canceled.
func (c *call) reportFailure(err error) {
	if failed := c.result.failed; err != nil && failed != nil {
		failed(c.returned(err))
	}
}

// do uploads a source. Once ctx is done it does not wait for reads of the source,
// or for the store: a file server that is away can block them, and nothing can
// interrupt them. The goroutine that hangs holds the lock of the saved upload
// until the file server is back; a lease expires, because it is renewed only until ctx is done.
func (c *call) do(ctx context.Context, upload func(context.Context) error) (*Result, error) {
	if c.u.opts.Store != nil {
		ctx, c.interrupt = context.WithCancelCause(ctx)
		defer c.interrupt(nil)
	}
	var err error
	done := make(chan struct{})
	c.u.goroutines.Run(func() {
		defer close(done)
		err = upload(ctx)
	})
	if batch.Await(ctx, done, grace.Call) {
		return c.finish(ctx, err)
	}
	go func() {
		<-done
		c.requests.Retry.Close()
	}()
	res := c.result.snapshot(&c.progress)
	res.Resumable = c.result.saved.Load().Saved()
	return c.conclusion(ctx, res, c.returned(engine.NewInterruption(ctx, errors.New("a file or the store does not answer"))))
}

// finish delivers the last event and returns the Result of an upload that ended
// with err.
func (c *call) finish(ctx context.Context, err error) (*Result, error) {
	err = c.returned(endedBy(ctx, err, c.journal))
	c.requests.Retry.Close()
	q := c.requests
	res := c.result.snapshot(&c.progress)
	if c.result.source != nil && err == nil {
		res.Source = c.result.source()
	}
	res.Retries, res.Waited = res.Retries+q.Retry.Retries, res.Waited+q.Retry.Waited() // and those of parts
	res.Resumable = err != nil && !errors.Is(err, ErrIncomplete) && (c.journal.Saved() || c.withheld(ctx, err))
	if res.Resumed || err != nil {
		c.u.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "upload ended",
			slog.String("id", res.ID), slog.Int64("resumed_from", res.ResumedFrom), slog.Int64("committed", q.Pos.Committed.Load()), slog.Any("err", err))
	}
	return c.conclusion(ctx, res, err)
}

// withheld reports whether the upload is saved, although this call could not use it
// because of err: another process has its lease, or this program may not read it.
func (c *call) withheld(ctx context.Context, err error) bool {
	unusable := func(err error) bool {
		return errors.Is(err, state.ErrVersion) || errors.Is(err, state.ErrInsecurePermissions)
	}
	if !errors.Is(err, state.ErrInUse) {
		return unusable(err)
	}
	ctx, cancel := saved.Lingering(ctx)
	defer cancel()
	_, err = c.u.opts.Store.Load(ctx, c.result.label.get().id) // the other process may have finished it
	return err == nil || unusable(err)
}

// conclusion delivers the last event and returns what the call returns.
func (c *call) conclusion(ctx context.Context, res Result, err error) (*Result, error) {
	if e, ok := err.(*InterruptedError); ok {
		res.Resumable = res.Resumable && !errors.Is(err, session.ErrCanceled) // Cancel removes it
		e.Resumable = res.Resumable
	}
	if (c.batch || c.rule != SkipNothing) && errors.Is(err, session.ErrPrecondition) && res.Spec.NoClobber {
		res.Skipped, err = SkipExisting, nil
	}
	if c.events != nil {
		last := terminal(ctx, res, err)
		c.events.close(ctx, &last)
	}
	return &res, err
}

// returned returns err as the call returns it: an interruption with the progress of the upload.
func (c *call) returned(err error) error {
	why, ok := err.(*engine.Interruption)
	if !ok {
		return err
	}
	_, sent, _, committed := c.progress.position()
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

// callResult collects the Result of a call. The caller may read it while the call continues,
// see [call.do].
type callResult struct {
	began  time.Time
	tally  engine.Tally
	failed func(error)           // nil, or called with the error of the upload before its session is canceled
	source func() chunk.Identity // of the bytes that were read; nil without a file
	label  label
	saved  atomic.Pointer[saved.Journal]

	mu    sync.Mutex // guards known. Only the goroutine of the call writes it, and may read it without mu
	known Result     // without what label and tally have
}

func (r *callResult) update(change func(*Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.known)
}

// snapshot returns the Result of an upload with progress p, as far as it is known.
func (r *callResult) snapshot(p *progress) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res, n := r.known, r.label.get()
	res.ID, res.Path, res.Spec = n.id, n.path, n.spec
	res.Size = p.whole.Size.Load()
	if offsets := p.source.Load(); offsets != nil {
		res.Size = offsets.Size()
	}
	res.BytesSent, res.BytesResent, res.BytesReread = r.tally.Sent.Load(), r.tally.Resent.Load(), r.tally.Reread.Load()
	res.Throttled = time.Duration(r.tally.Paced.Load())
	res.Requests, res.Elapsed = int(r.tally.Requests.Load()), time.Since(r.began)
	return res
}

// storeContext returns ctx for calls of the store. The requests of the store are retried like
// those of an upload with that many bytes at stake. e gets an event for each wait, and the
// logger an entry.
func (u *Uploader) storeContext(ctx context.Context, e *events, atStake func() int64) context.Context {
	return storeretry.With(ctx, storeretry.Retry{
		Policy: u.opts.Policy,
		For: func() time.Duration {
			if u.opts.RetryFor > 0 {
				return u.opts.RetryFor
			}
			return u.opts.Policy.LongestTotal(backoff.Retries(atStake()))
		},
		Waiting: func(p backoff.Pause, err error) {
			u.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "a request of the store failed", slog.Any("err", err), slog.Int("failures", p.Failures), slog.Duration("wait", p.Delay))
			e.post(Event{Kind: Waiting, Store: true, Delay: p.Delay, Retry: p.Failures, Cause: storeCause(err), Err: err})
		},
	})
}

// nothingAtStake is for storeContext: no bytes are lost if the store fails.
func nothingAtStake() int64 { return 0 }

// storeCall returns ctx for calls of the store that belong to no upload. The caller must call
// done.
func storeCall(ctx context.Context, u *Uploader) (_ context.Context, done func()) {
	e := newEvents(ctx, u, new(label), (&progress{whole: engine.NewPosition(-1)}).describe)
	return u.storeContext(ctx, e, nothingAtStake), func() { e.close(ctx, nil) }
}

// storeCause describes a failed request of the store in a few words: what the store reports of
// itself, and the status or the error of the network.
func storeCause(err error) string {
	failed, ok := errors.AsType[*session.Error](err)
	if !ok {
		return err.Error()
	}
	return strings.TrimSuffix(err.Error(), failed.Error()) + decide.Short(failed)
}
