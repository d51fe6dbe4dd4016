package mirror

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Limit is the largest number of objects that a run may delete. The zero value is 50 %.
type Limit struct {
	set     bool
	percent bool
	n       int64
}

// defaultPercent is the limit that applies if none is set.
const defaultPercent = 50

// Objects returns a limit of n objects.
func Objects(n int64) Limit { return Limit{set: true, n: n} }

// Percent returns a limit of n percent of the objects below the prefix.
func Percent(n int64) Limit { return Limit{set: true, percent: true, n: n} }

// ParseLimit parses N or N%.
func ParseLimit(text string) (Limit, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(number, 10, 62)
	if err != nil {
		return Limit{}, errors.New("want a number of objects such as 100, or a part of them such as 50%")
	}
	if !percent {
		return Objects(int64(n)), nil
	}
	if n > 100 {
		return Limit{}, errors.New("want at most 100%")
	}
	return Percent(int64(n)), nil
}

// String returns the limit as [ParseLimit] reads it.
func (l Limit) String() string {
	switch {
	case !l.set:
		return fmt.Sprintf("%d%%", defaultPercent)
	case l.percent:
		return fmt.Sprintf("%d%%", l.n)
	}
	return strconv.FormatInt(l.n, 10)
}

// allows reports whether n of all objects may be deleted.
func (l Limit) allows(n, all int64) bool {
	switch {
	case !l.set:
		return Percent(defaultPercent).allows(n, all)
	case l.percent:
		return n*100 <= l.n*all
	}
	return n <= l.n
}
