package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// settingsKey is the only key of the control bucket.
const settingsKey = "settings"

// settings are what the operator has set for all workers.
type settings struct {
	Rate     int64        `json:"rate"`     // bytes per second of all workers together; 0 means no limit
	Drain    bool         `json:"drain"`    // workers take no tasks
	Canceled cancellation `json:"canceled"` // the last one
}

// cancellation is a call of Cancel. It does not affect a task that was submitted
// after it, even if a worker takes that task before it reads the cancellation.
type cancellation struct {
	Count    int64  `json:"count"`    // number of cancellations so far
	Sequence uint64 `json:"sequence"` // sequence number of the last canceled message
}

// SetRate limits the object data of all workers together, in bytes per second. 0
// means no limit. The workers apply the limit at their next beat, within some
// seconds.
func (q *Queue) SetRate(ctx context.Context, bytesPerSecond int64) error {
	if bytesPerSecond < 0 {
		return fmt.Errorf("rate %d is negative", bytesPerSecond)
	}
	return q.set(ctx, func(s *settings) { s.Rate = bytesPerSecond })
}

// SetDrain makes the workers finish their tasks and take no new ones. If on is false, they take
// tasks again.
func (q *Queue) SetDrain(ctx context.Context, on bool) error {
	return q.set(ctx, func(s *settings) { s.Drain = on })
}

// Cancel empties the queue and makes the workers cancel their uploads at the service. It deletes
// all records and dead letters. Tasks that are submitted meanwhile stay in the queue. Cancel
// returns the number of tasks that were in the queue.
func (q *Queue) Cancel(ctx context.Context) (uint64, error) {
	p := q.open.Load()
	info, err := p.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	last := info.State.LastSeq
	if err := p.stream.Purge(ctx, jetstream.WithPurgeSequence(last+1)); err != nil {
		return 0, err
	}
	err = q.set(ctx, func(s *settings) { s.Canceled = cancellation{Count: s.Canceled.Count + 1, Sequence: last} })
	if err != nil {
		return 0, err
	}
	for _, of := range []string{"records", "failed"} {
		s, err := q.js.Stream(ctx, "KV_"+q.bucket(of))
		if err == nil {
			err = s.Purge(ctx)
		}
		if err != nil {
			return 0, fmt.Errorf("bucket %s: %w", q.bucket(of), err)
		}
	}
	return info.State.Msgs, nil
}

// set changes the settings.
func (q *Queue) set(ctx context.Context, change func(*settings)) error {
	for {
		s, revision, err := q.settings(ctx)
		if err != nil {
			return err
		}
		change(&s)
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if revision == 0 {
			_, err = q.open.Load().control.Create(ctx, settingsKey, data)
		} else {
			_, err = q.open.Load().control.Update(ctx, settingsKey, data, revision)
		}
		if written, err := asOf(err); written || err != nil {
			return err
		}
	}
}

// settings returns the settings and their revision. Without settings, both are zero.
func (q *Queue) settings(ctx context.Context) (s settings, revision uint64, err error) {
	e, err := q.open.Load().control.Get(ctx, settingsKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return s, 0, nil
	}
	if err != nil {
		return s, 0, err
	}
	return s, e.Revision(), json.Unmarshal(e.Value(), &s)
}
