package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Keys of the control bucket.
const (
	rateKey   = "rate"   // bytes per second of all workers together; 0 means no limit
	drainKey  = "drain"  // true if workers must take no tasks
	cancelKey = "cancel" // the last cancellation
)

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
	return q.set(ctx, rateKey, bytesPerSecond)
}

// SetDrain makes the workers finish their tasks and take no new ones. If on is false, they take
// tasks again.
func (q *Queue) SetDrain(ctx context.Context, on bool) error { return q.set(ctx, drainKey, on) }

// Cancel empties the queue and makes the workers cancel their uploads at the service. It deletes
// all records and dead letters. Tasks that are submitted meanwhile stay in the queue. Cancel
// returns the number of tasks that were in the queue.
func (q *Queue) Cancel(ctx context.Context) (uint64, error) {
	p := q.open.Load()
	info, err := p.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	c := cancellation{Sequence: info.State.LastSeq}
	if err := p.stream.Purge(ctx, jetstream.WithPurgeSequence(c.Sequence+1)); err != nil {
		return 0, err
	}
	before, err := q.settings(ctx)
	if err != nil {
		return 0, err
	}
	c.Count = before.canceled.Count + 1 // so that each call changes the value
	if err := q.set(ctx, cancelKey, c); err != nil {
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

// set writes a key of the control bucket as JSON.
func (q *Queue) set(ctx context.Context, key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = q.open.Load().control.Put(ctx, key, data)
	return err
}

// settings is the content of the control bucket.
type settings struct {
	rate     int64 // bytes per second of the fleet; 0 is no limit
	drain    bool
	canceled cancellation
}

// settings reads the control bucket.
func (q *Queue) settings(ctx context.Context) (settings, error) {
	var s settings
	for key, use := range map[string]func([]byte){
		rateKey:   func(v []byte) { _ = json.Unmarshal(v, &s.rate) },
		drainKey:  func(v []byte) { _ = json.Unmarshal(v, &s.drain) },
		cancelKey: func(v []byte) { _ = json.Unmarshal(v, &s.canceled) },
	} {
		e, err := q.open.Load().control.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return s, err
		}
		use(e.Value())
	}
	return s, nil
}
