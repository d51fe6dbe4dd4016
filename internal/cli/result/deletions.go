package result

import (
	"context"
	"errors"
	"fmt"

	"gcsup/internal/cli/readable"
	"gcsup/session"
	"gcsup/upload"
)

// Deletions adds up the outcomes of the objects without a file. It is also the field of a
// SummaryLine.
type Deletions struct {
	Deleted      int   `json:"deleted"`
	Planned      int   `json:"planned"`
	Protected    int   `json:"protected"`
	Failed       int   `json:"failed"`
	Bytes        int64 `json:"bytes"`
	PlannedBytes int64 `json:"planned_bytes"`

	notTried, exhausted, interrupted int // of those that failed
}

// Fold counts a deletion that ended with err, and reports whether it is only counted in messages,
// because others with the same cause were named.
func (d *Deletions) Fold(err error) bool {
	for _, group := range []struct {
		is    error
		count *int
	}{{upload.ErrNotTried, &d.notTried}, {session.ErrRetriesExhausted, &d.exhausted}, {context.Canceled, &d.interrupted}} {
		if errors.Is(err, group.is) {
			*group.count++
			return *group.count > MaxNamed
		}
	}
	return false
}

// Folded returns a message for the deletions that were only counted. d may be nil.
func (d *Deletions) Folded() (messages []string) {
	if d == nil {
		return nil
	}
	n := 0
	for _, count := range []int{d.notTried, d.exhausted, d.interrupted} {
		n += max(count-MaxNamed, 0)
	}
	if n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more object was not deleted", "more objects were not deleted"))
	}
	return messages
}

// texts returns the totals in words. d may be nil.
func (d *Deletions) texts() (parts []string) {
	if d == nil {
		return nil
	}
	if d.Deleted > 0 {
		parts = append(parts, fmt.Sprintf("%s deleted (%s)", readable.Plural(d.Deleted, "object", "objects"), readable.Bytes(d.Bytes)))
	}
	if d.Planned > 0 {
		parts = append(parts, fmt.Sprintf("%s would be deleted (%s)", readable.Plural(d.Planned, "object", "objects"), readable.Bytes(d.PlannedBytes)))
	}
	if d.Protected > 0 {
		parts = append(parts, readable.Plural(d.Protected, "object", "objects")+" without a file kept")
	}
	if d.Failed > 0 {
		parts = append(parts, readable.Plural(d.Failed, "object", "objects")+" not deleted")
	}
	return parts
}
