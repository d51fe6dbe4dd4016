package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/backoff"
)

// Errors of [Queue.Settled].
var (
	// ErrNotEmpty means that the queue has tasks.
	ErrNotEmpty = errors.New("the queue is not empty")

	// ErrUnknownTotal means that it is not known what was submitted.
	ErrUnknownTotal = errors.New("it is not known what was submitted: submit the tree again")

	// ErrFilesFailed means that there are dead letters.
	ErrFilesFailed = errors.New("files failed: see gcsup-fleet status --failed")
)

// submissionRecord is the record of a call of Submit. One is in the records bucket of the queue, and one
// in the state bucket. That in the state bucket shows what is missing if the queue is lost.
type submissionRecord struct {
	V           int       `json:"v"`
	Destination string    `json:"destination"` // gs://BUCKET/PREFIX
	Started     time.Time `json:"started"`
	Queue       time.Time `json:"queue"`    // when the queue was created to which the files were added
	Complete    bool      `json:"complete"` // Submit has ended without an error, and all files are in the queue or finished
	Files       int64     `json:"files"`    // that were submitted; those that were in the queue or finished before count too
	Bytes       int64     `json:"bytes"`    // of these files
	Settings    string    `json:"settings"` // digest of the settings of the objects
	Replaces    bool      `json:"replaces"` // there may be objects with other settings, of an earlier submission
	Done        bool      `json:"done"`     // in the state bucket: all files are finished, or the fleet was canceled
}

// submissionPrefix is the beginning of the keys of submissions in the records bucket. The other keys
// are tasks.
const submissionPrefix = "submission-"

// Ledger keeps records of submissions in the state bucket of the workers, so that they are known
// even if the queue is lost.
type Ledger struct{ state *stateBucket }

// NewLedger returns the Ledger for the state bucket of workers, see WorkerOptions. hc must add
// credentials to requests.
func NewLedger(hc *http.Client, endpoint, stateBucket, statePrefix string) (*Ledger, error) {
	b, err := newStateBucket(hc, endpoint, stateBucket, statePrefix, backoff.Policy{})
	if err != nil {
		return nil, err
	}
	return &Ledger{b}, nil
}

// dir returns the beginning of the names of the records of a fleet.
func (l *Ledger) dir(fleet string) string { return "submissions/" + fleet + "/" }

// ledgerRecord is a record and its generation in the state bucket.
type ledgerRecord struct {
	submissionRecord
	generation int64
}

// put writes the record of a submission, see stateBucket.write.
func (l *Ledger) put(ctx context.Context, fleet, id string, r submissionRecord, generation *int64) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return l.state.write(ctx, l.dir(fleet)+id+".json", data, generation)
}

// get reads a record. The error wraps errNoObject if it does not exist.
func (l *Ledger) get(ctx context.Context, fleet, id string) (r ledgerRecord, err error) {
	name := l.dir(fleet) + id + ".json"
	data, generation, err := l.state.read(ctx, name)
	if err != nil {
		return r, err
	}
	r.generation = generation
	if err := json.Unmarshal(data, &r.submissionRecord); err != nil {
		return r, fmt.Errorf("%s: %w", l.state.url(name), err)
	}
	return r, nil
}

// all returns the records of a fleet, by ID. A nil Ledger has none.
func (l *Ledger) all(ctx context.Context, fleet string) (map[string]ledgerRecord, error) {
	records := map[string]ledgerRecord{}
	if l == nil {
		return records, nil
	}
	names, err := l.state.list(ctx, l.dir(fleet))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id := strings.TrimSuffix(strings.TrimPrefix(name, l.dir(fleet)), ".json")
		r, err := l.get(ctx, fleet, id)
		if errors.Is(err, errNoObject) {
			continue
		}
		if err != nil {
			return nil, err
		}
		records[id] = r
	}
	return records, nil
}

// replacesObjects reports whether there may be objects with other settings than those of r, because those of an earlier call differ,
// or because that was to replace objects itself and may not have put all of them into the queue. earlier is its record in
// the queue, or nil.
func (s *submitter) replacesObjects(ctx context.Context, r submissionRecord, earlier *submissionRecord) (bool, error) {
	ended := earlier != nil && earlier.Complete && earlier.Queue.Equal(r.Queue)
	if earlier == nil {
		var l ledgerRecord
		if s.Ledger != nil {
			var err error
			if l, err = s.Ledger.get(ctx, s.q.opts.Fleet, s.id()); err != nil && !errors.Is(err, errNoObject) {
				return false, recordErr(err)
			}
		}
		earlier, ended = &l.submissionRecord, l.Done
	}
	return earlier.Settings != "" && earlier.Settings != r.Settings || earlier.Replaces && !ended, nil
}

// url returns the URL of a record.
func (l *Ledger) url(fleet, id string) string { return l.state.url(l.dir(fleet) + id + ".json") }

// id returns the ID of a submission. A submission of the same sources to the same destination has
// the same ID, and replaces the record of the earlier one.
func (s *Submission) id() string {
	sum := sha256.Sum256([]byte(s.destination() + "\n" + s.Name))
	return hex.EncodeToString(sum[:16])
}

func (s *Submission) destination() string {
	return "gs://" + s.Listing.Bucket + "/" + s.Listing.Prefix
}

// created returns when the stream of the queue was created.
func (q *Queue) created(ctx context.Context) (at time.Time, err error) {
	err = q.repeat(ctx, func() error {
		info, err := q.open.Load().stream.Info(ctx)
		if err == nil {
			at = info.Created
		}
		return err
	})
	return at, err
}

