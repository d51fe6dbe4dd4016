package fleet

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// record is the outcome of a task, for status and for later submits. It decides
// nothing about an upload: the bucket does.
type record struct {
	V     int   `json:"v"`
	State state `json:"state"`

	Files   int   `json:"files"`             // queued: all of the task; done: those whose object is right
	Bytes   int64 `json:"bytes"`             // of those files
	Skipped int   `json:"skipped,omitempty"` // done: those whose object was there already

	// Fingerprint is that of the files that are done and of their objects. If others
	// failed, no later submit has the same.
	Fingerprint string `json:"fingerprint,omitempty"`

	// Split means that files of a group became dead letters. Those that were retried have
	// records of their own.
	Split bool `json:"split,omitempty"`

	Attempts attempts `json:"attempts,omitzero"`
}

// state is that of a task.
type state string

const (
	stateQueued state = "queued" // it waits, or a worker has it
	stateDone   state = "done"   // it left the queue
)

// attempts counts the deliveries of a task that failed without progress.
type attempts struct {
	Failures  int    `json:"failures"`           // in a row, without newly committed bytes
	Total     int    `json:"total"`              // of all deliveries that failed
	Committed int64  `json:"committed"`          // the greatest number of committed bytes
	Kind      string `json:"kind,omitempty"`     // of the last error
	Reason    string `json:"reason,omitempty"`   // the last error, for people
	Worker    string `json:"worker,omitempty"`   // of the last delivery
	Progress  bool   `json:"progress,omitempty"` // the last delivery committed new bytes
}

// failedDelivery describes a delivery that failed.
type failedDelivery struct {
	committed    int64 // bytes of the task that are durable
	kind, reason string
	worker       string
	alone        bool // there are no other workers
}

// after returns the attempts after one more delivery that failed. A delivery that
// committed new bytes is the first one of a new row.
//
// A source that is missing may be missing on one machine only, which then fails so fast
// that it gets most deliveries. They do not count until another worker misses it, too.
func (a attempts) after(f failedDelivery) attempts {
	again := f.kind == kindNoInput && a.Kind == kindNoInput && f.worker == a.Worker && !f.alone
	a.Progress = f.committed > a.Committed
	if a.Progress {
		a.Committed, a.Failures = f.committed, 0
	}
	if !again || a.Failures == 0 {
		a.Failures++
	}
	a.Total++
	a.Kind, a.Reason, a.Worker = f.kind, f.reason, f.worker
	return a
}

// record returns the record of a task and its revision; a zero record and 0 if there is
// none.
func (q *Queue) record(ctx context.Context, id string) (record, uint64, error) {
	e, err := q.open.Load().records.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return record{}, 0, nil
	}
	if err != nil {
		return record{}, 0, err
	}
	var r record
	if err := json.Unmarshal(e.Value(), &r); err != nil || r.V != 1 {
		// It is written again. A record of another version costs comparisons only.
		return record{}, e.Revision(), nil
	}
	return r, e.Revision(), nil
}

// putRecord writes the record of a task, if the revision is still the one that was read.
// Otherwise another process has written a newer one, which stays.
func (q *Queue) putRecord(ctx context.Context, id string, r record, revision uint64) error {
	r.V = 1
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if revision == 0 {
		_, err = q.open.Load().records.Create(ctx, id, data)
	} else {
		_, err = q.open.Load().records.Update(ctx, id, data, revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || wrongRevision(err) {
		return nil
	}
	return err
}

// setRecord writes the record of a task that a worker has.
func (q *Queue) setRecord(ctx context.Context, id string, r record) error {
	r.V = 1
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = q.open.Load().records.Put(ctx, id, data)
	return err
}

// dropRecords deletes the records of files of a group that were retried alone, so that status
// does not count them twice.
func (q *Queue) dropRecords(ctx context.Context, group *Task, files []File) error {
	drops, ctx := errgroup.WithContext(ctx)
	drops.SetLimit(letterJobs)
	for _, f := range files {
		drops.Go(func() error {
			id := group.one(f).ID()
			if r, _, err := q.record(ctx, id); err != nil || r.State != stateDone {
				return err
			}
			return q.open.Load().records.Purge(ctx, id)
		})
	}
	return drops.Wait()
}

// wrongRevision reports whether a key was written meanwhile.
func wrongRevision(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
