package fakegcs

import "slices"

// nameList is the sorted list of the names in a bucket. It is sorted when a listing
// needs it: to keep it sorted would move all later names for each new object.
type nameList struct {
	sorted  []string
	added   []string // names that are not in sorted yet, in any order
	removed int      // how many names were removed since the last sort
}

// add adds a name, which the list does not have.
func (l *nameList) add(name string) {
	if n := len(l.sorted); len(l.added) == 0 && l.removed == 0 && (n == 0 || l.sorted[n-1] < name) {
		l.sorted = append(l.sorted, name)
		return
	}
	l.added = append(l.added, name)
}

// remove records that a name no longer exists.
func (l *nameList) remove() { l.removed++ }

// sort returns the names for which exists is true, each once.
func (l *nameList) sort(exists func(name string) bool) []string {
	if l.removed > 0 {
		gone := func(name string) bool { return !exists(name) }
		l.sorted, l.added = slices.DeleteFunc(l.sorted, gone), slices.DeleteFunc(l.added, gone)
	}
	if len(l.added) > 0 {
		slices.Sort(l.added)
		l.merge()
	}
	if l.removed > 0 { // a name that was removed and added again is there twice
		l.sorted = slices.Compact(l.sorted)
	}
	l.removed = 0
	return l.sorted
}

// merge moves the names of added, which is sorted, to sorted.
func (l *nameList) merge() {
	old, fresh := len(l.sorted)-1, len(l.added)-1
	l.sorted = append(l.sorted, l.added...)
	for at := len(l.sorted) - 1; fresh >= 0; at-- {
		if old >= 0 && l.sorted[old] > l.added[fresh] {
			l.sorted[at] = l.sorted[old]
			old--
		} else {
			l.sorted[at] = l.added[fresh]
			fresh--
		}
	}
	l.added = nil
}