// recorded returns the record of the submission in the queue, which is that of an earlier submit, or nil.
func (s *submitter) recorded(ctx context.Context) (earlier *submissionRecord, err error) {
	err = s.q.repeat(ctx, func() error {
		e, err := s.q.open.Load().records.Get(ctx, submissionPrefix+s.id())
		if err != nil {
			return err
		}
		return json.Unmarshal(e.Value(), &earlier)
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		err = nil
	}
	return earlier, recordErr(err)
}

// recordInQueue writes the record of the submission to the queue.
func (s *submitter) recordInQueue(ctx context.Context, r submissionRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return recordErr(s.q.repeat(ctx, func() error {
		_, err := s.q.open.Load().records.Put(ctx, submissionPrefix+s.id(), data)
		return err
	}))
}

// forget removes the record of the submission from the queue.
func (s *submitter) forget(ctx context.Context) error {
	return recordErr(s.q.repeat(ctx, func() error {
		return s.q.open.Load().records.Purge(ctx, submissionPrefix+s.id(), jetstream.PurgeTTL(markerTTL))
	}))
}

// recordInLedger writes the record of the submission to the Ledger, if there is one.
func (s *submitter) recordInLedger(ctx context.Context, r submissionRecord) error {
	if s.Ledger == nil {
		return nil
	}
	return recordErr(s.Ledger.put(ctx, s.q.opts.Fleet, s.id(), r, nil))
}

func recordErr(err error) error {
	if err != nil {
		return fmt.Errorf("record of the submission: %w", err)
	}
	return nil
}

// Settled returns nil if all that was submitted is done: the queue is empty, it has not lost a
// task, and no file failed. Otherwise the error wraps [ErrNotEmpty], [ErrQueueLost],
// [ErrUnknownTotal] or [ErrFilesFailed], or is one of NATS or of the state bucket. A queue that was
// canceled is settled. ledger may be nil: submissions before the queue was lost are then not known.
func (q *Queue) Settled(ctx context.Context, ledger *Ledger) error {
	created, err := q.created(ctx)
	if err != nil {
		return err
	}
	// A submit writes to the Ledger before it adds tasks. What is read now is done if the queue is empty later.
	ledgered, err := ledger.all(ctx, q.opts.Fleet)
	if err != nil {
		return err
	}
	known, queued := map[string]submissionRecord{}, 0
	err = each(ctx, q.open.Load().records, func(e jetstream.KeyValueEntry) error {
		id, ok := strings.CutPrefix(e.Key(), submissionPrefix)
		if !ok {
			var r record
			if json.Unmarshal(e.Value(), &r) == nil && r.State == stateQueued {
				queued += r.Files
			}
			return nil
		}
		var s submissionRecord
		err := json.Unmarshal(e.Value(), &s)
		known[id] = s
		return err
	})
	if err != nil {
		return err
	}
	set, _, err := q.settings(ctx)
	if err != nil && !errors.Is(err, ErrSignature) {
		return err
	}
	// A submit may have added tasks meanwhile.
	info, err := q.open.Load().stream.Info(ctx)
	switch {
	case err != nil:
		return err
	case info.State.Msgs > 0:
		return ErrNotEmpty
	case queued > 0:
		return fmt.Errorf("%w: %d files are not finished and not in the queue", ErrQueueLost, queued)
	}
	if err := complete(known); err != nil {
		return err
	}
	canceled := set.Canceled.Count > 0
	if err := q.settleLedger(ctx, ledger, ledgered, created, known, canceled); err != nil {
		return err
	}
	if len(known) == 0 && !canceled {
		return fmt.Errorf("the queue is new, and empty: %w", ErrUnknownTotal)
	}
	letters := 0
	if err := q.Failed(ctx, func(string, DeadLetter) error { letters++; return nil }); err != nil {
		return err
	}
	if letters > 0 {
		return fmt.Errorf("%d %w", letters, ErrFilesFailed)
	}
	return nil
}

// complete returns an error if one of the submissions has not ended.
func complete(submissions map[string]submissionRecord) error {
	for _, s := range submissions {
		if !s.Complete {
			return fmt.Errorf("the submission to %s has not ended: %w", s.Destination, ErrUnknownTotal)
		}
	}
	return nil
}

// settleLedger returns an error if all, the records of the Ledger, has a submission whose files are not all finished. It
// marks the others as done. known are the submissions in the queue.
func (q *Queue) settleLedger(ctx context.Context, ledger *Ledger, all map[string]ledgerRecord, created time.Time, known map[string]submissionRecord, canceled bool) error {
	for id, s := range all {
		if s.Done {
			continue
		}
		_, found := known[id]
		switch {
		case !s.Queue.Equal(created) || !found && !canceled:
			return fmt.Errorf("%w: %d files for %s were submitted before; if they are not needed any more, delete %s", ErrQueueLost, s.Files, s.Destination, ledger.url(q.opts.Fleet, id))
		case found && !s.Complete:
			return fmt.Errorf("the submission to %s has not ended: %w", s.Destination, ErrUnknownTotal)
		}
		s.Done = true
		err := ledger.put(ctx, q.opts.Fleet, id, s.submissionRecord, &s.generation)
		if errors.Is(err, errGeneration) { // by another submit, or another worker
			return fmt.Errorf("the record of the submission to %s has changed: %w", s.Destination, ErrNotEmpty)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
