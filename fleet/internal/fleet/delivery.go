package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"gcsup/backoff"
	"gcsup/session/state"
	"gcsup/upload"
)

// delivery is one delivery of a task to this worker. A task is delivered again if a worker returns
// it or dies.
type delivery struct {
	w     *Worker
	msg   jetstream.Msg
	id    string
	first bool // it is the first delivery of the task
	ctx   context.Context
	end   context.CancelCauseFunc
	last  context.Context // of the requests after the upload
	claim *claim
	wait  atomic.Int64 // how long the task waits after it was handed over

	consumer  string    // name of the consumer
	sequence  uint64    // sequence number of the message
	published time.Time // when the message was published, by the clock of the server

	task      *Task
	execution *execution
}

// newDelivery returns a delivery of msg. ctx ends when the worker does, and last when it must have handed over its tasks.
func (w *Worker) newDelivery(ctx, last context.Context, msg jetstream.Msg) *delivery {
	d := &delivery{w: w, msg: msg, id: idOf(msg.Subject()), last: last}
	if meta, err := msg.Metadata(); err == nil {
		d.consumer, d.sequence, d.published = meta.Consumer, meta.Sequence.Stream, meta.Timestamp
		d.first = meta.NumDelivered == 1 && w.q.open.Load().counts(meta)
	}
	d.ctx, d.end = context.WithCancelCause(ctx)
	d.claim = &claim{wait: w.q.AckWait(), end: d.end, began: time.Now(), beat: time.Now()}
	return d
}

// run uploads the files, and acknowledges or returns the message. worker ends when the worker does.
func (d *delivery) run(worker context.Context) {
	defer d.end(nil)
	var err error
	d.task, err = decodeTask(d.msg.Data())
	if err == nil && d.task.ID() != d.id {
		err = errors.New("task: the subject does not match the files")
	}
	log := d.w.log.With("task", d.id)
	if err != nil {
		log.Error("task cannot be read", "err", err)
		d.settle(log, func(ctx context.Context) error {
			_, failed := d.w.q.putLetter(ctx, d.id, DeadLetter{Kind: "invalid", Reason: err.Error(), Failures: 1, Published: d.published})
			return failed
		})
		return
	}
	log = log.With("destination", d.task.Name())
	d.execution = &execution{w: d.w, task: d.task, refused: d.w.refuses(d.task), first: d.first}
	if !d.w.enter(d) {
		// This happens if JetStream was wiped and the task was submitted again.
		log.Info("this worker has the task already")
		d.giveBack(log, d.claim.wait/3)
		return
	}
	defer d.w.exit(d)
	if d.w.crowded(d) {
		d.giveBack(log, time.Duration(d.wait.Load()))
		return
	}
	log.Info("task begins", "files", len(d.task.Files), "bytes", d.task.Bytes(), "first", d.first)
	hung := make(chan struct{})
	stop := d.keepClaim(log, hung)
	defer stop()
	done := make(chan []outcome, 1)
	go func() { done <- d.execution.run(withClaim(d.ctx, d.claim)) }()
	select {
	case outcomes := <-done:
		d.conclude(log, outcomes)
	case <-hung:
		// This worker keeps the slot and refuses the task until the read returns. Otherwise it would take it again.
		d.w.hung.Add(1)
		d.execution.awaitReads(worker)
		d.w.hung.Add(-1)
	case <-d.last.Done():
		log.Warn("task does not end, and goes to another worker")
		d.claim.expire()
		d.giveBack(log, 0)
	}
}

// keepClaim sends heartbeats until stop is called or the claim expires. If a read of the source does not return, it ends
// the task and closes hung.
func (d *delivery) keepClaim(log *slog.Logger, hung chan<- struct{}) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(d.claim.wait / 3)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if !d.claim.renew(time.Now()) {
				return
			}
			if path := d.execution.hung(hungAfter * d.claim.wait); path != "" {
				log.Error("a read of the source does not return, and the task goes to another worker", "path", path)
				d.end(errHung)
				d.claim.expire()
				close(hung)
				return
			}
			_ = d.msg.InProgress()
			d.w.crowded(d)
		}
	}()
	return func() { close(done) }
}

