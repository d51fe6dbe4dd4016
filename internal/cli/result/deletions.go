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

// Uncertain reports whether the object of a deletion that ended with err may be deleted, because no reply to
// its last request arrived.
func Uncertain(err error) bool {
	return !errors.Is(err, upload.ErrNotTried) && (errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, context.Canceled))
}

// Folded returns a message for each group of deletions that were only counted. d may be nil.
func (d *Deletions) Folded() (messages []string) {
	if d == nil {
		return nil
	}
	if n := d.notTried - MaxNamed; n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more object was not deleted", "more objects were not deleted"))
	}
	if n := max(d.exhausted-MaxNamed, 0) + max(d.interrupted-MaxNamed, 0); n > 0 {
		messages = append(messages, "and "+readable.Plural(n, "more object", "more objects")+" may be deleted")
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
	uncertain := d.exhausted + d.interrupted
	if n := d.Failed - uncertain; n > 0 {
		parts = append(parts, readable.Plural(n, "object", "objects")+" not deleted")
	}
	if uncertain > 0 {
		parts = append(parts, readable.Plural(uncertain, "object", "objects")+" that may be deleted")
	}
	return parts
}
