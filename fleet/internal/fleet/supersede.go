package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// idSet is a set of IDs of tasks. It needs 8 bytes for each, because a tree may have millions: it keeps
// the first half of an ID.
type idSet struct{ heads []uint64 }

func (s *idSet) add(id string) { s.heads = append(s.heads, head(id)) }

// sort prepares s for has.
func (s *idSet) sort() { slices.Sort(s.heads) }

func (s *idSet) has(id string) bool {
	_, found := slices.BinarySearch(s.heads, head(id))
	return found
}

// head returns the first 8 bytes of an ID.
func head(id string) uint64 {
	h, _ := strconv.ParseUint(id[:min(16, len(id))], 16, 64) // 16 digits fit
	return h
}

// contents has the tasks of a submission, and the files of its groups. The ID of a file is that of a task with
// only this file.
type contents struct{ tasks, files idSet }

func (c *contents) add(t *Task) {
	c.tasks.add(t.ID())
	if len(t.Files) > 1 {
		for _, f := range t.Files {
			c.files.add(t.fileID(f))
		}
	}
}

// sort prepares c for missing and tasks.has.
func (c *contents) sort() {
	c.tasks.sort()
	c.files.sort()
}

// missing returns the indices of the files of t that the submission does not have.
func (c *contents) missing(t *Task) (missing []int) {
	for i, f := range t.Files {
		if id := t.fileID(f); !c.files.has(id) && !c.tasks.has(id) {
			missing = append(missing, i)
		}
	}
	return missing
}

// supersede removes a submission from the records of tasks that it does not have any longer, so that
// Status does not count them. A group of small files is another task if a file was added to it or
// removed: without supersede, Status would count its other files twice.
func (q *Queue) supersede(ctx context.Context, submission string, now contents) error {
	now.sort()
	return each(ctx, q.open.Load().records, func(e jetstream.KeyValueEntry) error {
		var r record
		if json.Unmarshal(e.Value(), &r) != nil || !slices.Contains(r.Submissions, submission) || now.tasks.has(e.Key()) {
			return nil
		}
		return q.leave(ctx, e.Key(), submission, now)
	})
}

// leave removes a submission from the record of a task. now has its other tasks, and is sorted. If it was the only
// submission, the task is superseded: it does not count, but if it is in the queue, workers finish it.
func (q *Queue) leave(ctx context.Context, id, submission string, now contents) error {
	for {
		r, revision, err := q.record(ctx, id)
		i := slices.Index(r.Submissions, submission)
		if err != nil || i < 0 {
			return err
		}
		r.Submissions = slices.Delete(r.Submissions, i, i+1)
		gone := len(r.Submissions) == 0
		if gone && r.State == stateQueued {
			t, err := q.queued(ctx, id)
			switch {
			case errors.Is(err, jetstream.ErrMsgNotFound): // finished meanwhile
			case err != nil || t == nil:
				return err
			default:
				gone, r.Superseded, r.Missing = false, true, now.missing(t) // its worker deletes the record
			}
		}
		var written bool
		if gone {
			written, err = q.purgeRecord(ctx, id, revision)
		} else {
			written, err = q.putRecord(ctx, id, r, revision)
		}
		if written || err != nil {
			return err
		}
	}
}