// tally sums up the outcomes of the files of a task.
type tally struct {
	finished  []File
	bytes     int64     // of the finished files
	elsewhere []File    // that failed here, and that another delivery has finished
	skipped   int       // finished files whose object existed already
	changed   int       // finished files that were not as they were submitted
	failed    []outcome // files with the verdict failed or hopeless
	counted   bool      // some file has the verdict failed
	unreached error     // of a file with this verdict
	verdict   verdict   // of the task: handedOver, inUse or unreached if any file has it, otherwise failed or finished
}

// sum sums up outcomes. proven and ended are as in judge. files is the number of files of the task.
func sum(outcomes []outcome, proven, ended bool, files int) tally {
	var t tally
	if len(outcomes) < files {
		t.verdict = handedOver
	}
	for _, o := range outcomes {
		switch v := judge(o.err, proven, ended); v {
		case finished:
			t.finished, t.bytes = append(t.finished, o.file), t.bytes+o.file.Size
			if o.skipped {
				t.skipped++
			}
			if o.changed {
				t.changed++
			}
		case hopeless:
			t.failed = append(t.failed, o)
		case failed:
			t.failed, t.counted = append(t.failed, o), true
		default:
			if v == unreached {
				t.unreached = o.err
			}
			if t.verdict == finished || v == handedOver {
				t.verdict = v
			}
		}
	}
	if t.verdict == finished && t.counted {
		t.verdict = failed
	}
	return t
}

// leave keeps the failures of the files of task with the indices in failing. The other files are finished elsewhere.
func (t *tally) leave(task *Task, failing []int) {
	t.failed = slices.DeleteFunc(t.failed, func(o outcome) bool {
		if slices.Contains(failing, task.index(o.file)) {
			return false
		}
		t.elsewhere = append(t.elsewhere, o.file)
		return true
	})
}

// conclude settles the task or returns its message, depending on the outcomes.
func (d *delivery) conclude(log *slog.Logger, outcomes []outcome) {
	cause := context.Cause(d.ctx)
	t := sum(outcomes, d.w.health.proves(d.claim), cause != nil, len(d.task.Files))
	switch {
	case errors.Is(cause, errClaimLost), errors.Is(cause, errHung):
		log.Warn("claim of the task expired", "err", cause)
		return
	case errors.Is(cause, errCanceled):
		d.cancel(log)
		return
	case t.verdict == handedOver:
		log.Info("task is handed over", "cause", cause)
		d.giveBack(log, time.Duration(d.wait.Load()))
		return
	case t.verdict == inUse:
		log.Info("another worker has the upload")
		d.giveBack(log, d.claim.wait/3)
		return
	case t.verdict == unreached:
		log.Warn("the service does not answer such requests; the task waits", "err", t.unreached)
		d.giveBack(log, backoff.Policy{}.Wait(1, rand.Float64(), 0))
		return
	}
	if own := d.w.ownFailure(d.ctx, t.failed); own != nil {
		log.Error("this worker ends, because the task failed for a reason of its own", "err", own)
		d.w.stop(own)
		d.giveBack(log, 0)
		return
	}
	d.w.failing.Store(t.verdict == failed)
	d.discardOthers(t)
	if len(t.failed) > 0 && d.gone() {
		log.Warn("task has left the queue, and its failure does not count", "err", t.failed[len(t.failed)-1].err)
		return
	}
	if t.verdict == failed && d.retryLater(log, &t) {
		return
	}
	d.settle(log, func(ctx context.Context) error { return d.finish(ctx, log, t) })
}

// gone reports whether the message has left the queue: the queue was canceled, and this worker has not read that
// yet, or another worker has finished the task. A record of a failure would then stay forever.
func (d *delivery) gone() bool {
	ctx, cancel := d.settling()
	defer cancel()
	_, err := d.w.q.open.Load().stream.GetMsg(ctx, d.sequence)
	return errors.Is(err, jetstream.ErrMsgNotFound)
}

