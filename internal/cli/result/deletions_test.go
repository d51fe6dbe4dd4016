package result_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gcsup/internal/cli/result"
	"gcsup/session"
	"gcsup/upload"
)

// TestDeletionsText checks that an object is reported as not deleted only if that is known.
func TestDeletionsText(t *testing.T) {
	exhausted := &session.Error{Kind: session.ErrRetriesExhausted}
	var d result.Deletions
	for _, c := range []struct {
		err       error
		times     int
		uncertain bool
	}{
		{fmt.Errorf("%w: %w", upload.ErrNotTried, exhausted), 5, false},
		{exhausted, 5, true},
		{fmt.Errorf("delete: %w", context.Canceled), 4, true},
		{errors.New("replaced"), 1, false},
	} {
		for range c.times {
			d.Failed++
			d.Fold(c.err)
		}
		if result.Uncertain(c.err) != c.uncertain {
			t.Errorf("%v: uncertain %v", c.err, !c.uncertain)
		}
	}
	if got := strings.Join(d.Folded(), "; "); got != "and 2 more objects were not deleted; and 3 more objects may be deleted" {
		t.Error(got)
	}
	totals := result.Totals{Deletions: &d}
	if got, want := totals.Text(time.Second), "0 files: 6 objects not deleted, 9 objects that may be deleted in 1s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
