package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"gcsup/backoff"
)

// record is the outcome of a task, for Status and for later submits. It does not decide whether an
// object exists: only the bucket does.
type record struct {
	V     int       `json:"v"`
	State taskState `json:"state"` // "" if there is no record

	Files   int   `json:"files"`             // queued: all of the task; done: those that are finished
	Bytes   int64 `json:"bytes"`             // of those files
	Skipped int   `json:"skipped,omitempty"` // done: finished files whose object existed already

	Changed int `json:"changed,omitempty"` // done: finished files that were not as they were submitted, see WorkerOptions.AcceptChanged

	// Fingerprint is the fingerprint of the finished files and their objects. If other
	// files of the task failed, it differs from the fingerprint of every submit.
	Fingerprint string `json:"fingerprint,omitempty"`

	// Settings is the digest of the settings with which the task was finished last, or mixedSettings.
	Settings string `json:"settings,omitempty"`

	// Split means that some files of a group became dead letters. If they are retried, they
	// get their own records.
	Split bool `json:"split,omitempty"`

	// Published is when the message was published with which the task was finished, by the clock of the server.
	Published time.Time `json:"published,omitzero"`

	// Submission is the ID of the submission of the task.
	Submission string `json:"submission,omitempty"`

	Attempts attempts `json:"attempts,omitzero"`
}

// finishedSince reports whether a message was finished, or a later one of the same task.
func (r record) finishedSince(published time.Time) bool {
	return r.State == stateDone && !r.Published.Before(published)
}

// attemptsOf returns the failed deliveries of a message that has not been finished. Those of an earlier one do not count:
// a file that it finished may have changed.
func (r record) attemptsOf(published time.Time) attempts {
	if r.State == stateDone && r.Published.Before(published) {
		return attempts{}
	}
	return r.Attempts
}

// mixedSettings means that some objects of a task may have other settings than the rest, because their files failed when
// the settings changed.
const mixedSettings = "mixed"

// queuedRecord returns the record of a task that was added to the queue. before is its record
// until then.
func queuedRecord(t *Task, before record) record {
	return record{State: stateQueued, Files: len(t.Files), Bytes: t.Bytes(), Split: before.Split, Settings: before.Settings, Submission: t.Submission}
}

// taskState is the state of a task.
type taskState string

const (
	stateQueued taskState = "queued" // it waits, or a worker has it
	stateDone   taskState = "done"   // it left the queue
)

// attempts describes the failed deliveries of a task.
type attempts struct {
	Failures  int    `json:"failures"`           // failed deliveries in a row without newly committed bytes
	Total     int    `json:"total"`              // failed deliveries
	Committed int64  `json:"committed"`          // the most bytes that a delivery had committed
	Kind      string `json:"kind,omitempty"`     // of the last error
	Reason    string `json:"reason,omitempty"`   // the last error, for people
	Progress  bool   `json:"progress,omitempty"` // the last delivery committed new bytes

	// Failing has the indices of the files that failed in each delivery that failed. Another file is finished, even if
	// it failed in some: a worker with no files at all fails with each. It is nil before the first failure.
	Failing []int `json:"failing,omitzero"`

	// Workers are the names of the workers of the failures in a row.
	Workers []string `json:"workers,omitempty"`

	// Waited is the sum of the delays between the failures in a row, in nanoseconds. No clock can
	// change it.
	Waited time.Duration `json:"waited_ns,omitempty"`
}

// failedDelivery describes a delivery that failed.
type failedDelivery struct {
	committed    int64 // bytes of the task that are durable
	kind, reason string
	worker       string
	failing      []int // indices of the files that failed
}

// after returns the attempts after one more failed delivery. A delivery that committed new bytes
// restarts the count of failures.
func (a attempts) after(f failedDelivery) attempts {
	a.Progress = f.committed > a.Committed
	if a.Progress {
		a.Committed, a.Failures, a.Workers, a.Waited = f.committed, 0, nil, 0
	}
	a.Failures++
	a.Total++
	if before := a.Failing; before == nil {
		a.Failing = f.failing
	} else {
		a.Failing = slices.DeleteFunc(slices.Clone(before), func(i int) bool { return !slices.Contains(f.failing, i) })
	}
	a.Kind, a.Reason = f.kind, f.reason
	if !slices.Contains(a.Workers, f.worker) {
		a.Workers = append(slices.Clip(a.Workers), f.worker)
	}
	return a
}