// retryLater records a failed delivery and returns the message to the queue. If the task is not tried any
// more, it returns false and does not return the message. t then has only the failures that count.
func (d *delivery) retryLater(log *slog.Logger, t *tally) bool {
	last := t.failed[len(t.failed)-1]
	ctx, cancel := d.settling()
	defer cancel()
	r, err := d.w.q.stored(ctx, d.id)
	if err != nil {
		log.Warn("record cannot be read", "err", err) // earlier failures then do not count
	}
	if r.finishedSince(d.published) {
		log.Warn("another worker has finished the task, and its failure does not count", "err", last.err)
		if err := d.acknowledge(ctx); err != nil { // that of the other worker may be lost
			log.Warn("task cannot be acknowledged", "err", err)
		}
		return true
	}
	r.Attempts = r.attemptsOf(d.published).after(failedDelivery{
		committed: d.execution.committed.Load(), kind: kindOf(last.err), reason: last.err.Error(), worker: d.w.opts.Name,
		failing: d.task.indices(t.failed),
	})
	r.State, r.Files, r.Bytes, r.Fingerprint, r.Skipped, r.Changed, r.Submission = stateQueued, len(d.task.Files), d.task.Bytes(), "", 0, 0, d.task.Submission
	log.Warn("task failed", "failures", r.Attempts.Failures, "files", len(t.failed), "kind", r.Attempts.Kind, "err", last.err)
	d.w.totals.failures.Add(1)
	own := slices.ContainsFunc(t.failed, ofWorker)
	if r.Attempts.exhausted(own, d.w.retryLimits(), func() []string { return d.w.liveWorkers(ctx) }) {
		t.leave(d.task, r.Attempts.Failing)
		return false
	}
	delay := d.w.retryLimits().delay(r.Attempts.Failures, rand.Float64())
	r.Attempts.Waited += delay
	err = d.w.q.repeat(ctx, func() error {
		_, err := d.w.q.putRecord(ctx, d.id, r.record, r.revision) // if a submit has changed it, this failure does not count
		return err
	})
	if err != nil {
		log.Warn("record cannot be written", "err", err)
	}
	d.giveBack(log, delay)
	return true
}

// finish writes the dead letters and the record of a task that will leave the queue. The record at one
// revision decides about both: if a submit changes it meanwhile, finish starts over.
func (d *delivery) finish(ctx context.Context, log *slog.Logger, t tally) error {
	q := d.w.q
	slices.SortFunc(t.finished, func(a, b File) int { return cmp.Compare(a.Object, b.Object) })
	var letters map[string]uint64 // that finish has written
	all := Task{Files: slices.Concat(t.finished, t.elsewhere)}
	for {
		if err := q.dropLetters(ctx, letters); err != nil {
			return err
		}
		before, err := q.stored(ctx, d.id)
		if err != nil {
			return err
		}
		if before.Published.After(d.published) {
			return nil // a later message of the task was finished meanwhile
		}
		if letters, err = d.putLetters(ctx, log, before.record, t.failed); err != nil {
			return err
		}
		if err := d.dropEarlier(ctx, before.record, all.Files); err != nil {
			return err
		}
		written, err := q.putRecord(ctx, d.id, record{
			State: stateDone, Files: len(all.Files), Bytes: all.Bytes(), Skipped: t.skipped, Changed: t.changed,
			Fingerprint: fingerprint(d.task.Settings, t.finished), Settings: d.settings(t, before.record), Split: len(d.task.Files) > 1 && len(t.failed) > 0,
			Published: d.published, Submission: d.task.Submission, Attempts: before.attemptsOf(d.published),
		}, before.revision)
		if err != nil {
			return err
		}
		if written {
			break
		}
	}
	d.w.totals.finished(len(t.finished), len(letters), t.bytes)
	log.Info("task is finished", "files", len(t.finished), "skipped", t.skipped, "changed", t.changed, "failed", len(letters))
	return nil
}

// settings returns the digest of the settings of the objects of the task, of which before is the record.
func (d *delivery) settings(t tally, before record) string {
	switch {
	case len(t.failed) > 0 && len(t.finished)+len(t.elsewhere) == 0 && before.Settings != "":
		return before.Settings // no object was made
	case len(t.failed) > 0 && d.task.Replace:
		return mixedSettings
	}
	return digest(d.task.Settings)
}

