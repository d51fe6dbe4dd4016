package main

import (
	"strings"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
)

// verifyTotals adds up the outcomes of a run of verify.
type verifyTotals struct {
	counts map[string]int // by status
	code   int            // the exit code
}

// add adds the outcome of one file. The exit code is 65 if any file differs, else 75 if
// the same command may compare more, else that of the first failure.
func (t *verifyTotals) add(status string, err error) {
	t.counts[status]++
	if err == nil || status == statusSkipped {
		return
	}
	switch code := exit.Classify(err).Code; {
	case t.code == exit.Data && t.counts[statusDiffers]+t.counts[statusMissing]+t.counts[statusExtra] > 0 && code != exit.Data:
	case t.code == exit.OK, code == exit.Data, code == exit.Temporary:
		t.code = code
	}
}

// text returns how many files have each status.
func (t *verifyTotals) text() string {
	var parts []string
	for _, status := range []string{statusSame, statusDiffers, statusMissing, statusExtra, statusSkipped, statusFailed} {
		many := status
		if status == statusDiffers {
			many = "differ"
		}
		if n := t.counts[status]; n > 0 {
			parts = append(parts, readable.Plural(n, status, many))
		}
	}
	if len(parts) == 0 {
		return "no files"
	}
	return strings.Join(parts, ", ")
}
