package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// DeadLetter is a file that is no longer tried, until RetryFailed or another Submit
// puts it back into the queue.
type DeadLetter struct {
	V        int       `json:"v"`
	Task     *Task     `json:"task,omitempty"` // with only this file; nil if the message was damaged
	Kind     string    `json:"kind"`           // of the error, as in the JSON lines of gcsup
	Reason   string    `json:"reason"`         // for people
	Failures int       `json:"failures"`       // deliveries that failed in a row
	Time     time.Time `json:"time"`

	// Published is when the message was published that failed, by the clock of the server. An older message may have
	// another version of the file.
	Published time.Time `json:"published,omitzero"`
}

// reasonLimit bounds the reason of a dead letter, in bytes.
const reasonLimit = 1 << 10

// putLetter adds a dead letter, and returns its revision. If there is one of a later message, that stays, and the revision
// is 0.
func (q *Queue) putLetter(ctx context.Context, id string, l DeadLetter) (uint64, error) {
	kv := q.open.Load().failed
	switch e, err := kv.Get(ctx, id); {
	case err == nil && letterOf(e).Published.After(l.Published):
		return 0, nil
	case err != nil && !errors.Is(err, jetstream.ErrKeyNotFound):
		return 0, err
	}
	l.V, l.Time = 1, time.Now().UTC().Truncate(time.Millisecond)
	l.Reason = shortReason(l.Reason)
	data, err := json.Marshal(l)
	if err != nil {
		return 0, err
	}
	return kv.Put(ctx, id, data)
}

// shortReason returns at most reasonLimit bytes of a reason.
func shortReason(reason string) string {
	if len(reason) > reasonLimit {
		return strings.ToValidUTF8(reason[:reasonLimit], "") + "…"
	}
	return reason
}

// letterJobs is how many dead letters or records of a task are read or written at a time.
const letterJobs = 16

// letters returns the revisions of the dead letters of files of t, by key, except those of messages that were published
// after until.
func (q *Queue) letters(ctx context.Context, t *Task, files []File, until time.Time) (map[string]uint64, error) {
	kv := q.open.Load().failed
	status, err := kv.Status(ctx)
	if err != nil || status.Values() == 0 {
		return nil, err
	}
	var mu sync.Mutex
	found := map[string]uint64{}
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(letterJobs)
	for _, f := range files {
		reads.Go(func() error {
			e, err := kv.Get(ctx, t.fileID(f))
			if errors.Is(err, jetstream.ErrKeyNotFound) {
				return nil
			}
			if err != nil || letterOf(e).Published.After(until) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found[e.Key()] = e.Revision()
			return nil
		})
	}
	return found, reads.Wait()
}

// dropLetters deletes the dead letters that still have these revisions. A newer dead
// letter, of a later failure, stays.
func (q *Queue) dropLetters(ctx context.Context, revisions map[string]uint64) error {
	kv := q.open.Load().failed
	for id, revision := range revisions {
		if err := kv.Purge(ctx, id, jetstream.LastRevision(revision), jetstream.PurgeTTL(markerTTL)); err != nil && !wrongRevision(err) {
			return err
		}
	}
	return nil
}

// Failed calls f for each dead letter, until f returns an error. id is the ID of a
// task with only this file.
func (q *Queue) Failed(ctx context.Context, f func(id string, l DeadLetter) error) error {
	return each(ctx, q.open.Load().failed, func(e jetstream.KeyValueEntry) error {
		return f(e.Key(), letterOf(e))
	})
}

// letterOf returns the dead letter of an entry of the failed bucket.
func letterOf(e jetstream.KeyValueEntry) DeadLetter {
	var l DeadLetter
	if err := json.Unmarshal(e.Value(), &l); err != nil {
		return DeadLetter{Kind: "corrupt_message", Reason: "the dead letter cannot be read: " + err.Error()}
	}
	return l
}

// ErrNoDeadLetter means that there is no dead letter with a key.
var ErrNoDeadLetter = errors.New("there is no dead letter with this key: see gcsup-fleet status --failed")

// ErrDamagedLetter means that a dead letter does not have its file, because a message was damaged.
var ErrDamagedLetter = errors.New("the message was damaged, and its files are not known: submit the tree again, and then delete this with gcsup-fleet forget")

// Retry puts the file of a dead letter back into the queue, and deletes the letter. added is false if the file was
// in the queue already. key is the ID that Failed reports. The error wraps [ErrNoDeadLetter] if there is none,
// [ErrDamagedLetter], or [ErrSignature].
func (q *Queue) Retry(ctx context.Context, key string) (added bool, err error) {
	e, err := q.letter(ctx, key)
	if err != nil {
		return false, err
	}
	return q.retry(ctx, e)
}

// Forget deletes a dead letter. Its file no longer counts as failed, until it is submitted again. key is
// the ID that Failed reports. The error wraps [ErrNoDeadLetter] if there is none.
func (q *Queue) Forget(ctx context.Context, key string) error {
	e, err := q.letter(ctx, key)
	if err != nil {
		return err
	}
	return q.dropLetters(ctx, map[string]uint64{e.Key(): e.Revision()})
}

var letterKey = regexp.MustCompile(`^[0-9a-f]+$`)

// letter returns the dead letter with a key.
func (q *Queue) letter(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if !letterKey.MatchString(key) {
		return nil, fmt.Errorf("%q: %w", key, ErrNoDeadLetter)
	}
	e, err := q.open.Load().failed.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("%s: %w", key, ErrNoDeadLetter)
	}
	return e, err
}

// retry puts the file of a dead letter back into the queue, if it is not there, and deletes the letter.
func (q *Queue) retry(ctx context.Context, e jetstream.KeyValueEntry) (added bool, err error) {
	l := letterOf(e)
	if l.Task == nil {
		return false, fmt.Errorf("%s: %w", e.Key(), ErrDamagedLetter)
	}
	if err := q.verify(l.Task); err != nil {
		return false, fmt.Errorf("%s: %w", e.Key(), err)
	}
	before, err := q.stored(ctx, l.Task.ID())
	if err != nil {
		return false, err
	}
	if added, _, err = q.enqueue(ctx, l.Task, before); err != nil {
		return false, err
	}
	return added, q.dropLetters(ctx, map[string]uint64{e.Key(): e.Revision()})
}

// RetryFailed is Retry for all dead letters. It returns the number of files that were added to the queue. If
// some cannot be retried, it retries the others, and the error is about the first.
func (q *Queue) RetryFailed(ctx context.Context) (int, error) {
	n, first := 0, error(nil)
	err := each(ctx, q.open.Load().failed, func(e jetstream.KeyValueEntry) error {
		added, err := q.retry(ctx, e)
		if added {
			n++
		}
		if errors.Is(err, ErrDamagedLetter) || errors.Is(err, ErrSignature) {
			first, err = cmp.Or(first, err), nil
		}
		return err
	})
	return n, cmp.Or(err, first)
}

// RetryHint returns what is necessary before a retry of dead letters of a kind, or "".
func RetryHint(kind string) string {
	switch kind {
	case "precondition":
		return "another program has replaced their objects, and only a submit of the tree knows the new ones"
	case kindStale:
		return "they are not as they were submitted: submit the tree, or start workers with --accept-changed"
	}
	return ""
}