// putLetters writes a dead letter for each failed file, and returns their revisions by key. r is the
// record of the task.
func (d *delivery) putLetters(ctx context.Context, log *slog.Logger, r record, failed []outcome) (map[string]uint64, error) {
	var mu sync.Mutex
	revisions := map[string]uint64{}
	writes, each := errgroup.WithContext(ctx)
	writes.SetLimit(letterJobs)
	for _, o := range failed {
		id := d.task.fileID(o.file)
		log.Error("file failed", "path", o.file.Path, "object", o.file.Object, "kind", kindOf(o.err), "err", o.err)
		writes.Go(func() error {
			revision, err := d.w.q.putLetter(each, id, DeadLetter{
				Task: d.task.one(o.file), Kind: kindOf(o.err), Reason: o.err.Error(), Failures: r.attemptsOf(d.published).Failures + 1, Published: d.published,
			})
			mu.Lock()
			defer mu.Unlock()
			if revision > 0 {
				revisions[id] = revision
			}
			return err
		})
	}
	return revisions, writes.Wait()
}

// dropEarlier deletes the earlier dead letters of files that are finished now, and the records of those
// that were retried alone. r is the record of the task. A dead letter of a later message stays: the file may
// have changed, and be submitted again, after this worker has read it.
func (d *delivery) dropEarlier(ctx context.Context, r record, finished []File) error {
	if r.Split {
		if err := d.w.q.dropRecords(ctx, d.task, finished); err != nil {
			return err
		}
	}
	letters, err := d.w.q.letters(ctx, d.task, finished, d.published)
	if err != nil {
		return err
	}
	return d.w.q.dropLetters(ctx, letters)
}

// settleTimeout bounds the requests to NATS at the end of a delivery, and those of a beat.
const settleTimeout = 10 * time.Second

// fileTimeout is added for each file of a task: it may have a dead letter and a record, at a server that is far away.
const fileTimeout = 50 * time.Millisecond

// settling returns a context for the requests at the end of a delivery, even if it was canceled.
func (d *delivery) settling() (context.Context, context.CancelFunc) {
	return context.WithTimeout(d.last, settleTimeout)
}

// settle calls write and then acknowledges the message. If either fails, the task is delivered
// again, and the next worker finds its files finished.
func (d *delivery) settle(log *slog.Logger, write func(context.Context) error) {
	limit := settleTimeout
	if d.task != nil {
		limit += time.Duration(len(d.task.Files)) * fileTimeout
	}
	ctx, cancel := context.WithTimeout(d.last, limit)
	defer cancel()
	if err := d.w.q.repeat(ctx, func() error { return write(ctx) }); err != nil {
		log.Warn("record cannot be written", "err", err)
		return
	}
	if err := d.acknowledge(ctx); err != nil {
		log.Warn("task cannot be acknowledged", "err", err)
	}
}

// acknowledge removes the message from the queue, unless an earlier call did.
func (d *delivery) acknowledge(ctx context.Context) error {
	if err := d.msg.DoubleAck(ctx); !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return err
	}
	return nil
}

// giveBack returns the message to the queue, which delivers it again after delay.
func (d *delivery) giveBack(log *slog.Logger, delay time.Duration) {
	nak := d.msg.Nak
	if delay > 0 {
		nak = func() error { return d.msg.NakWithDelay(delay) }
	}
	if err := nak(); err != nil {
		log.Warn("task cannot be returned", "err", err)
	}
}

// discardOthers deletes the saved upload that another delivery has left of a finished file: the object
// existed, or this worker sent the file in one request, because it has another chunk size.
func (d *delivery) discardOthers(t tally) {
	if len(d.task.Files) > 1 || len(t.finished) == 0 || d.first && t.skipped == 0 {
		return
	}
	d.discard()
}

// discard cancels the saved upload of a task with one file.
func (d *delivery) discard() {
	ctx, cancel := d.settling()
	defer cancel()
	f := d.task.Files[0]
	unobserved := func(upload.Event) {} // an upload that is not saved is no failure
	u, err := d.w.uploaders.large.With(upload.CallOptions{SourceName: f.Path, Observer: unobserved})
	if err == nil {
		var id string
		if id, err = u.ID(f.Path, d.task.spec(f)); err == nil {
			err = u.Cancel(ctx, id)
		}
	}
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		d.w.log.Warn("saved upload cannot be deleted", "path", f.Path, "err", err)
	}
}

// cancel ends a task that was canceled. Its message is no longer in the queue.
func (d *delivery) cancel(log *slog.Logger) {
	log.Info("task is canceled")
	if len(d.task.Files) == 1 && d.execution.refused == nil {
		d.discard()
	}
	_ = d.msg.Term()
}
