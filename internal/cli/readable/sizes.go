// Package readable has numbers as people read them, such as sizes, rates and times, and cuts text to the
// columns of a terminal. An offset is rounded down, so that only a complete upload reads as complete.
package readable

import (
	"fmt"
	"math"
	"strconv"

	"github.com/dustin/go-humanize"
)

// sizeUnits are the units of Committed, largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"EiB", 1 << 60}, {"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// CommittedShare is Committed with the percentage, if size is known.
func CommittedShare(committed, size int64) string {
	if size < 0 {
		return Committed(committed, size)
	}
	return fmt.Sprintf("%s (%d%%)", Committed(committed, size), CommittedPercent(committed, size))
}

// Committed returns how much of size bytes is committed, in the unit of size, such as
// "19 of 100 MiB". It rounds down committed, so that only a complete upload reads as
// complete. A part that would read as 0 has a unit of its own.
func Committed(committed, size int64) string {
	if size < 0 {
		return Bytes(committed)
	}
	name, unit := Unit(size)
	part, whole := inUnit(committed, unit), inUnit(size, unit)
	if part == "0" && committed > 0 {
		own, n := Unit(committed)
		part = inUnit(committed, n) + " " + own
	}
	for digits := 1; part == whole && committed < size && digits < 10; digits++ {
		part, whole = withDigits(committed, unit, digits), withDigits(size, unit, digits)
	}
	return fmt.Sprintf("%s of %s %s", part, whole, name)
}

// RoundedDown returns n as Bytes does, but rounded down as Committed: both describe one offset.
func RoundedDown(n int64) string {
	name, unit := Unit(n)
	digits := 0
	if unit > 1 && n/unit < 10 {
		digits = 1
	}
	return withDigits(n, unit, digits) + " " + name
}

// Precise returns n like RoundedDown, but from 1 GiB on with more digits, so that it changes every few
// seconds even if the link is slow. It takes at most 11 columns.
func Precise(n int64) string {
	digits := 4
	switch {
	case n < 1<<30:
		return Bytes(n)
	case n < 100<<30:
		digits = 3
	case n < 1<<40:
		digits = 2
	}
	name, unit := Unit(n)
	return withDigits(n, unit, digits) + " " + name
}

// withDigits returns n in units, rounded down to that many digits after the point.
func withDigits(n, unit int64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Floor(float64(n)/float64(unit)*scale)/scale, 'f', digits, 64)
}

// Range returns Committed, or a range such as "0 to 17 of 57 MiB" if more bytes
// were sent than the service committed: it may store them.
func Range(committed, sent, size int64) string {
	if size < 0 {
		return Committed(committed, size)
	}
	name, unit := Unit(size)
	from, to := inUnit(committed, unit), inUnit(min(sent, size), unit)
	if from == to {
		return Committed(committed, size)
	}
	return fmt.Sprintf("%s to %s of %s %s", from, to, inUnit(size, unit), name)
}

// Unit returns the largest unit that is not larger than n.
func Unit(n int64) (name string, bytes int64) {
	for _, u := range sizeUnits {
		if n >= u.bytes {
			return u.name, u.bytes
		}
	}
	return "B", 1
}

// inUnit returns n in units, rounded down to two digits or to a whole number.
func inUnit(n, unit int64) string {
	v := float64(n) / float64(unit)
	if v < 10 {
		v = math.Floor(v*10) / 10
	} else {
		v = math.Floor(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// CommittedPercent returns the part of size that is committed, rounded down.
func CommittedPercent(committed, size int64) int64 {
	return int64(float64(committed) / float64(max(size, 1)) * 100)
}

// Bytes returns a number of bytes, such as "19 MiB". It returns that of 0 for a negative number.
func Bytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Rate returns a rate, or "" if it is unknown.
func Rate(rate float64) string {
	if rate <= 0 {
		return ""
	}
	return Bytes(int64(rate)) + "/s"
}
