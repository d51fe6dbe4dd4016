package result

import (
	"strings"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
)

// Comparisons adds up the outcomes of a run of verify.
type Comparisons struct {
	Code int // the exit code

	counts map[Status]int
}

// NewComparisons returns the totals of no files.
func NewComparisons() *Comparisons { return &Comparisons{counts: map[Status]int{}} }

// Add adds the outcome of one file. The exit code is 65 if any file differs, else 75 if
// the same command may compare more, else that of the first failure.
func (t *Comparisons) Add(status Status, err error) {
	t.counts[status]++
	if err == nil || status == Skipped {
		return
	}
	switch code := exit.Classify(err).Code; {
	case t.Code == exit.Data && t.counts[Differs]+t.counts[Missing]+t.counts[Extra] > 0 && code != exit.Data:
	case t.Code == exit.OK, code == exit.Data, code == exit.Temporary:
		t.Code = code
	}
}

// None reports whether nothing was compared.
func (t *Comparisons) None() bool {
	for _, n := range t.counts {
		if n > 0 {
			return false
		}
	}
	return true
}

// Text returns how many files have each status.
func (t *Comparisons) Text() string {
	var parts []string
	for _, status := range []Status{Same, Differs, Missing, Extra, Skipped, Failed} {
		many := string(status)
		if status == Differs {
			many = "differ"
		}
		if n := t.counts[status]; n > 0 {
			parts = append(parts, readable.Plural(n, string(status), many))
		}
	}
	if len(parts) == 0 {
		return "no files"
	}
	return strings.Join(parts, ", ")
}
