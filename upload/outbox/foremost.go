package outbox

import (
	"cmp"
	"slices"
	"strings"
)

// foremost keeps the first maxFiles entries in an order. There may be many entries, and each is looked at while
// the table is locked.
type foremost struct {
	order func(a, b *entry) int
	list  []*entry // at most twice maxFiles
}

func newForemost(order func(a, b *entry) int) *foremost { return &foremost{order: order} }

func (m *foremost) add(f *entry) {
	if m.list = append(m.list, f); len(m.list) >= 2*maxFiles {
		m.list = m.entries()
	}
}

// entries returns the first entries, sorted.
func (m *foremost) entries() []*entry {
	slices.SortFunc(m.list, m.order)
	return m.list[:min(len(m.list), maxFiles)]
}

// moreFailures is the order of files that failed: those that are closest to their last attempt come first.
func moreFailures(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.attempts, a.attempts), cmp.Compare(b.failures, a.failures), byName(a, b))
}

func byName(a, b *entry) int { return strings.Compare(a.name, b.name) }

// shared returns a and then b, shortened to maxFiles together. Neither loses entries for the sake of the
// other unless it has more than half.
func shared(a, b []*entry) []*entry {
	a = a[:min(len(a), max(maxFiles/2, maxFiles-len(b)))]
	return slices.Concat(a, b[:min(len(b), maxFiles-len(a))])
}
