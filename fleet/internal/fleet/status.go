package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Status is the state of a fleet.
type Status struct {
	V     int    `json:"v"`
	Type  string `json:"type"` // status
	Fleet string `json:"fleet"`

	// Files by their state, from the records and the dead letters.
	Done    Count `json:"done"`
	Active  Count `json:"active"`
	Waiting Count `json:"waiting"`
	Failed  int   `json:"failed"`  // dead letters
	Skipped int   `json:"skipped"` // files of Done whose object existed already
	Changed int   `json:"changed"` // files of Done that were not as they were submitted
	Retried int   `json:"retried"` // tasks with a failed delivery

	Tasks    uint64           `json:"tasks"` // in the queue
	Workers  []WorkerStatus   `json:"workers"`
	Failures []FailureSummary `json:"failures"` // the dead letters by kind, the most frequent first

	Rate      int64  `json:"bytes_per_s"` // of all workers together, recently
	ETA       *int64 `json:"eta_s"`       // seconds until all files are done at this rate; null if the rate is 0
	RateLimit int64  `json:"limit_per_s"` // bytes per second of all workers together; 0 means no limit
	Draining  bool   `json:"draining"`
	QueueDisk uint64 `json:"queue_bytes"` // size of the messages, records and dead letters at the server
}

// Count counts files and their bytes.
type Count struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// FailureSummary describes the dead letters of one kind.
type FailureSummary struct {
	Kind    string `json:"kind"`
	Files   int    `json:"files"`
	Example string `json:"example"` // the destination of one file; "" if it is not known
	Reason  string `json:"reason"`  // why that file failed
}

// Tasks returns the number of tasks in the queue, including those that workers are
// working on. If JetStream was wiped since then, the error is
// [ErrQueueLost]: an empty queue then does not mean that all tasks are finished.
func (q *Queue) Tasks(ctx context.Context) (uint64, error) {
	var tasks uint64
	err := q.repeat(ctx, func() error {
		info, err := q.open.Load().stream.Info(ctx)
		if err != nil {
			return err
		}
		q.since.CompareAndSwap(nil, &info.Created)
		if !q.since.Load().Equal(info.Created) {
			return ErrQueueLost
		}
		tasks = info.State.Msgs
		return nil
	})
	if errors.Is(err, ErrNoQueue) { // OpenQueue has found it
		err = ErrQueueLost
	}
	return tasks, err
}

// Status returns the state of the fleet. It reads every record, but keeps none in memory.
func (q *Queue) Status(ctx context.Context) (*Status, error) {
	p := q.open.Load()
	s := &Status{V: 1, Type: "status", Fleet: q.opts.Fleet, Workers: []WorkerStatus{}, Failures: []FailureSummary{}}
	info, err := p.stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	s.Tasks, s.QueueDisk = info.State.Msgs, info.State.Bytes
	for _, kv := range []jetstream.KeyValue{p.records, p.failed} {
		if status, err := kv.Status(ctx); err == nil {
			s.QueueDisk += status.Bytes()
		}
	}
	set, _, err := q.settings(ctx)
	if err != nil {
		return nil, err
	}
	s.RateLimit, s.Draining = set.Rate, set.Drain
	active := map[string]ActiveUpload{}
	if err := q.readWorkers(ctx, s, active); err != nil {
		return nil, err
	}
	if err := q.readRecords(ctx, s, active); err != nil {
		return nil, err
	}
	if err := q.readFailed(ctx, s); err != nil {
		return nil, err
	}
	s.estimate()
	return s, nil
}

// readWorkers adds the workers to s, and their active uploads to active, by task.
func (q *Queue) readWorkers(ctx context.Context, s *Status, active map[string]ActiveUpload) error {
	var heard []time.Time // last beat of each worker, by the clock of the server
	var last time.Time
	err := eachOf(ctx, q.open.Load().workers, detailPrefix+"*", func(e jetstream.KeyValueEntry) error {
		var w WorkerStatus
		if json.Unmarshal(e.Value(), &w) != nil {
			return nil // written by another version
		}
		s.Workers, heard = append(s.Workers, w), append(heard, e.Created())
		if e.Created().After(last) {
			last = e.Created()
		}
		return nil
	})
	for i := range s.Workers {
		w := &s.Workers[i]
		if last.Sub(heard[i]) > silentAfter*beatInterval(len(s.Workers)) {
			w.Condition, w.Rate = silent, 0
			continue
		}
		s.Rate += w.Rate
		for _, a := range w.Active {
			active[a.Task] = a
		}
	}
	slices.SortFunc(s.Workers, func(a, b WorkerStatus) int { return strings.Compare(a.Name, b.Name) })
	return err
}

// silent is the condition of a worker that missed silentAfter beats. It has probably died, and its tasks
// will be delivered again.
const (
	silent      = "silent"
	silentAfter = 3
)

// readRecords adds the records to s.
func (q *Queue) readRecords(ctx context.Context, s *Status, active map[string]ActiveUpload) error {
	return each(ctx, q.open.Load().records, func(e jetstream.KeyValueEntry) error {
		if strings.HasPrefix(e.Key(), submissionPrefix) {
			return nil
		}
		var r record
		if json.Unmarshal(e.Value(), &r) != nil {
			return nil
		}
		count := &s.Waiting
		_, isActive := active[e.Key()]
		switch {
		case r.State == stateDone:
			count = &s.Done
			s.Skipped += r.Skipped
			s.Changed += r.Changed
		case isActive:
			count = &s.Active
		}
		if r.Attempts.Total > 0 {
			s.Retried++
		}
		count.Files += r.Files
		count.Bytes += r.Bytes
		return nil
	})
}

// readFailed adds the dead letters to s, by kind.
func (q *Queue) readFailed(ctx context.Context, s *Status) error {
	byKind := map[string]*FailureSummary{}
	err := q.Failed(ctx, func(_ string, l DeadLetter) error {
		s.Failed++
		f := byKind[l.Kind]
		if f == nil {
			f = &FailureSummary{Kind: l.Kind, Reason: l.Reason}
			if l.Task != nil && len(l.Task.Files) > 0 {
				f.Example = l.Task.spec(l.Task.Files[0]).URL()
			}
			byKind[l.Kind] = f
		}
		f.Files++
		return nil
	})
	for _, f := range byKind {
		s.Failures = append(s.Failures, *f)
	}
	slices.SortFunc(s.Failures, func(a, b FailureSummary) int {
		if a.Files != b.Files {
			return b.Files - a.Files
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return err
}

// estimate sets the ETA.
func (s *Status) estimate() {
	if s.Rate > 0 {
		seconds := s.Left() / s.Rate
		s.ETA = &seconds
	}
}

// Left returns the number of bytes that must still be sent.
func (s *Status) Left() int64 {
	active := map[string]ActiveUpload{}
	for _, w := range s.Live() {
		for _, a := range w.Active {
			active[a.Task] = a
		}
	}
	left := s.Waiting.Bytes + s.Active.Bytes
	for _, a := range active {
		left -= min(a.Sent, a.Size)
	}
	return max(left, 0)
}

// Live returns the workers that are not silent.
func (s *Status) Live() (live []WorkerStatus) {
	for _, w := range s.Workers {
		if w.Condition != silent {
			live = append(live, w)
		}
	}
	return live
}
