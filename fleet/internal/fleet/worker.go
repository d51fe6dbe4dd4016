package fleet

import (
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/backoff"
	"gcsup/internal/grace"
	"gcsup/internal/storeretry"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// WorkerOptions configure a Worker. StateBucket, and AEAD or Unsealed are required.
type WorkerOptions struct {
	// Name names the worker, as a token of a NATS subject. Each worker must have another one. "" is a name of
	// the host, the process and a random number.
	Name string

	// Jobs is the number of tasks that the worker processes at a time. 0 means 4.
	Jobs int

	// MaxFailures is the number of consecutive failed deliveries, without newly committed
	// bytes, after which the failing files of a task become dead letters. 0 means 5.
	MaxFailures int

	// MissingFor is how long a file is tried at least if its failures may have their reason in the
	// worker: the file is missing, cannot be read, is not as it was submitted, or the worker lacks a permission.
	// It counts from the first failure, and from the start of this worker. 0 means no time. Set it unless all
	// workers have the same files and the same account.
	MissingFor time.Duration

	// Roots are the directories whose files the worker may read, and Buckets those to which it may upload. A root may be
	// a link. An empty list permits all. A worker whose root is missing, empty or unreadable ends with [ErrRoot].
	Roots, Buckets []string

	// Upload has the options of the uploads. Its Store, Limiter and Breaker are replaced by those of
	// the worker. Its Observer gets the events of all uploads. The worker takes a part of its
	// RequestRates, as large as that of the other workers that have tasks.
	Upload upload.Options

	// Rate limits the object data of this worker, in bytes per second. The limit of the
	// fleet applies too, see Queue.SetRate. 0 means no limit.
	Rate int64

	// TrustTimes resumes an upload without a comparison if the file has the same size and
	// modification time, even if its inode and change time differ. They may differ if the
	// machines mount a shared volume in different ways. Without TrustTimes, the bytes
	// that were sent are read and compared first.
	TrustTimes bool

	// AcceptChanged uploads a file even if its size or modification time is not that with which
	// it was submitted. Without AcceptChanged, this is a failure: the worker may have an old copy.
	AcceptChanged bool

	// Uploads are saved in StateBucket below StatePrefix, and sealed with AEAD unless Unsealed is
	// set: see [bucketstore.Open].
	StateBucket, StatePrefix string
	AEAD                     cipher.AEAD
	Unsealed                 bool

	// ContentType returns the default content type of a file by its path, or "" if it is not
	// known. It may be nil.
	ContentType func(path string) string

	// UntilEmpty ends Run when the queue has no tasks, of this or any other worker. Run then
	// returns an error of Queue.Settled unless all that was submitted is done.
	UntilEmpty bool

	// Logger logs each task and each failure. nil logs nothing.
	Logger *slog.Logger
}

// Worker takes tasks from a queue and uploads their files.
type Worker struct {
	q         *Queue
	opts      WorkerOptions
	log       *slog.Logger
	store     *bucketstore.Store
	ledger    *Ledger
	health    *health
	rateLimit *upload.RateLimit
	requests  *upload.RequestRates

	uploaders uploaders
	totals    totals
	failing   atomic.Bool  // the last task that ended has failed
	hung      atomic.Int32 // tasks with a read that does not return

	queued, letters atomic.Uint64 // tasks and dead letters of the fleet

	roots atomic.Pointer[[]string] // WorkerOptions.Roots without links, when they were checked last

	mu       sync.Mutex
	active   map[string]*delivery // by task
	seen     map[string]sighting  // all workers, by name; see liveWorkers
	settings settings             // the newest that it has seen; only beat uses it
	refused  bool                 // the last settings were refused; only beat uses it
	drain    bool                 // see Queue.SetDrain
	changed  chan struct{}        // closed when drain changes
	checked  time.Time            // when ownFailure checked this worker last
	stop     func(error)          // ends Run with an error
}

// uploaders upload files. They share the circuit breaker and the rate limit.
type uploaders struct {
	small   *upload.Uploader // for groups: saves nothing
	large   *upload.Uploader // for tasks with one file
	restart *upload.Uploader // like large, but discards the saved upload
}

// Causes of tasks that end early.
var (
	errLeaving  = errors.New("the worker is stopped, and hands over its uploads")
	errCanceled = errors.New("the uploads of the fleet were canceled")
)

// NewWorker returns a worker that takes tasks from q. hc must add credentials to requests. The error
// wraps [ErrOptions] if opts is not valid, [ErrRoot], [ErrStateKey] if the key is not that of the
// other workers, or is one of [bucketstore.Open].
func NewWorker(ctx context.Context, q *Queue, hc *http.Client, opts WorkerOptions) (*Worker, error) {
	opts.Jobs, opts.MaxFailures, opts.Name = cmp.Or(opts.Jobs, 4), cmp.Or(opts.MaxFailures, 5), cmp.Or(opts.Name, newName())
	if opts.Jobs < 0 || opts.MaxFailures < 0 || opts.Rate < 0 || opts.MissingFor < 0 {
		return nil, fmt.Errorf("%w: the jobs, failures, times and rate must not be negative", ErrOptions)
	}
	w := &Worker{
		q: q, opts: opts, log: opts.Logger, rateLimit: upload.NewRateLimit(upload.Unlimited),
		requests: cmp.Or(opts.Upload.RequestRates, new(upload.RequestRates)),
		active:   map[string]*delivery{}, seen: map[string]sighting{}, changed: make(chan struct{}),
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	w.log = w.log.With("worker", opts.Name)
	w.health = &health{log: w.log}
	w.totals.started, w.totals.next = time.Now(), opts.Upload.Observer
	w.limitRate(0)
	guarded := *hc
	guarded.Transport = &guard{base: cmp.Or[http.RoundTripper](hc.Transport, http.DefaultTransport), health: w.health}
	if err := w.openStore(ctx, &guarded); err != nil {
		return nil, err
	}
	state, err := newStateBucket(&guarded, opts.Upload.Endpoint, opts.StateBucket, opts.StatePrefix, opts.Upload.Policy)
	if err != nil {
		return nil, err
	}
	w.ledger = &Ledger{state}
	if err := w.checkRoots(ctx); err != nil {
		return nil, err
	}
	if err := w.checkKey(ctx, state); err != nil {
		return nil, err
	}
	return w, w.newUploaders(&guarded)
}

// leaseMargin is how much shorter a lease is than AckWait. When the message of a dead
// worker is delivered again, its lease has expired or will expire soon. The next
// worker waits for that.
const leaseMargin = time.Second

// openStore opens the store of saved uploads.
func (w *Worker) openStore(ctx context.Context, hc *http.Client) error {
	client, err := session.NewClient(hc, w.opts.Upload.Endpoint)
	if err != nil {
		return err
	}
	ctx = storeretry.With(ctx, storeretry.Retry{
		Policy:  w.opts.Upload.Policy,
		Waiting: func(p backoff.Pause, err error) { w.log.Warn("the state bucket fails", "err", err, "wait", p.Delay) },
	})
	w.store, err = bucketstore.Open(ctx, client, w.opts.StateBucket, w.opts.StatePrefix, &bucketstore.Options{
		AEAD: w.opts.AEAD, Unsealed: w.opts.Unsealed, TTL: w.q.AckWait() - leaseMargin, Holder: w.opts.Name,
	})
	return err
}

// newUploaders makes the uploaders.
func (w *Worker) newUploaders(hc *http.Client) (err error) {
	o := w.opts.Upload
	o.Breaker, o.RateLimit, o.RequestRates, o.Observer = new(backoff.Breaker), w.rateLimit, w.requests, w.observe
	o.AtRisk = cmp.Or(o.AtRisk, new(upload.AtRisk)) // they send over one link
	o.Store = nil
	if w.uploaders.small, err = upload.New(hc, &o); err != nil {
		return err
	}
	o.Store = w.store
	if w.uploaders.large, err = upload.New(hc, &o); err != nil {
		return err
	}
	o.Restart = true
	w.uploaders.restart, err = upload.New(hc, &o)
	return err
}

// Warnings returns warnings for the user about the state bucket, see
// [bucketstore.Store.Warnings].
func (w *Worker) Warnings() []string { return w.store.Warnings() }

// Run takes tasks until ctx is done, or until the queue is empty if UntilEmpty is
// set. If ctx is done, it hands over its uploads at once: it releases their leases
// and returns their messages. It returns an error if the connection to NATS is closed or has not the
// permissions, if the queue is empty and not settled, see [Queue.Settled], or if this worker, and not a task, is the
// reason of a failure: its credentials, its roots ([ErrRoot]) or the state bucket.
func (w *Worker) Run(ctx context.Context) error {
	caller := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.stop = stop
	tasks, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	last, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var running sync.WaitGroup
	beats, stopBeats := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBeats()
	begin, known := w.beat(ctx)
	if refused := w.q.js.Conn().LastError(); !known && errors.Is(refused, nats.ErrPermissionViolation) {
		return fmt.Errorf("NATS: %w", refused)
	}
	running.Go(func() { w.keepBeating(beats, begin, known) })

	var deliveries sync.WaitGroup
	slots := make(chan struct{}, w.opts.Jobs)
	err := w.take(ctx, slots, func(msg jetstream.Msg) {
		d := w.newDelivery(tasks, last, msg)
		deliveries.Go(func() {
			defer func() { <-slots }()
			d.run(tasks)
		})
	})
	end(errLeaving)
	defer time.AfterFunc(handOverFor, giveUp).Stop()
	deliveries.Wait()
	stopBeats()
	running.Wait()
	w.leave()
	if err == nil && caller.Err() == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// The times of the end of a worker, one after the other.
const (
	handOverFor = grace.Call + 3*time.Second // uploads return, their outcomes are recorded, and the other tasks returned
	leaveFor    = time.Second                // see leave
)

// EndsWithin is how long Run takes at most after its context is done, even if NATS, the service or a file does not answer.
const EndsWithin = handOverFor + leaveFor

// idleWait is how long a request for a task waits at the server, at most. If the worker is suspended, the server may
// send it the tasks of others, and its own, until the request ends: it must end before the tasks of the worker are
// delivered again.
const idleWait = 20 * time.Second

// emptyWait is how long the request of a worker with UntilEmpty waits before it checks whether the queue
// is empty, and that of a worker whose tasks fail.
const emptyWait = time.Second

// take takes a task for each free slot and passes it to start, which must free the slot.
func (w *Worker) take(ctx context.Context, slots chan struct{}, start func(jetstream.Msg)) error {
	failures := 0
	for {
		// A long request of a worker whose tasks fail would always be before the short ones of others.
		wait := min(idleWait, w.q.AckWait()/2)
		if w.opts.UntilEmpty || w.failing.Load() {
			wait = emptyWait
		}
		if ok, err := w.awaitDrain(ctx); !ok {
			return err
		}
		select {
		case slots <- struct{}{}:
		case <-time.After(emptyWait):
			if w.opts.UntilEmpty && w.stuck() { // others may finish the tasks
				if done, err := w.finished(ctx); done {
					return err
				}
			}
			continue
		case <-ctx.Done():
			return nil
		}
		msg, err := w.q.next(ctx, wait)
		if msg != nil {
			failures = 0
			if ctx.Err() != nil {
				_ = msg.NakWithDelay(time.Second)
				<-slots
				return nil
			}
			start(msg)
			continue
		}
		<-slots
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
			if w.opts.UntilEmpty {
				if done, err := w.finished(ctx); done {
					return err
				}
			}
			continue
		case w.q.js.Conn().IsClosed():
			return fmt.Errorf("NATS: %w", err)
		case wiped(err):
			w.log.Warn("the queue was lost and will be created again", "err", err)
			err = w.q.ensure(ctx)
		}
		if err != nil {
			w.log.Warn("no task could be taken", "err", err)
			pause(ctx, backoff.Policy{}.Wait(failures, 0.5, 0))
			failures++
		}
	}
}

// finished reports whether a worker with UntilEmpty ends, and with which error: the queue has no
// tasks, of this or any other worker.
func (w *Worker) finished(ctx context.Context) (done bool, err error) {
	info, err := w.q.open.Load().stream.Info(ctx)
	if err != nil || info.State.Msgs > 0 {
		return false, nil
	}
	err = w.q.Settled(ctx, w.ledger)
	switch {
	case err == nil, errors.Is(err, ErrQueueLost), errors.Is(err, ErrUnknownTotal), errors.Is(err, ErrFilesFailed):
		return true, err
	case !errors.Is(err, ErrNotEmpty):
		w.log.Warn("it is not known whether all files are finished", "err", err)
	}
	return false, nil
}

// awaitDrain waits while the fleet is draining. It returns false if ctx is done, or if the worker is
// finished, with its error.
func (w *Worker) awaitDrain(ctx context.Context) (bool, error) {
	for {
		w.mu.Lock()
		drain, changed := w.drain, w.changed
		w.mu.Unlock()
		if !drain || ctx.Err() != nil {
			return ctx.Err() == nil, nil
		}
		if w.opts.UntilEmpty {
			if done, err := w.finished(ctx); done {
				return false, err
			}
		}
		select {
		case <-changed:
		case <-time.After(idleWait):
		case <-ctx.Done():
		}
	}
}

// retryLimits returns when this worker gives a task up.
func (w *Worker) retryLimits() retryLimits {
	return retryLimits{failures: w.opts.MaxFailures, missingFor: w.opts.MissingFor, watched: time.Since(w.totals.started)}
}

// newName returns a name of the host, the process and a random number.
func newName() string {
	host, _ := os.Hostname()
	host = regexp.MustCompile(`[^a-zA-Z0-9_-]`).ReplaceAllString(cmp.Or(host, "worker"), "-")
	return fmt.Sprintf("%.40s-%d-%.6s", host, os.Getpid(), rand.Text())
}

// contentType returns the default content type of a file, or "".
func (w *Worker) contentType(f File) string {
	if w.opts.ContentType == nil {
		return ""
	}
	return w.opts.ContentType(f.Path)
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