// retryLimits decide when a task that fails again and again is not tried any more.
type retryLimits struct {
	failures   int           // failures in a row
	missingFor time.Duration // see WorkerOptions.MissingFor

	// watched is how long this worker has run. Others may start later, or be seen later.
	watched time.Duration
}

// delay returns how long a failed task waits before it is delivered again. Within missingFor each worker must have
// had a chance to get the task. The delay grows with the failures in a row, so that many bad tasks do not keep the
// workers from good ones. random is in [0, 1).
func (l retryLimits) delay(failures int, random float64) time.Duration {
	d := min(max(l.missingFor/50, time.Second), 12*time.Second)
	return backoff.Policy{Initial: d, Maximum: 4 * d, Jitter: backoff.EqualJitter}.Wait(failures-1, random, 0)
}

// exhausted reports whether the task is not tried any more after a failure of this worker. live returns the
// names of the workers that live, this one included.
//
// A worker that cannot read a file, or lacks a permission, fails so fast that it gets the task again and
// again. If own is set, the reason may be the worker. Then each live worker must have failed, and
// MissingFor gives those a chance that are starting, or restarting. Otherwise the reason may still be the
// machine: two workers must have failed, if two live.
func (a *attempts) exhausted(own bool, l retryLimits, live func() []string) bool {
	switch {
	case len(a.Failing) == 0:
		return true // each file is finished
	case a.Failures < l.failures, own && min(a.Waited, l.watched) < l.missingFor:
		return false
	}
	names := live()
	if !own {
		return len(a.Workers) > 1 || len(names) == 1
	}
	untried := slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(a.Workers, name) })
	a.Workers = slices.DeleteFunc(a.Workers, func(name string) bool { return !slices.Contains(names, name) })
	return !untried
}

// stored is the record of a task as it was read. Without a record, both are zero.
type stored struct {
	record
	revision uint64
}

// stored returns the record of a task as it is now.
func (q *Queue) stored(ctx context.Context, id string) (s stored, err error) {
	e, err := q.open.Load().records.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if json.Unmarshal(e.Value(), &s.record) != nil || s.V != 1 {
		s.record = record{} // The next write replaces it. Until then, its files are compared with their objects again.
	}
	s.revision = e.Revision()
	return s, nil
}

// putRecord writes the record of a task if its revision is still the given one, and reports whether it
// did. A revision of 0 means that there is no record. That of a finished task expires, see QueueOptions.Keep.
func (q *Queue) putRecord(ctx context.Context, id string, r record, revision uint64) (bool, error) {
	r.V = 1
	data, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	kv := q.open.Load().records
	expires := r.State == stateDone && q.opts.Keep > 0
	switch {
	case revision == 0 && expires:
		_, err = kv.Create(ctx, id, data, jetstream.KeyTTL(q.opts.Keep))
	case revision == 0:
		_, err = kv.Create(ctx, id, data)
	case expires: // Update has no TTL
		_, err = q.js.Publish(ctx, "$KV."+q.bucket("records")+"."+id, data, jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithMsgTTL(q.opts.Keep))
	default:
		_, err = kv.Update(ctx, id, data, revision)
	}
	return asOf(err)
}

// asOf returns false if the error of a write means that another process has written the key meanwhile.
func asOf(err error) (written bool, _ error) {
	if errors.Is(err, jetstream.ErrKeyExists) || wrongRevision(err) {
		return false, nil
	}
	return err == nil, err
}

// dropRecords deletes the records of single files of a group that were retried alone
// and are finished. Otherwise Status would count them twice.
func (q *Queue) dropRecords(ctx context.Context, group *Task, files []File) error {
	drops, ctx := errgroup.WithContext(ctx)
	drops.SetLimit(letterJobs)
	for _, f := range files {
		drops.Go(func() error {
			id := group.fileID(f)
			if r, err := q.stored(ctx, id); err != nil || r.State != stateDone {
				return err
			}
			return q.open.Load().records.Purge(ctx, id)
		})
	}
	return drops.Wait()
}
